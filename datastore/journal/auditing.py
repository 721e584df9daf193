"""Reads for `ringside audit`: every occurrence and delivery, compared with the keys that its item has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datastore.changes.occurrences import (
    DELIVERY,
    OCCURRENCE,
    Delivery,
    Occurrence,
)
from datastore.dynamo.declaration import KEY_ATTRIBUTES, TTL

if TYPE_CHECKING:
    from datastore.dynamo import Table
    from datastore.dynamo.attributes import Item
    from datastore.dynamo.entity import Entity

_KEYS = (*KEY_ATTRIBUTES, TTL)


@dataclass(frozen=True, slots=True)
class JournalItem:
    """An item of the journal or of the deliveries, and its record unless it cannot be read."""

    place: str
    record: Occurrence | Delivery | None
    wrong_keys: tuple[str, ...] = ()
    """The attributes by which the table, its indexes and the engine's removal find it, as far as they are wrong."""


async def journal_items(table: Table) -> AsyncIterator[JournalItem]:
    async for item in table.scan_items(consistent=True):
        pk, sk = item["pk"]["S"], item["sk"]["S"]
        for entity in (OCCURRENCE, DELIVERY):
            if entity.recognises(pk, sk):
                yield _checked(entity, item)


def _checked(entity: Entity[Any], item: Item) -> JournalItem:
    place = f"{item['pk']['S']} {item['sk']['S']}"
    try:
        record = entity.read(item)
        expected = entity.item(record)
    except (AttributeError, KeyError, TypeError, ValueError):
        return JournalItem(place, None)
    return JournalItem(place, record, tuple(name for name in _KEYS if item.get(name) != expected.get(name)))
