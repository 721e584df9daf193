"""Webhooks, and their leases.

A webhook's lease is on its own item: whoever holds it sends what waits for the webhook. A removed webhook stays as an
inactive one until its holder has deleted its deliveries: other processes may still write some for a while.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from datastore.changes.occurrences import (
    DELIVERY,
    DELIVERY_SHARDS,
    MOST_WEBHOOKS,
    OCCURRENCE,
    SHARDS,
    WEBHOOK,
    WEBHOOKS,
    Delivery,
    DeliveryState,
    Kind,
    Occurrence,
    OldSecret,
    Webhook,
    new_delivery,
)
from datastore.changes.revisions import Revisions, changed, read_revisions
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Page, Stale, Table, Window, optimistic
from datastore.dynamo.entity import Partition, shard_of
from datastore.dynamo.paging import shard_limit
from datastore.dynamo.writes import Put, Update, absent, present, where
from datastore.jobs.leases import leased
from datastore.refusals import Conflict, NotFound
from datastore.values.ids import first_id

# ── webhooks ──

leased(WEBHOOK)

BOTH_SIGN_FOR = timedelta(days=1)

MOST_OLD_SECRETS = 4
"""Secrets that sign at a time: each one adds a signature to every message."""


@dataclass(frozen=True, slots=True)
class WebhookWithSecret:
    """A webhook and its new secret, which is shown this once."""

    webhook: Webhook
    secret: str


async def read_webhooks(table: Table) -> list[Webhook]:
    """All webhooks, removed ones included."""
    return [webhook async for webhook in table.iterate(WEBHOOKS, consistent=True)]


async def read_webhooks_page(table: Table, window: Window) -> Page[Webhook]:
    """The active ones, oldest first."""
    active = WEBHOOKS.where(where(active=True))
    return await table.page([active], window.open("webhooks"), limit=2 * MOST_WEBHOOKS, consistent=True)


async def read_webhook(table: Table, webhook: str) -> Webhook | None:
    return await table.get(WEBHOOK.at(id=webhook), consistent=True)


async def add_webhook(table: Table, webhook: Webhook, unit: UnitOfWork) -> WebhookWithSecret:
    """Conflict if there are too many, even if several are added at once."""
    answer = WebhookWithSecret(webhook, webhook.secret)

    async def add(seen: Revisions) -> WebhookWithSecret:
        if sum(other.active for other in await read_webhooks(table)) >= MOST_WEBHOOKS:
            raise Conflict(f"There are {MOST_WEBHOOKS} webhooks, which is the limit. Remove one first.")
        await _write(table, None, webhook, Kind.WEBHOOK_ADDED, unit, answer, seen)
        return answer

    # Read first: so it changes with each webhook that is added after they were counted.
    return await optimistic(lambda: read_revisions(table), add)


async def remove_webhook(table: Table, webhook: str, unit: UnitOfWork, answer: str) -> None:
    """Deliver nothing to it from now on; what waits is deleted later. NotFound if there is none."""
    current = await read_active(table, webhook)
    await _write(table, current, replace(current, active=False), Kind.WEBHOOK_REMOVED, unit, answer)


async def rotate_secret(table: Table, webhook: str, secret: str, unit: UnitOfWork) -> WebhookWithSecret:
    """The new secret signs from now on, and each one before for a day after it was replaced."""
    current = await read_active(table, webhook)
    older = current.old_secrets(unit.now)
    if len(older) >= MOST_OLD_SECRETS:
        raise Conflict(
            f"{MOST_OLD_SECRETS} earlier secrets of this webhook still sign. Rotate again when the oldest has ended.",
            retry_after=(min(old.until for old in older) - unit.now).total_seconds(),
        )
    replaced = (OldSecret(current.secret, unit.now + BOTH_SIGN_FOR), *older)
    after = replace(current, secret=secret, replaced_secrets=replaced)
    answer = WebhookWithSecret(after, secret)
    await _write(table, current, after, Kind.WEBHOOK_SECRET_ROTATED, unit, answer)
    return answer


async def read_active(table: Table, webhook: str) -> Webhook:
    """NotFound for one that was removed, too."""
    current = await read_webhook(table, webhook)
    if current is None or not current.active:
        raise NotFound("There is no such webhook.", path=("input", "webhook"))
    return current


async def _write(
    table: Table,
    before: Webhook | None,
    after: Webhook,
    kind: Kind,
    unit: UnitOfWork,
    answer: Any,
    seen: Revisions | None = None,
) -> None:
    """Write a changed webhook, but not its lease; Stale if only the revisions have changed since they were seen."""
    write: Put | Update = WEBHOOK.put(after, when=absent())
    if before is not None:
        unchanged = where(secret=before.secret, active=before.active)
        write = WEBHOOK.update_with_indexes(after, "secret", "replaced_secrets", "active", when=unchanged)
    occurrence = unit.occurred(kind, f"Webhook:{after.id}")
    try:
        await unit.transact(table, answer, write, changed("webhooks", seen), *occurrence)
    except ConditionFailed as failed:
        if not failed.at(0):
            raise Stale from None
        stored = failed.stored(WEBHOOK)
        written = stored and replace(after, holder=stored.holder, term=stored.term, beat=stored.beat) == stored
        if not (failed.doubtful and written):
            raise Conflict from None


async def clear_webhook(table: Table, webhook: str) -> None:
    """Delete a removed webhook, and first its deliveries."""
    for state in DeliveryState:
        for shard in range(DELIVERY_SHARDS):
            await table.clear(_partition(webhook, state, shard))
    await table.write(WEBHOOK.delete(WEBHOOK.at(id=webhook)))


# ── deliveries ──
# Deliveries: what waits for a webhook, what reached it, and what was given up.
#
# A delivery waits from the transaction of its occurrence until it is delivered or dead, so none is missed. The process
# that holds the webhook's lease moves it on; so may one that has lost it without knowing: then it is delivered twice.

DELIVERED_FOR = timedelta(days=7)
DEAD_FOR = timedelta(days=30)


async def read_waiting(
    table: Table, webhook: str, shard: int, limit: int, past: str | None = None
) -> Sequence[Delivery]:
    """The oldest deliveries that wait in a shard, whether due or not; those after the occurrence with the id `past`."""
    partition = _partition(webhook, DeliveryState.WAITING, shard).past(past)
    return (await table.query(partition, limit=limit, consistent=True)).records


def _partition(webhook: str, state: DeliveryState, shard: int) -> Partition[Delivery]:
    return DELIVERY.on(webhook=webhook, state=state, shard=shard)


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
    found = await table.find_many(keys, consistent=True)
    return _final(found) if found else None


async def read_occurrences_of(table: Table, deliveries: Sequence[Delivery]) -> list[Occurrence | None]:
    """What each delivery reports; None if the journal does not have it any more."""
    wanted = {one.ulid for one in deliveries if one.content is None}
    keys = [OCCURRENCE.at(shard=shard_of(ulid, SHARDS), ulid=ulid) for ulid in wanted]
    stored = {one.ulid: one for one in await table.find_many(keys)}
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
    # Not a transaction, and in no order. If a kill leaves the first alone, the occurrence is delivered again; if it
    # leaves the second alone, nothing says any more that it was delivered.
    await table.write_many([DELIVERY.put(done), DELIVERY.delete(DELIVERY.item_key(delivery))])


async def mark_failed(
    table: Table, delivery: Delivery, status: int | None, error: str, *, next_at: datetime | None, now: datetime
) -> Delivery | None:
    """The delivery as it waits for its next attempt.

    None if there is none, so that it was given up, or if another process has moved it on.
    """
    failed = replace(
        delivery, attempts=delivery.attempts + 1, last_status=status, last_error=error[:200], next_at=next_at
    )
    try:
        if next_at is not None:
            names = ("attempts", "last_status", "last_error", "next_at", "since")
            await table.write(DELIVERY.update_with_indexes(failed, *names, when=present()))
            return failed
        dead = replace(failed, state=DeliveryState.DEAD, expires=now + DEAD_FOR)
        await table.transact(DELIVERY.put(dead), DELIVERY.delete(DELIVERY.item_key(delivery), when=present()))
    except ConditionFailed:
        pass
    return None


# ── queueing again ──


async def deliveries_between(table: Table, webhook: str, since: datetime, until: datetime) -> AsyncIterator[Delivery]:
    """What the journal has of a time, as it would be delivered, and then what was given up.

    In this order, an occurrence that is queued again from the journal is no longer among those that were given up.
    """
    low, high = first_id(since), first_id(until)
    for shard in range(SHARDS):
        async for occurrence in table.iterate(OCCURRENCE.on(shard=shard).between(low, high), consistent=True):
            yield new_delivery(webhook, occurrence)
    for shard in range(DELIVERY_SHARDS):
        dead = _partition(webhook, DeliveryState.DEAD, shard).between(low, high)
        async for delivery in table.iterate(dead, consistent=True):
            yield delivery


async def requeue(table: Table, wanted: Delivery, now: datetime) -> bool:
    """Let an occurrence wait for a webhook again, whatever its delivery came to; False if it already waits.

    One that has failed waits up to an hour for its next attempt, and may soon be given up: that begins anew, at once.
    """
    content = None if wanted.content is None else replace(wanted.content, expires=None)
    delivery = Delivery(wanted.webhook, DeliveryState.WAITING, wanted.ulid, wanted.kind, content=content, since=now)
    others = [replace(delivery, state=state) for state in (DeliveryState.DELIVERED, DeliveryState.DEAD)]
    deletes = [DELIVERY.delete(DELIVERY.item_key(other)) for other in others]
    try:
        # All or none: a repeat that finds it waiting would leave the others.
        await table.transact(DELIVERY.put(delivery, when=absent() | present("next_at")), *deletes)
    except ConditionFailed:
        return False
    return True
