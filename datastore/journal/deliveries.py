"""Deliveries: what waits for a webhook, what reached it, and what was given up.

A delivery waits from the transaction of its occurrence until it is delivered or dead, so none is missed. The process
that holds the webhook's lease moves it on; so may one that has lost it without knowing: then it is delivered twice.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from datastore.changes.occurrences import (
    DELIVERY,
    DELIVERY_SHARDS,
    OCCURRENCE,
    SHARDS,
    Delivery,
    DeliveryState,
    Occurrence,
    new_delivery,
)
from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, present
from datastore.dynamo.merge import shard_limit
from datastore.values.ids import first_id
from datastore.values.shards import shard_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from datastore.dynamo import Page, Table, Window
    from datastore.dynamo.entity import Partition

DELIVERED_FOR = timedelta(days=7)
DEAD_FOR = timedelta(days=30)


async def read_waiting(
    table: Table, webhook: str, shard: int, limit: int, past: str | None = None
) -> Sequence[Delivery]:
    """The oldest deliveries that wait in a shard, whether due or not; those after the occurrence with the id `past`."""
    partition = _partition(webhook, DeliveryState.WAITING, shard).past(past)
    return (await table.query(partition, limit=limit, consistent=True)).records


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


async def read_delivery(table: Table, webhook: str, ulid: str) -> Delivery | None:
    shard = shard_of(ulid, DELIVERY_SHARDS)
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
            await table.write(DELIVERY.update_with_indexes(failed, *names, when=present()))
            return failed
        dead = replace(failed, state=DeliveryState.DEAD, expires=now + DEAD_FOR)
        await table.transact(DELIVERY.put(dead), DELIVERY.delete(DELIVERY.item_key(delivery), when=present()))
    except ConditionFailed:  # another process has moved it on
        pass
    return None


# ── queueing again ──


async def deliveries_between(table: Table, webhook: str, since: datetime, until: datetime) -> AsyncIterator[Delivery]:
    """What the journal has of a time, as it would be delivered, and then what was given up.

    In this order, an occurrence that is queued again from the journal is no longer among those that were given up.
    """
    low, high = first_id(since), first_id(until)
    for shard in range(SHARDS):
        async for occurrence in table.iterate(OCCURRENCE.on(None, shard=shard).between(low, high), consistent=True):
            yield new_delivery(webhook, occurrence)
    for shard in range(DELIVERY_SHARDS):
        dead = _partition(webhook, DeliveryState.DEAD, shard).between(low, high)
        async for delivery in table.iterate(dead, consistent=True):
            yield delivery


async def requeue(table: Table, wanted: Delivery, now: datetime) -> bool:
    """Let an occurrence wait for a webhook again, whatever became of it before; False if it already waits."""
    content = None if wanted.content is None else replace(wanted.content, expires=None)
    delivery = Delivery(wanted.webhook, DeliveryState.WAITING, wanted.ulid, wanted.kind, content=content, since=now)
    others = [replace(delivery, state=state) for state in (DeliveryState.DELIVERED, DeliveryState.DEAD)]
    deletes = [DELIVERY.delete(DELIVERY.item_key(other)) for other in others]
    try:
        # All or none: a repeat that finds it waiting would leave the others.
        await table.transact(DELIVERY.put(delivery, when=absent()), *deletes)
    except ConditionFailed:
        return False
    return True
