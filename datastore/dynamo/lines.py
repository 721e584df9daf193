"""Items as lines of JSON that can be compared byte by byte, whichever engine they come from.

Engines store the same item, but write it in different ways. In a line attributes are sorted by name, sets by value,
and a number has one notation, with all of its 38 digits. Binary values are in base64.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

import orjson

from datastore.dynamo.attributes import Item

_EXACT = Context(prec=60)
_LONGEST_PLAIN = 40
"""Places before or after the point in plain notation; longer numbers, such as 1E+100, keep their exponent."""


class BadLine(ValueError):
    """The line is not an item's."""


def item_line(item: Mapping[str, Any]) -> bytes:
    """The line of an item, without a line break."""
    canonical = {name: _canonical(attribute) for name, attribute in item.items()}
    return orjson.dumps(canonical, option=orjson.OPT_SORT_KEYS)


def _canonical(attribute: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, value),) = attribute.items()
    match kind:
        case "N":
            value = canonical_number(value)
        case "B":
            value = b64encode(value).decode()
        case "M":
            value = {name: _canonical(inner) for name, inner in value.items()}
        case "L":
            value = [_canonical(inner) for inner in value]
        case "SS":
            value = sorted(value)
        case "NS":
            value = sorted(map(canonical_number, value), key=Decimal)
        case "BS":
            value = [b64encode(part).decode() for part in sorted(value)]
    return {kind: value}


def canonical_number(text: str) -> str:
    """One notation for all that mean the same number: 1.50, 15E-1 and 1.5 are 1.5."""
    number = Decimal(text).normalize(_EXACT)
    if not number:
        return "0"
    small = abs(number.adjusted()) < _LONGEST_PLAIN and -int(number.as_tuple().exponent) < _LONGEST_PLAIN
    return format(number, "f") if small else str(number)


def read_line(line: bytes) -> Item:
    """The item of a line that was parsed before: nothing is checked, in half the time."""
    return {name: _parsed(attribute) for name, attribute in orjson.loads(line).items()}


def parse_line(line: bytes) -> Item:
    """The item of a line, as a request takes it; BadLine if it is none, or not in the one form."""
    try:
        item = read_line(line)
        written_again = item_line(item)
        has_keys = all(isinstance(item[key]["S"], str) for key in ("pk", "sk"))
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadLine(f"it is not an item ({error})") from None
    if written_again != line or not has_keys:
        raise BadLine("it is not an item in the form of an export")
    return item


def _parsed(attribute: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, value),) = attribute.items()
    match kind:
        case "S" | "N" | "BOOL" | "NULL" | "SS" | "NS":
            return {kind: value}
        case "B":
            return {kind: _decode(value)}
        case "BS":
            return {kind: [_decode(part) for part in value]}
        case "M":
            return {kind: {name: _parsed(inner) for name, inner in value.items()}}
        case "L":
            return {kind: [_parsed(inner) for inner in value]}
    raise BadLine(f"an attribute has the unknown type {kind}")


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except BadBase64 as error:
        raise BadLine(f"a binary value is not base64 ({error})") from None
