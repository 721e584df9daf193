"""Deliveries: what waits for a webhook, what reached it, and what was given up.

A delivery waits in its shard from the transaction of its occurrence until it is delivered or dead, so none is missed.
Only the process that has claimed the shard moves it on.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, present
from datastore.dynamo.merge import shard_limit
from datastore.ids import first_id
from datastore.journal.records import (
    DELIVERY,
    DELIVERY_SHARDS,
    OCCURRENCE,
    SHARDS,
    Delivery,
    DeliveryState,
    Occurrence,
    new_delivery,
)
from datastore.shards import shard_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from datastore.dynamo import Page, Table, Window
    from datastore.dynamo.entity import Partition

DELIVERED_FOR = timedelta(days=7)
DEAD_FOR = timedelta(days=30)
WRONG_CLOCK = timedelta(minutes=1)
"""A time that is as far ahead is of a clock that was wrong: nothing waits until then."""


async def read_waiting(
    table: Table, webhook: str, shard: int, until: datetime, limit: int, *, ahead: bool = False
) -> Sequence[Delivery]:
    """The oldest deliveries of a shard whose occurrences have ids from before `until`.

    If that is the time at which this is called, each object's deliveries are complete up to the last that is read: an
    occurrence gets its id only when the one before it on the same object is stored. With `ahead`, those follow whose
    ids are of a clock that was wrong.
    """
    early, late = first_id(until), first_id(until + WRONG_CLOCK)
    partition = _partition(webhook, DeliveryState.WAITING, shard).between(None, None if ahead else early)
    waiting = await table.query(partition, limit=limit, consistent=True)
    return [delivery for delivery in waiting.records if not early <= delivery.ulid < late]


def _partition(webhook: str, state: DeliveryState, shard: int) -> Partition[Delivery]:
    return DELIVERY.on(None, webhook=webhook, state=state, shard=shard)


async def read_deliveries_page(
    table: Table, webhook: str, states: Sequence[DeliveryState], window: Window
) -> Page[Delivery]:
    """Newest first, over all shards. One that is being moved is shown in the state that it gets."""
    request = window.open(f"deliveries {webhook} {','.join(states)}")
    partitions = [
        _partition(webhook, state, shard).newest_first() for state in states for shard in range(DELIVERY_SHARDS)
    ]
    limit = shard_limit(request.wanted, DELIVERY_SHARDS)
    return await table.page(partitions, request, limit=limit, combine=_final, consistent=True)


def _final(same: Sequence[Delivery]) -> Delivery:
    return min(same, key=lambda delivery: delivery.state is DeliveryState.WAITING)


async def read_delivery(table: Table, webhook: str, shard: int, ulid: str) -> Delivery | None:
    keys = [DELIVERY.at(webhook=webhook, state=state, shard=shard, ulid=ulid) for state in DeliveryState]
    found = [delivery for delivery in await table.get_many(keys, consistent=True) if delivery is not None]
    return _final(found) if found else None


async def read_occurrences_of(table: Table, deliveries: Sequence[Delivery]) -> list[Occurrence | None]:
    """What each delivery reports; None if the journal does not have it any more."""
    wanted = {one.ulid for one in deliveries if one.content is None}
    keys = [OCCURRENCE.at(shard=shard_of(ulid, SHARDS), ulid=ulid) for ulid in wanted]
    stored = {one.ulid: one for one in await table.get_many(keys) if one is not None}
    return [one.content or stored.get(one.ulid) for one in deliveries]


# ── outcomes ──


async def mark_delivered(table: Table, delivery: Delivery, status: int, now: datetime) -> None:
    """It is kept for a week, without its content."""
    done = replace(
        delivery,
        state=DeliveryState.DELIVERED,
        content=None,
        attempts=delivery.attempts + 1,
        last_status=status,
        last_error=None,
        next_at=None,
        expires=now + DELIVERED_FOR,
    )
    # Not a transaction: if only one of the two is written, the occurrence is delivered again.
    await table.write_many([DELIVERY.put(done), DELIVERY.delete(DELIVERY.item_key(delivery))])


async def mark_failed(
    table: Table, delivery: Delivery, status: int | None, error: str, *, next_at: datetime | None, now: datetime
) -> Delivery | None:
    """The delivery as it waits for its next attempt; None if it was given up because there is none."""
    failed = replace(
        delivery, attempts=delivery.attempts + 1, last_status=status, last_error=error[:200], next_at=next_at
    )
    try:
        if next_at is not None:
            names = ("attempts", "last_status", "last_error", "next_at")
            await table.write(DELIVERY.shift(failed, *names, when=present()))
            return failed
        dead = replace(failed, state=DeliveryState.DEAD, expires=now + DEAD_FOR)
        await table.transact(DELIVERY.put(dead), DELIVERY.delete(DELIVERY.item_key(delivery), when=present()))
    except ConditionFailed:  # another process has moved it on
        pass
    return None


async def clear_deliveries(table: Table, webhook: str) -> int:
    """Delete everything of a removed webhook; return how much there was."""
    deleted = 0
    for state in DeliveryState:
        for shard in range(DELIVERY_SHARDS):
            while found := (await table.query(_partition(webhook, state, shard), limit=500, consistent=True)).records:
                await table.write_many(DELIVERY.delete(DELIVERY.item_key(one)) for one in found)
                deleted += len(found)
    return deleted


# ── queueing again ──


def deliveries_since(table: Table, webhook: str, since: datetime) -> list[AsyncIterator[Delivery]]:
    """What was given up since a time, and what the journal has since, as it would be delivered.

    In partitions, each oldest first. Of the same occurrence the one that was given up comes first.
    """
    low = first_id(since)
    dead = [_partition(webhook, DeliveryState.DEAD, shard).between(low, None) for shard in range(DELIVERY_SHARDS)]
    journal = [OCCURRENCE.on(None, shard=shard).between(low, None) for shard in range(SHARDS)]
    return [
        *(_with_content(table.iterate(partition, consistent=True)) for partition in dead),
        *(_as_deliveries(webhook, table.iterate(partition, consistent=True)) for partition in journal),
    ]


async def _with_content(deliveries: AsyncIterator[Delivery]) -> AsyncIterator[Delivery]:
    async for delivery in deliveries:
        if delivery.content is not None:
            yield delivery


async def _as_deliveries(webhook: str, occurrences: AsyncIterator[Occurrence]) -> AsyncIterator[Delivery]:
    async for occurrence in occurrences:
        yield new_delivery(webhook, occurrence)


async def requeue(table: Table, wanted: Delivery, now: datetime) -> bool:
    """Let an occurrence wait for a webhook again, whatever became of it before; False if it already waits.

    It waits in the shard that the delivery has: one that was given up keeps its own, also when its object's name, which
    chose the shard, was forgotten since.
    """
    content = None if wanted.content is None else replace(wanted.content, expires=None)
    delivery = Delivery(
        wanted.webhook, DeliveryState.WAITING, wanted.shard, wanted.ulid, wanted.kind, content=content, since=now
    )
    others = [replace(delivery, state=state) for state in (DeliveryState.DELIVERED, DeliveryState.DEAD)]
    deletes = [DELIVERY.delete(DELIVERY.item_key(other)) for other in others]
    try:
        # All or none: a repeat that finds it waiting would leave the others.
        await table.transact(DELIVERY.put(delivery, when=absent()), *deletes)
    except ConditionFailed:
        return False
    return True
