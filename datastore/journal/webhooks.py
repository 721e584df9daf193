"""Webhooks, and their leases.

A webhook's lease is on its own item: whoever holds it sends what waits for the webhook. A removed webhook stays as an
inactive one until its holder has deleted its deliveries: other processes may still write some for a while.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from datastore.changes.kinds import Kind
from datastore.changes.occurrences import (
    DELIVERY,
    DELIVERY_SHARDS,
    WEBHOOK,
    WEBHOOK_ADDITIONS,
    WEBHOOKS,
    DeliveryState,
    OldSecret,
    Webhook,
    WebhookAdditions,
)
from datastore.changes.recording import MOST_WEBHOOKS
from datastore.dynamo import ConditionFailed, Stale, optimistic
from datastore.dynamo.conditions import absent, where
from datastore.refusals import Conflict, NotFound

if TYPE_CHECKING:
    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Page, Table, Window
    from datastore.dynamo.writes import Put, Update
    from datastore.jobs.leases import Held, Leases

BOTH_SIGN_FOR = timedelta(days=1)

MOST_OLD_SECRETS = 4
"""Each one adds a signature to every message."""


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

    async def add(known: WebhookAdditions | None) -> WebhookWithSecret:
        if sum(other.active for other in await read_webhooks(table)) >= MOST_WEBHOOKS:
            raise Conflict(f"There are {MOST_WEBHOOKS} webhooks, which is the limit. Remove one first.")
        await _write(table, None, webhook, Kind.WEBHOOK_ADDED, unit, answer, _next_addition(known))
        return answer

    # Read first, so that it changes with each webhook that is added after they were counted. A removal need not change
    # it: it only makes room.
    return await optimistic(lambda: table.get(WEBHOOK_ADDITIONS.at(), consistent=True), add)


def _next_addition(known: WebhookAdditions | None) -> Put:
    unchanged = absent() if known is None else where(number=known.number)
    return WEBHOOK_ADDITIONS.put(WebhookAdditions(known.number + 1 if known else 1), when=unchanged)


async def remove_webhook(table: Table, webhook: str, unit: UnitOfWork, answer: str) -> None:
    """Nothing is delivered to it from now on; what waits is deleted later. NotFound if there is none."""
    current = await _read_active(table, webhook)
    await _write(table, current, replace(current, active=False), Kind.WEBHOOK_REMOVED, unit, answer)


async def rotate_secret(table: Table, webhook: str, secret: str, unit: UnitOfWork) -> WebhookWithSecret:
    """The new secret signs from now on, and each one before for a day after it was replaced."""
    current = await _read_active(table, webhook)
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


async def _read_active(table: Table, webhook: str) -> Webhook:
    current = await read_webhook(table, webhook)
    if current is None or not current.active:
        raise NotFound("There is no webhook with this id.", path=("input", "webhook"))
    return current


async def _write(
    table: Table, before: Webhook | None, after: Webhook, kind: Kind, unit: UnitOfWork, answer: Any, *others: Put
) -> None:
    """Write a changed webhook, but not its lease; Stale if only a condition of the other writes did not hold."""
    write: Put | Update = WEBHOOK.put(after, when=absent())
    if before is not None:
        unchanged = where(secret=before.secret, active=before.active)
        write = WEBHOOK.update_with_indexes(after, "secret", "replaced_secrets", "active", when=unchanged)
    occurrence = unit.occurred(kind, f"Webhook:{after.id}")
    try:
        await unit.transact(table, answer, write, *others, *occurrence)
    except ConditionFailed as failed:
        if not failed.at(0):
            raise Stale from None
        stored = failed.stored(WEBHOOK)
        written = stored and replace(after, holder=stored.holder, term=stored.term, beat=stored.beat) == stored
        if not (failed.doubtful and written):
            raise Conflict from None


# ── leases ──


def is_free(leases: Leases, seen: Webhook) -> bool:
    """Whether no living process sends to a webhook, now that it was seen like this."""
    return leases.is_free(WEBHOOK, seen)


async def acquire_webhook(leases: Leases, seen: Webhook) -> Held[Webhook] | None:
    """The webhook, now this process's; None if it has changed since it was seen."""
    return await leases.acquire(WEBHOOK, seen)


async def clear_webhook(table: Table, webhook: str) -> None:
    """Delete a removed webhook, and first its deliveries."""
    for state in DeliveryState:
        for shard in range(DELIVERY_SHARDS):
            partition = DELIVERY.on(None, webhook=webhook, state=state, shard=shard)
            while found := (await table.query(partition, limit=500, consistent=True)).records:
                await table.write_many(DELIVERY.delete(DELIVERY.item_key(one)) for one in found)
    await table.write(WEBHOOK.delete(WEBHOOK.at(id=webhook)))
