"""Generates the function that reads an item as a record of one entity.

Decoding field by field through codecs costs several times as much as making the record, and a leaderboard has a hundred
records (figures in bench/results/datapath.md). The generated function does only what its entity needs.

Law: for every item it returns what `plain` returns. It leaves unusual items (a required value is missing, the key is of
another template) to `plain`. A property test compares the two.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from datetime import date, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from datastore.dynamo.attributes import parse_moment

if TYPE_CHECKING:
    from datastore.dynamo.attributes import Field, Item
    from datastore.dynamo.keys import Key

# The source that decodes a value `s` of each type; other types are decoded by their codecs.
_SOURCES: Mapping[Any, str] = {
    str: 's["S"]',
    bool: 's["BOOL"]',
    int: 'int(s["N"])',
    float: 'float(s["N"])',
    bytes: 'bytes(s["B"])',
    datetime: 'moment(s["S"])',
    date: 'day(s["S"])',
}


def decoder(
    record: Any,
    key: Key,
    stored: Mapping[str, Field],
    from_key: Mapping[str, Callable[[str], Any]],
    plain: Callable[[Item], Any],
) -> Callable[[Item], Any]:
    """A function from an item to its record."""
    names: dict[str, Any] = {
        "record": record,
        "plain": plain,
        "moment": parse_moment,
        "day": date.fromisoformat,
        "partition": key.partition.pattern.fullmatch,
        "sort": key.sort.pattern.fullmatch,
    }
    lines = ["def read(item):"]
    key_expressions = _key_lines(key, from_key, lines)
    lines.append("    get = item.get")
    hints, arguments = get_type_hints(record), []
    for field in dataclasses.fields(record):
        if not field.init:
            continue
        name = field.name
        if name in from_key:
            names[f"key_{name}"] = from_key[name]
            expression = key_expressions[name]
            value = expression if from_key[name] is str else f"key_{name}({expression})"
        else:
            value = f"v_{name}"
            _value_lines(field, _required(hints[name]), stored[name], names, lines)
        arguments.append(f"{name}={value}" if field.kw_only else value)
    lines.append(f"    return record({', '.join(arguments)})")
    exec("\n".join(lines), names)  # noqa: S102 - made above of nothing but the names of a record's fields
    read: Callable[[Item], Any] = names["read"]
    return read


def _key_lines(key: Key, from_key: Mapping[str, Any], lines: list[str]) -> dict[str, str]:
    """Add the lines that match the keys; return the expression for each field that is read from a key."""
    expressions: dict[str, str] = {}
    for part, attribute, template in (("partition", "pk", key.partition), ("sort", "sk", key.sort)):
        in_part = {name: f"{part}_match[{index}]" for index, name in enumerate(template.names, 1) if name in from_key}
        if in_part:
            lines += [f'    {part}_match = {part}(item["{attribute}"]["S"])', f"    if {part}_match is None:"]
            lines.append("        return plain(item)")
            expressions.update(in_part)
    return expressions


def _value_lines(
    field: dataclasses.Field[Any], declared: Any, stored: Field, names: dict[str, Any], lines: list[str]
) -> None:
    name = field.name
    if stored.codec.optional:
        absent = f"v_{name} = None"
    elif field.default is not dataclasses.MISSING:
        names[f"default_{name}"] = field.default
        absent = f"v_{name} = default_{name}"
    elif field.default_factory is not dataclasses.MISSING:
        names[f"default_{name}"] = field.default_factory
        absent = f"v_{name} = default_{name}()"
    else:
        absent = "return plain(item)"
    if declared in _SOURCES:
        present = _SOURCES[declared]
    elif isinstance(declared, type) and issubclass(declared, Enum):
        names[f"members_{name}"] = {member.value: member for member in declared}
        names[f"kind_{name}"] = declared
        text = _SOURCES[type(next(iter(declared)).value)]
        present = f"members_{name}.get({text}) or kind_{name}({text})"
    else:
        names[f"decode_{name}"] = stored.codec.decode
        present = f"decode_{name}(s)"
    lines += [f'    s = get("{stored.stored_name}")', "    if s is None:", f"        {absent}", "    else:"]
    lines.append(f"        v_{name} = {present}")


def _required(declared: Any) -> Any:
    """A declared type without None and without its NewType."""
    declared = getattr(declared, "__supertype__", declared)
    if get_origin(declared) in (Union, types.UnionType):
        present = [argument for argument in get_args(declared) if argument is not types.NoneType]
        return _required(present[0])
    return declared
