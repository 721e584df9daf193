"""Reading the journal, newest first; taking a member's id out of it; and reading all of it to audit it.

| wanted                        | read or write                                                 | requests    |
|-------------------------------|---------------------------------------------------------------|-------------|
| the journal, newest first     | JOURNAL#<shard>, 16 shards merged                             | 16, 1 round |
| occurrences of an actor       | gsi1 ACTOR#<actor>#<shard>, 4 shards merged                   | 4           |
| occurrences with an object    | gsi2 OBJECT#<object>                                          | 1           |
| forget a member               | gsi1 ACTOR#User:<id>#<shard>, gsi3 ABOUT#<id>; an update each | 5, found    |
| audit                         | Scan, consistent                                              | all         |
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from datastore.changes.occurrences import (
    ACTOR_SHARDS,
    DELIVERY,
    DELIVERY_SHARDS,
    OCCURRENCE,
    SHARDS,
    WEBHOOK,
    WEBHOOK_ADDITIONS,
    WEBHOOKS,
    Delivery,
    DeliveryState,
    Occurrence,
    object_key,
)
from datastore.dynamo import Page, Table, Window, optimistic_from
from datastore.dynamo.attributes import Item, record_fields
from datastore.dynamo.declaration import KEY_ATTRIBUTES, TTL
from datastore.dynamo.entity import Entity, Partition
from datastore.dynamo.paging import shard_limit
from datastore.dynamo.writes import inside, present, where
from datastore.journal.usage import ACTIVITY, OPERATIONS
from datastore.people.member_items import TRACE, MemberItems, Records, in_file, left_out, of_nobody
from datastore.values.ids import shard_of

# ── reading ──

_CONTENT = record_fields(Occurrence)


async def read_journal(table: Table, actor: str | None, name: str | None, window: Window) -> Page[Occurrence]:
    """Newest first: all occurrences, or those of an actor, with an object, or both.

    All occurrences are read consistently; those of an actor or an object from an index, which may be behind.
    """
    request = window.open(f"journal\n{actor or ''}\n{name or ''}")
    partitions = _partitions(actor, name)
    limit = shard_limit(request.wanted, len(partitions))
    directed = [partition.newest_first() for partition in partitions]
    return await table.page(directed, request, limit=limit, consistent=actor is None and name is None)


def _partitions(actor: str | None, name: str | None) -> list[Partition[Occurrence]]:
    if name is not None:
        of_object = OCCURRENCE.on("gsi2", object_key=object_key(name))
        return [of_object if actor is None else of_object.where(where(actor=actor))]
    if actor is not None:
        return _of_actor(actor)
    return [OCCURRENCE.on(None, shard=shard) for shard in range(SHARDS)]


def _of_actor(actor: str) -> list[Partition[Occurrence]]:
    return [OCCURRENCE.on("gsi1", actor=actor, actor_shard=shard) for shard in range(ACTOR_SHARDS)]


async def read_occurrence(table: Table, ulid: str) -> Occurrence | None:
    return await table.get(OCCURRENCE.at(shard=shard_of(ulid, SHARDS), ulid=ulid), consistent=True)


async def forget_member(table: Table, member: str) -> int:
    """Take a member's id out of the journal, and out of what waits for webhooks; return from how many items.

    What they did stays, without an actor; an object of theirs stays without its name and without the moderators' note.
    An object that only has to do with them, such as a league that admitted them, keeps its name.
    Repeatable. The index may be behind for a moment: repeat it until it returns 0, once the member can write no more.
    """
    changed = 0
    async for occurrence in _naming(table, member):
        changed += await _forget(table, occurrence, member)
    return changed + await _forget_in_deliveries(table, member)


async def _forget(table: Table, listed: Occurrence, member: str) -> bool:
    """Take a member out of one occurrence, which may have changed since the index listed it.

    Another member whom it names may be forgotten at the same time: neither may come back with the other's write.
    """
    key = OCCURRENCE.item_key(listed)

    async def forget(current: Occurrence | None) -> bool:
        if current is None or (anonymous := _without(current, member)) == current:  # none: it has expired
            return False
        unchanged = where(actor=current.actor, about=current.about)
        await table.write(OCCURRENCE.update_with_indexes(anonymous, "actor", "object", "about", "note", when=unchanged))
        return True

    known: Occurrence | None = listed
    return await optimistic_from(known, lambda: table.get(key, consistent=True), forget, idempotent=True)


async def _naming(table: Table, member: str) -> AsyncIterator[Occurrence]:
    for partition in (*_of_actor(f"User:{member}"), OCCURRENCE.on("gsi3", about=member)):
        async for occurrence in table.iterate(partition):
            yield occurrence


def _without(occurrence: Occurrence, member: str) -> Occurrence:
    actor = None if occurrence.actor == f"User:{member}" else occurrence.actor
    if occurrence.about != member:
        return replace(occurrence, actor=actor)
    is_own = member in (occurrence.object or "")
    return replace(occurrence, actor=actor, object=None if is_own else occurrence.object, about=None, note=None)


async def _forget_in_deliveries(table: Table, member: str) -> int:
    changed = 0
    async for webhook in table.iterate(WEBHOOKS, consistent=True):
        for state in (DeliveryState.WAITING, DeliveryState.DEAD):  # the others hold no content
            for shard in range(DELIVERY_SHARDS):
                partition = DELIVERY.on(None, webhook=webhook.id, state=state, shard=shard)
                async for delivery in table.iterate(partition, consistent=True):
                    changed += await _forget_in_delivery(table, delivery, member)
    return changed


async def _forget_in_delivery(table: Table, listed: Delivery, member: str) -> bool:
    """Take a member out of what one delivery tells, which may have changed since it was listed; see `_forget`."""
    key = DELIVERY.item_key(listed)

    async def forget(current: Delivery | None) -> bool:
        content = None if current is None else current.content  # none: it was delivered
        if content is None or (anonymous := _without(content, member)) == content:
            return False
        unchanged = present("content") & inside("content", _CONTENT, where(actor=content.actor, about=content.about))
        await table.write(DELIVERY.update(key, values={"content": anonymous}, when=unchanged))
        return True

    known: Delivery | None = listed
    return await optimistic_from(known, lambda: table.get(key, consistent=True), forget, idempotent=True)


# ── auditing ──
# Reads for `ringside audit`: every occurrence and delivery, compared with the keys that its item has.

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


# ── member items ──
# What the journal keeps of a member: what they did.


async def _read(table: Table, user: str) -> Records:
    for shard in range(ACTOR_SHARDS):
        done_by = OCCURRENCE.on("gsi1", actor=f"User:{user}", actor_shard=shard)
        async for occurrence in table.iterate(done_by):
            yield OCCURRENCE, occurrence


MEMBER_ITEMS = MemberItems(
    {
        OCCURRENCE: in_file(
            "occurrence", "Something that you did, with its time and object.", TRACE, times_in_id=("at",)
        ),
        DELIVERY: left_out("Says nothing about a member.", TRACE),
        **of_nobody(ACTIVITY, OPERATIONS, WEBHOOK, WEBHOOK_ADDITIONS),
    },
    _read,
)
