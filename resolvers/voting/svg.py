"""Sanitising SVG from untrusted users: no scripts, no event handlers, no references to anything outside.

py-svg-hush filters elements and attributes by an allow-list. A check before it refuses expensive input (depth,
entities). A check after it removes outside references that no list of names can cover: style sheets can name files
through `image-set`, escapes and unclosed quotes.
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


class _TooComplex(Exception):
    """The SVG is nested too deeply or declares entities."""


def sanitize(text: str) -> str:
    """The SVG without anything active or external, or InvalidInput."""
    if len(text.encode()) > LARGEST:
        raise InvalidInput(
            f"A picture has at most {LARGEST // 1024} KB. Simplify it, or round its numbers.", path=_PATH
        )
    complete = _with_namespaces(text)
    try:
        _check_complexity(complete)
        filtered = filter_svg(complete.encode(), keep_data_url_mime_types={})
        # The filter's output has no document type, so it cannot expand entities.
        root = ET.fromstring(filtered)  # noqa: S314
    except (_TooComplex, ValueError, expat.ExpatError, ET.ParseError):
        raise InvalidInput(
            "This SVG cannot be accepted: it must be well-formed, begin with <svg>, declare no entities "
            f"and nest at most {DEEPEST} levels deep.",
            path=_PATH,
        ) from None
    if root.tag != f"{{{_SVG}}}svg":
        raise InvalidInput("An SVG begins with <svg>.", path=_PATH)
    _remove_outside_references(root)
    return ET.tostring(root, encoding="unicode")


def _with_namespaces(text: str) -> str:
    """Adds the namespaces that SVG inside HTML may leave out."""
    missing = ""
    if f'"{_SVG}"' not in text and f"'{_SVG}'" not in text:
        missing += f' xmlns="{_SVG}"'
    if "xlink:" in text and "xmlns:xlink" not in text:
        missing += f' xmlns:xlink="{_XLINK}"'
    return _ROOT.sub(f"<svg{missing}", text, count=1) if missing else text


def _check_complexity(text: str) -> None:
    """Refuses deep nesting and entities: the filter's indentation grows with the square of the depth."""
    depth = 0

    def begin(_: str, __: object) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise _TooComplex

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def entity(*_: object) -> None:
        raise _TooComplex

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.EntityDeclHandler = entity
    parser.Parse(text.encode(), True)


def _remove_outside_references(element: ET.Element) -> None:
    for name, value in list(element.attrib.items()):
        reference = name.rpartition("}")[2] == "href"
        if (reference and not value.startswith("#")) or _OUTSIDE.search(value):
            del element.attrib[name]
    for child in list(element):
        style = child.tag == f"{{{_SVG}}}style"
        if style and (len(child) or _OUTSIDE.search(child.text or "")):
            element.remove(child)
        else:
            _remove_outside_references(child)
