"""Reading an item as a record, by a function written for its entity.

Going through the codec of every field and taking keys apart costs several times the making of the record, and a
leaderboard has a hundred of them (figures in bench/results/datapath.md). The function does only what one entity needs.
Its law: for every item it gives what `plain` gives. Whatever it was not written for (a value that must be there and
is not, a key of another template) it hands to `plain`, and a test holds the two together.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from datetime import date, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from datastore.dynamo.attributes import moment_from

if TYPE_CHECKING:
    from datastore.dynamo.attributes import Field, Item
    from datastore.dynamo.keys import Key

# What is written for a value `s` of each type; of other types, codecs are called.
_WRITTEN: Mapping[Any, str] = {
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
    known: dict[str, Any] = {
        "record": record, "plain": plain, "moment": moment_from, "day": date.fromisoformat,
        "partition": key.partition.pattern.fullmatch, "sort": key.sort.pattern.fullmatch,
    }  # fmt: skip
    lines = ["def read(item):"]
    places = _key_lines(key, from_key, lines)
    lines.append("    get = item.get")
    hints, given = get_type_hints(record), []
    for field in dataclasses.fields(record):
        if not field.init:
            continue
        name = field.name
        if name in from_key:
            known[f"key_{name}"] = from_key[name]
            value = places[name] if from_key[name] is str else f"key_{name}({places[name]})"
        else:
            value = f"v_{name}"
            _value_lines(field, _required(hints[name]), stored[name], known, lines)
        given.append(f"{name}={value}" if field.kw_only else value)
    lines.append(f"    return record({', '.join(given)})")
    exec("\n".join(lines), known)  # noqa: S102 - written above, of nothing but the names of a record's fields
    read: Callable[[Item], Any] = known["read"]
    return read


def _key_lines(key: Key, from_key: Mapping[str, Any], lines: list[str]) -> dict[str, str]:
    """Take apart the keys from which fields are read; where each of these fields is then found."""
    places: dict[str, str] = {}
    for part, attribute, template in (("partition", "pk", key.partition), ("sort", "sk", key.sort)):
        found = {name: f"{part}_found[{place}]" for place, name in enumerate(template.names, 1) if name in from_key}
        if found:
            lines += [f'    {part}_found = {part}(item["{attribute}"]["S"])', f"    if {part}_found is None:"]
            lines.append("        return plain(item)")
            places.update(found)
    return places


def _value_lines(
    field: dataclasses.Field[Any], declared: Any, stored: Field, known: dict[str, Any], lines: list[str]
) -> None:
    name = field.name
    if stored.codec.optional:
        absent = f"v_{name} = None"
    elif field.default is not dataclasses.MISSING:
        known[f"default_{name}"] = field.default
        absent = f"v_{name} = default_{name}"
    elif field.default_factory is not dataclasses.MISSING:
        known[f"default_{name}"] = field.default_factory
        absent = f"v_{name} = default_{name}()"
    else:
        absent = "return plain(item)"
    if declared in _WRITTEN:
        present = _WRITTEN[declared]
    elif isinstance(declared, type) and issubclass(declared, Enum):
        known[f"members_{name}"] = {member.value: member for member in declared}
        known[f"kind_{name}"] = declared
        text = _WRITTEN[type(next(iter(declared)).value)]
        present = f"members_{name}.get({text}) or kind_{name}({text})"
    else:
        known[f"decode_{name}"] = stored.codec.decode
        present = f"decode_{name}(s)"
    lines += [f'    s = get("{stored.stored_name}")', "    if s is None:", f"        {absent}", "    else:"]
    lines.append(f"        v_{name} = {present}")


def _required(declared: Any) -> Any:
    """A declared type without None and without the name of a NewType."""
    declared = getattr(declared, "__supertype__", declared)
    if get_origin(declared) in (Union, types.UnionType):
        present = [argument for argument in get_args(declared) if argument is not types.NoneType]
        return _required(present[0])
    return declared
