"""The styles of an untrusted SVG: only properties that draw, and only values that refer to the picture itself.

A `<style>` applies to the whole page that inlines the picture, so its rules move into the `style` attributes of the
elements they select, as drawing programs write them: by class, id or element name. Other rules are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

_PROPERTY_NAMES = """
alignment-baseline baseline-shift clip-path clip-rule color color-interpolation color-interpolation-filters
direction display dominant-baseline fill fill-opacity fill-rule filter flood-color flood-opacity font font-family
font-size font-stretch font-style font-variant font-weight letter-spacing lighting-color marker marker-end
marker-mid marker-start mask opacity overflow paint-order shape-rendering stop-color stop-opacity stroke
stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width
text-anchor text-decoration text-rendering transform transform-origin vector-effect visibility word-spacing
writing-mode
"""
PROPERTIES = frozenset(_PROPERTY_NAMES.split())
_FUNCTION_NAMES = """
url rgb rgba hsl hsla matrix translate translatex translatey scale scalex scaley rotate skewx skewy
blur brightness contrast drop-shadow grayscale hue-rotate invert opacity saturate sepia
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_OUTSIDE = re.compile(
    r"//|\\|javascript:|vbscript:|data:|@|url\((?!\s*['\"]?#[\w.-]+['\"]?\s*\))|url\s+\(", re.IGNORECASE
)
# No character is looked at by more than one attempt to match: texts of 48 KB took a minute before.
_FUNCTION = re.compile(r"(?<![\w-])([\w-]++)\s*+\(")
_VALUE = re.compile(r"[\w\s.,#%+\-()'\"/]*")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_AT_RULE = re.compile(r"@[^{};@]*+(?:;|\{(?:[^{}]|\{[^{}]*+\})*+\})")
_RULE = re.compile(r"(?<![^{}])([^{}]*+)\{([^{}]*+)\}")
_SELECTOR = re.compile(r"([.#]?)([A-Za-z_][\w-]*)")
_SPECIFICITY = ("", ".", "#")


def refers_outside(value: str) -> bool:
    """Whether an attribute's value names something outside the picture, or a function that might."""
    return bool(_OUTSIDE.search(value)) or any(name.lower() not in _FUNCTIONS for name in _FUNCTION.findall(value))


def safe_declarations(text: str) -> dict[str, str]:
    """The declarations of a `style` attribute or a rule that only draw."""
    safe = {}
    for declaration in _COMMENT.sub(" ", text).split(";"):
        name, _, value = declaration.partition(":")
        name, value = name.strip().lower(), value.replace("!important", "").strip()
        if name in PROPERTIES and value and _VALUE.fullmatch(value) and not refers_outside(value):
            safe[name] = value
    return safe


def inline_styles(root: ET.Element, texts: list[str]) -> None:
    """Set each element's `style` to what the style sheets and its own attribute say, and remove its classes."""
    rules = sorted(_rules(" ".join(texts)), key=lambda rule: _SPECIFICITY.index(rule[0]))
    for element in root.iter():
        names = {
            "": {element.tag.rpartition("}")[2]},
            ".": set(element.attrib.pop("class", "").split()),
            "#": {element.get("id", "")},
        }
        declarations: dict[str, str] = {}
        for kind, name, declared in rules:
            if name in names[kind]:
                declarations |= declared
        declarations |= safe_declarations(element.attrib.pop("style", ""))
        if declarations:
            element.set("style", ";".join(f"{name}:{value}" for name, value in declarations.items()))


def _rules(text: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Kind and name of each simple selector, and the declarations of its rule."""
    sheet = _AT_RULE.sub(" ", _COMMENT.sub(" ", text))
    for selectors, body in _RULE.findall(sheet) if "@" not in sheet else ():
        declared = safe_declarations(body)
        for selector in selectors.split(",") if declared else ():
            simple = _SELECTOR.fullmatch(selector.strip())
            if simple:
                yield simple[1], simple[2], declared
