"""Webhooks, and the claims of processes on their shards.

A shard belongs to the process that wrote its claim last, and that writes it again every few seconds. Another one takes
it once the claim is old. Unlike with jobs, their clocks are compared. So a process that has just started takes a killed
one's shards without watching them first, and deliveries go on even if no process lives long.

A removed webhook stays as an inactive one until a process has deleted its deliveries: others may still write some.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, where
from datastore.dynamo.entity import Partition
from datastore.journal.kinds import Kind
from datastore.journal.records import (
    DELIVERY_SHARDS,
    SHARD_CLAIM,
    WEBHOOK,
    WEBHOOK_ADDITIONS,
    WEBHOOKS,
    OldSecret,
    ShardClaim,
    Webhook,
    WebhookAdditions,
)
from datastore.refusals import Conflict, NotFound

if TYPE_CHECKING:
    from datastore.dynamo import Page, Table, Window
    from datastore.dynamo.conditions import Condition
    from datastore.dynamo.writes import Put
    from datastore.receipts import Once

MOST_WEBHOOKS = 10
"""Each one that wants a kind adds an item to the transactions of that kind, which have at most 100."""

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


async def add_webhook(table: Table, webhook: Webhook, once: Once) -> WebhookWithSecret:
    """Conflict if there are too many, even if several are added at once."""
    answer = WebhookWithSecret(webhook, webhook.secret)
    while True:
        # Read first, so that it changes with each webhook that is added after they were counted. A removal need not
        # change it: it only makes room.
        known = await table.get(WEBHOOK_ADDITIONS.at(), consistent=True)
        if sum(other.active for other in await read_webhooks(table)) >= MOST_WEBHOOKS:
            raise Conflict(f"There are {MOST_WEBHOOKS} webhooks, which is the limit. Remove one first.")
        if await _write(table, None, webhook, Kind.WEBHOOK_ADDED, once, answer, _next_addition(known)):
            return answer


def _next_addition(known: WebhookAdditions | None) -> Put:
    unchanged = absent() if known is None else where(number=known.number)
    return WEBHOOK_ADDITIONS.put(WebhookAdditions(known.number + 1 if known else 1), when=unchanged)


async def remove_webhook(table: Table, webhook: str, once: Once, answer: str) -> None:
    """Nothing is delivered to it from now on; what waits is deleted later. NotFound if there is none."""
    current = await _read_active(table, webhook)
    await _write(table, current, replace(current, active=False), Kind.WEBHOOK_REMOVED, once, answer)


async def rotate_secret(table: Table, webhook: str, secret: str, once: Once) -> WebhookWithSecret:
    """The new secret signs from now on, and each one before for a day after it was replaced."""
    current = await _read_active(table, webhook)
    older = current.old_secrets(once.now)
    if len(older) >= MOST_OLD_SECRETS:
        raise Conflict(
            f"{MOST_OLD_SECRETS} earlier secrets of this webhook still sign. Rotate again when the oldest has ended.",
            retry_after=(min(old.until for old in older) - once.now).total_seconds(),
        )
    replaced = (OldSecret(current.secret, once.now + BOTH_SIGN_FOR), *older)
    after = replace(current, secret=secret, replaced_secrets=replaced)
    answer = WebhookWithSecret(after, secret)
    await _write(table, current, after, Kind.WEBHOOK_SECRET_ROTATED, once, answer)
    return answer


async def _read_active(table: Table, webhook: str) -> Webhook:
    current = await read_webhook(table, webhook)
    if current is None or not current.active:
        raise NotFound("There is no webhook with this id.", path=("input", "webhook"))
    return current


async def _write(
    table: Table, before: Webhook | None, after: Webhook, kind: Kind, once: Once, answer: Any, *others: Put
) -> bool:
    """Write a changed webhook; False if only a condition of the other writes did not hold."""
    unchanged = absent() if before is None else where(secret=before.secret, active=before.active)
    occurrence = once.occurred(kind, f"Webhook:{after.id}")
    try:
        await once.transact(table, answer, WEBHOOK.put(after, when=unchanged), *others, *occurrence)
    except ConditionFailed as failed:
        if not failed.at(0):
            return False
        if not failed.was_written(WEBHOOK, after):
            raise Conflict from None
    return True


async def delete_webhook(table: Table, webhook: Webhook) -> None:
    """Delete a removed webhook, of which nothing is left but claims."""
    claims = [SHARD_CLAIM.at(webhook=webhook.id, shard=shard) for shard in range(DELIVERY_SHARDS)]
    await table.write_many(SHARD_CLAIM.delete(claim) for claim in claims)
    await table.write(WEBHOOK.delete(WEBHOOK.item_key(webhook)))


# ── claims ──


@dataclass(frozen=True, slots=True)
class Registry:
    """All webhooks and the claims on their shards, from one read."""

    webhooks: tuple[Webhook, ...]
    claims: dict[tuple[str, int], ShardClaim]


async def read_registry(table: Table) -> Registry:
    collection: Partition[Any] = Partition(WEBHOOK, None, WEBHOOKS.pk)
    records = [record async for record in table.iterate(collection, WEBHOOK, SHARD_CLAIM, consistent=True)]
    claims = {(one.webhook, one.shard): one for one in records if isinstance(one, ShardClaim)}
    return Registry(tuple(one for one in records if isinstance(one, Webhook)), claims)


async def claim_shard(table: Table, claim: ShardClaim, before: ShardClaim | None) -> bool:
    """Take a shard, or keep it, unless its claim has changed since it was read."""
    try:
        await table.write(SHARD_CLAIM.put(claim, when=_unchanged(before)))
    except ConditionFailed as failed:
        return failed.was_written(SHARD_CLAIM, claim)
    return True


async def release_shard(table: Table, claim: ShardClaim) -> None:
    """Let any process take the shard at once."""
    try:
        await table.write(SHARD_CLAIM.delete(SHARD_CLAIM.item_key(claim), when=_unchanged(claim)))
    except ConditionFailed:
        return


def _unchanged(claim: ShardClaim | None) -> Condition:
    return absent() if claim is None else where(owner=claim.owner, revision=claim.revision)
