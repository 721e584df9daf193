"""Reads an item as a record: attributes by their codecs, the rest from the item's key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from datastore.dynamo.attributes import Codec, Item, fields_decoder
from datastore.dynamo.keys import Key

R = TypeVar("R")


def record_decoder(
    record: type[R], key: Key, stored: Mapping[str, Codec], from_key: Mapping[str, Callable[[str], Any]]
) -> Callable[[Item], R]:
    """A function that reads an entity's items. A required field that an item lacks raises TypeError."""
    read_fields = fields_decoder(stored)
    key_parts = tuple(
        (attribute, template.pattern.fullmatch, tuple((name, from_key[name]) for name in names))
        for attribute, template in (("pk", key.partition), ("sk", key.sort))
        if (names := [name for name in template.names if name in from_key])
    )

    def read(item: Item) -> R:
        arguments = read_fields(item)
        for attribute, match, fields in key_parts:
            if (found := match(item[attribute]["S"])) is not None:
                for name, parse in fields:
                    arguments[name] = parse(found[name])
        return record(**arguments)

    return read
