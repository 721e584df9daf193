"""Reading the journal, newest first; and reading all of it to audit it. The package says what each read costs."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from datastore.changes import occurrences
from datastore.changes.revisions import REVISIONS
from datastore.dynamo import Page, Table, Window
from datastore.dynamo.attributes import Item
from datastore.dynamo.declaration import KEY_ATTRIBUTES
from datastore.dynamo.entity import TTL, Entity, Partition, shard_of
from datastore.dynamo.paging import shard_limit
from datastore.dynamo.writes import where
from datastore.journal.usage import ACTIVITY, OPERATIONS
from datastore.people.member_items import KEPT, MemberItems, Records, in_file, left_out, of_nobody

# ── reading ──


async def read_journal(
    table: Table, actor: str | None, name: str | None, window: Window
) -> Page[occurrences.Occurrence]:
    """Newest first: all occurrences, or those of an actor, with an object, or both.

    All occurrences are read consistently; those of an actor or an object from an index, which may be behind.
    """
    request = window.open(f"journal\n{actor or ''}\n{name or ''}")
    partitions = _partitions(actor, name)
    limit = shard_limit(request.wanted, len(partitions))
    directed = [partition.newest_first() for partition in partitions]
    return await table.page(directed, request, limit=limit, consistent=actor is None and name is None)


def _partitions(actor: str | None, name: str | None) -> list[Partition[occurrences.Occurrence]]:
    if name is not None:
        of_object = occurrences.OCCURRENCE.on("gsi2", object_key=occurrences.object_key(name))
        return [of_object if actor is None else of_object.where(where(actor=actor))]
    if actor is not None:
        return _of_actor(actor)
    return [occurrences.OCCURRENCE.on(shard=shard) for shard in range(occurrences.SHARDS)]


def _of_actor(actor: str) -> list[Partition[occurrences.Occurrence]]:
    return [
        occurrences.OCCURRENCE.on("gsi1", actor=actor, actor_shard=shard) for shard in range(occurrences.ACTOR_SHARDS)
    ]


async def read_occurrence(table: Table, ulid: str) -> occurrences.Occurrence | None:
    return await table.get(
        occurrences.OCCURRENCE.at(shard=shard_of(ulid, occurrences.SHARDS), ulid=ulid), consistent=True
    )


# ── auditing ──
# Reads for `ringside audit`: every occurrence and delivery, compared with the keys that its item has.

_KEYS = (*KEY_ATTRIBUTES, TTL)


@dataclass(frozen=True, slots=True)
class JournalItem:
    """An item of the journal or of the deliveries, and its record unless it cannot be read."""

    place: str
    record: occurrences.Occurrence | occurrences.Delivery | None
    wrong_keys: tuple[str, ...] = ()
    """The attributes by which the table, its indexes and the engine's removal find it, as far as they are wrong."""


async def journal_items(table: Table) -> AsyncIterator[JournalItem]:
    async for item in table.scan_items(consistent=True):
        pk, sk = item["pk"]["S"], item["sk"]["S"]
        for entity in (occurrences.OCCURRENCE, occurrences.DELIVERY):
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


# ── member items ──
# What the journal keeps of a member: what they did, and what others did about them.


async def _read(table: Table, user: str) -> Records:
    name = f"User:{user}"
    for done_by in _of_actor(name):
        async for occurrence in table.iterate(done_by):
            yield occurrences.OCCURRENCE, occurrence
    async for occurrence in table.iterate(occurrences.OCCURRENCE.on("gsi2", object_key=occurrences.object_key(name))):
        if occurrence.actor != name:
            yield occurrences.OCCURRENCE, replace(occurrence, actor=None)


MEMBER_ITEMS = MemberItems(
    {
        occurrences.OCCURRENCE: in_file(
            "occurrence",
            "Something that you did, with its time and object; or that others did about you, such as a suspension, "
            "without their names.",
            KEPT,
            times_in_id=("at",),
        ),
        occurrences.DELIVERY: left_out("Says nothing about a member.", KEPT),
        **of_nobody(ACTIVITY, OPERATIONS, REVISIONS, occurrences.WEBHOOK),
    },
    _read,
)
