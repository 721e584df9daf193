"""The styles of an untrusted SVG: only properties that draw, and only values that refer to the picture itself.

A `<style>` applies to the whole page that inlines the picture, so its rules move into the `style` attributes of the
elements they select, as drawing programs write them: by class, id or element name. Other rules are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
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


class TooLarge(Exception):
    """The picture becomes much larger than it was."""


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


def inline_styles(root: ET.Element, texts: list[str], largest: int) -> None:
    """Set each element's `style` to what the style sheets and its own attribute say, and remove its classes.

    Rules may take `largest` characters where they are applied: a short one can select thousands of elements.
    """
    rules, taken = _rules_by_selector(" ".join(texts)), 0
    for element in root.iter():
        matching = sorted(rule for selector in _selectors(element) for rule in rules.get(selector, ()))
        taken += sum(rule.size for rule in matching)
        if taken > largest:
            raise TooLarge
        declarations: dict[str, str] = {}
        for rule in matching:
            declarations |= rule.declared
        declarations |= safe_declarations(element.attrib.pop("style", ""))
        if declarations:
            element.set("style", ";".join(f"{name}:{value}" for name, value in declarations.items()))


def _selectors(element: ET.Element) -> set[tuple[str, str]]:
    """Kind and name of each simple selector that selects an element, whose classes are removed."""
    classes = element.attrib.pop("class", "").split()
    return {("", element.tag.rpartition("}")[2]), ("#", element.get("id", "")), *((".", name) for name in classes)}


class _Rule(NamedTuple):
    """The declarations of a rule for one of its selectors."""

    order: int
    """Its place among all rules, unlike any other's: later ones override."""
    size: int
    declared: dict[str, str]


def _rules_by_selector(text: str) -> dict[tuple[str, str], list[_Rule]]:
    rules: dict[tuple[str, str], list[_Rule]] = {}
    ordered = sorted(_rules(text), key=lambda rule: _SPECIFICITY.index(rule[0]))
    for order, (kind, name, size, declared) in enumerate(ordered):
        rules.setdefault((kind, name), []).append(_Rule(order, size, declared))
    return rules


def _rules(text: str) -> Iterator[tuple[str, str, int, dict[str, str]]]:
    """Kind and name of each simple selector, and the declarations of its rule with their size."""
    sheet = _AT_RULE.sub(" ", _COMMENT.sub(" ", text))
    for selectors, body in _RULE.findall(sheet) if "@" not in sheet else ():
        declared = safe_declarations(body)
        size = sum(len(name) + len(value) + 2 for name, value in declared.items())
        for selector in selectors.split(",") if declared else ():
            simple = _SELECTOR.fullmatch(selector.strip())
            if simple:
                yield simple[1], simple[2], size, declared
