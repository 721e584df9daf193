"""Drawings from strangers: what remains of an SVG once nothing in it can act, or ask for anything elsewhere.

py-svg-hush, an allow-list of elements and attributes, does the work. Around it stand a reader that refuses what would
be expensive (depth, entities), and a second look at what is left, since a style sheet can name outside files in more
ways than a list of names can know: `image-set`, escapes, quotes that do not close.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET
from xml.parsers import expat

from py_svg_hush import filter_svg

from datastore.refusals import InvalidInput

LARGEST = 48 * 1024
DEEPEST = 64
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_OUTSIDE = re.compile(
    r"//|\\|javascript:|vbscript:|data:|@|image-set|expression|url\((?!\s*['\"]?#[\w.-]+['\"]?\s*\))", re.IGNORECASE
)
_ROOT = re.compile(r"<svg(?=[\s/>])")
_PATH = ("input", "svg")

ET.register_namespace("", _SVG)


class _TooMuch(Exception):
    """The drawing is deeper than any drawing needs to be, or declares entities."""


def harmless(text: str) -> str:
    """The drawing without scripts, handlers, foreign content and outside references; InvalidInput if it is none."""
    if len(text.encode()) > LARGEST:
        message = f"A picture has at most {LARGEST // 1024} KB. Simplify it, or round its numbers."
        raise InvalidInput(message, path=_PATH)
    spelled = _with_namespaces(text)
    try:
        _read_through(spelled)
        filtered = filter_svg(spelled.encode(), keep_data_url_mime_types={})
        # What comes from the filter has no document type, so nothing in it can expand.
        root = ET.fromstring(filtered)  # noqa: S314
    except (_TooMuch, ValueError, expat.ExpatError, ET.ParseError):
        message = (
            "This is not an SVG that can be taken: it must be well-formed, begin with <svg>, declare no entities "
            f"and nest at most {DEEPEST} deep."
        )
        raise InvalidInput(message, path=_PATH) from None
    if root.tag != f"{{{_SVG}}}svg":
        message = "An SVG begins with <svg>."
        raise InvalidInput(message, path=_PATH)
    _clean(root)
    return ET.tostring(root, encoding="unicode")


def _with_namespaces(text: str) -> str:
    """Many drawings leave out what an HTML page would know."""
    missing = ""
    if f'"{_SVG}"' not in text and f"'{_SVG}'" not in text:
        missing += f' xmlns="{_SVG}"'
    if "xlink:" in text and "xmlns:xlink" not in text:
        missing += f' xmlns:xlink="{_XLINK}"'
    return _ROOT.sub(f"<svg{missing}", text, count=1) if missing else text


def _read_through(text: str) -> None:
    """Depth and entities first: indentation of the filter's output grows with the square of the depth."""
    depth = 0

    def begin(_: str, __: object) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise _TooMuch

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def entity(*_: object) -> None:
        raise _TooMuch

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.EntityDeclHandler = entity
    parser.Parse(text.encode(), True)


def _clean(element: ET.Element) -> None:
    for name, value in list(element.attrib.items()):
        reference = name.rpartition("}")[2] == "href"
        if (reference and not value.startswith("#")) or _OUTSIDE.search(value):
            del element.attrib[name]
    for child in list(element):
        style = child.tag == f"{{{_SVG}}}style"
        if style and (len(child) or _OUTSIDE.search(child.text or "")):
            element.remove(child)
        else:
            _clean(child)
