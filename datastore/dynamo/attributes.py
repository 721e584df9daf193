"""Encoding and decoding of attributes, by the types that a record declares.

| declared                      | stored                                    |
|-------------------------------|-------------------------------------------|
| str, StrEnum                  | S                                         |
| int, float, IntEnum           | N                                         |
| bool                          | BOOL                                      |
| datetime (UTC), date          | S, in ISO 8601, so that text order is time order |
| bytes                         | B                                         |
| tuple[X, ...]                 | L                                         |
| dict[str, X]                  | M                                         |
| a dataclass                   | M of its fields                           |
| X or None                     | as X; None is not stored at all           |

A field is stored under its own name.
"""

import dataclasses
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

Attribute: TypeAlias = Mapping[str, Any]
Item: TypeAlias = Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class Codec:
    """Encodes and decodes values of one type. An `optional` type may be None, which is not stored."""

    encode: Callable[[Any], Attribute]
    decode: Callable[[Attribute], Any]
    optional: bool = False


@lru_cache(maxsize=4_096)  # the same moments are shown again and again
def iso(moment: datetime) -> str:
    """A moment in UTC with exactly three decimals, so that all moments sort as text."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def to_the_millisecond(moment: datetime) -> datetime:
    """As times are stored and ids have them."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


_PLAIN: Mapping[type, Codec] = {
    str: Codec(lambda value: {"S": value}, itemgetter("S")),
    bool: Codec(lambda value: {"BOOL": value}, itemgetter("BOOL")),
    int: Codec(lambda value: {"N": str(value)}, lambda stored: int(stored["N"])),
    float: Codec(lambda value: {"N": repr(value)}, lambda stored: float(stored["N"])),
    bytes: Codec(lambda value: {"B": value}, lambda stored: bytes(stored["B"])),
    datetime: Codec(lambda value: {"S": iso(value)}, lambda stored: datetime.fromisoformat(stored["S"])),
    date: Codec(lambda value: {"S": value.isoformat()}, lambda stored: date.fromisoformat(stored["S"])),
}


@cache
def codec_for(declared: Any) -> Codec:
    """The codec of a declared type; TypeError if the type has no stored form."""
    declared = getattr(declared, "__supertype__", declared)
    if declared in _PLAIN:
        return _PLAIN[declared]
    origin, arguments = get_origin(declared), get_args(declared)
    if origin in (Union, types.UnionType):
        return _optional(declared, arguments)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:  # noqa: PLR2004 - tuple[X, ...]
        return _list_of(codec_for(arguments[0]))
    if origin in (dict, Mapping) and arguments[0] is str:
        return _map_of(codec_for(arguments[1]))
    if isinstance(declared, type) and issubclass(declared, Enum):
        return _enum(declared)
    if isinstance(declared, type) and dataclasses.is_dataclass(declared):
        return _record(declared)
    raise TypeError(f"{declared!r} has no stored form; see the table in {__name__}")


def _optional(declared: Any, arguments: tuple[Any, ...]) -> Codec:
    present = [argument for argument in arguments if argument is not types.NoneType]
    if len(present) != 1:
        raise TypeError(f"{declared!r} has no stored form: a union may only be of one type and None")
    return dataclasses.replace(codec_for(present[0]), optional=True)


def _list_of(inner: Codec) -> Codec:
    return Codec(
        lambda values: {"L": [inner.encode(value) for value in values]},
        lambda stored: tuple(inner.decode(value) for value in stored["L"]),
    )


def _map_of(inner: Codec) -> Codec:
    return Codec(
        lambda values: {"M": {name: inner.encode(value) for name, value in values.items()}},
        lambda stored: {name: inner.decode(value) for name, value in stored["M"].items()},
    )


def _enum(kind: type[Enum]) -> Codec:
    stored_as: Any = type(next(iter(kind)).value)
    inner = codec_for(stored_as)
    return Codec(lambda value: inner.encode(value.value), lambda stored: kind(inner.decode(stored)))


def _record(kind: type) -> Codec:
    fields = record_fields(kind)
    arguments = fields_decoder(kind, fields)
    return Codec(lambda record: {"M": encoded(fields, record)}, lambda stored: kind(**arguments(stored["M"])))


def record_fields(kind: Any) -> Mapping[str, Codec]:
    """Every field that a record's constructor takes."""
    hints = get_type_hints(kind)
    return {field.name: codec_for(hints[field.name]) for field in dataclasses.fields(kind) if field.init}


def encoded(fields: Mapping[str, Codec], record: Any) -> dict[str, Attribute]:
    """A record's attributes, without those that are None."""
    return {name: codec.encode(value) for name, codec in fields.items() if (value := getattr(record, name)) is not None}


def fields_decoder(kind: Any, fields: Mapping[str, Codec]) -> Callable[[Item], dict[str, Any]]:
    """A function that reads a constructor's arguments from an item: the values of some of a record's fields.

    An absent attribute is None if it is optional; else it is left out, and the record has its default.
    """
    # Taken apart once: a page reads up to a hundred items, which have few of their record's fields.
    decoders = {name: codec.decode for name, codec in fields.items()}
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    absent = {name: None for name, codec in fields.items() if codec.optional and defaults[name] is not None}

    def decode(item: Item) -> dict[str, Any]:
        arguments: dict[str, Any] = absent.copy()
        for name, stored in item.items():
            if name in decoders:
                arguments[name] = decoders[name](stored)
        return arguments

    return decode


def item_size(item: Item) -> int:
    """Bytes of an item as DynamoDB counts them: names and values; a number takes half a byte a digit, and one more."""
    return sum(len(name) + _value_size(stored) for name, stored in item.items())


def _value_size(stored: Attribute) -> int:
    ((kind, value),) = stored.items()
    match kind:
        case "S":
            return len(value.encode())
        case "N":
            return (len(value.lstrip("-")) + 1) // 2 + 1
        case "M":
            return 3 + sum(1 + len(name.encode()) + _value_size(inner) for name, inner in value.items())
        case "L":
            return 3 + sum(1 + _value_size(inner) for inner in value)
        case "B":
            return len(value)
        case _:
            return 1
