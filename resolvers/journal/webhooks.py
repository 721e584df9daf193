"""Webhooks: for admins. One function per field, and the job that delivers again."""

from __future__ import annotations

import asyncio
import base64
import secrets
import socket
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from datastore import journal as journal_store
from datastore.changes.kinds import Kind
from datastore.changes.occurrences import (
    Delivery,
    DeliveryState,
    Occurrence,
    Webhook,
)
from datastore.changes.recording import wants
from datastore.dynamo import Page, Window
from datastore.jobs.jobs import Job
from datastore.journal import WebhookWithSecret
from datastore.refusals import InvalidInput, NotFound
from datastore.values.ids import is_ulid
from resolvers.jobs.running import JobRun, begin_job_once, new_job
from resolvers.journal.addresses import Destination, ForbiddenAddress, check_address, parse_destination
from resolvers.loading.batched import batched
from resolvers.requests.context import Context, NodeOf, Services
from resolvers.requests.viewer import Role
from resolvers.values.node_ids import node_id

WebhookId = Annotated[str, NodeOf("Webhook")]

REDELIVER = "REDELIVER"
SECRET_PREFIX = "whsec_"  # noqa: S105 - how secrets begin
_SECRET_BYTES = 32
_RESOLVE_SECONDS = 3.0


# ── reading ──


async def webhooks(ctx: Context, /, *, window: Window) -> Page[Webhook]:
    """Oldest first."""
    ctx.with_role(Role.ADMIN)
    return await journal_store.read_webhooks_page(ctx.table, window)


async def webhook_node(ctx: Context, key: str) -> Webhook | None:
    return await journal_store.read_webhook(ctx.table, key) if is_ulid(key) and ctx.viewer.may(Role.ADMIN) else None


async def deliveries(
    ctx: Context, webhook: Webhook, /, *, state: DeliveryState | None = None, window: Window
) -> Page[Delivery]:
    """Newest first."""
    ctx.with_role(Role.ADMIN)
    states = tuple(DeliveryState) if state is None else (state,)
    return await journal_store.read_deliveries_page(ctx.table, webhook.id, states, window)


async def delivery_node(ctx: Context, key: str) -> Delivery | None:
    webhook, _, ulid = key.partition(":")
    if not (ctx.viewer.may(Role.ADMIN) and is_ulid(webhook) and is_ulid(ulid)):
        return None
    return await journal_store.read_delivery(ctx.table, webhook, ulid)


@batched
async def delivery_occurrences(ctx: Context, deliveries: Sequence[Delivery], /) -> list[Occurrence | None]:
    return await journal_store.read_occurrences_of(ctx.table, deliveries)


# ── writing ──


async def add_webhook(ctx: Context, /, *, url: str, kinds: list[str]) -> WebhookWithSecret:
    ctx.with_role(Role.ADMIN)
    destination = parse_destination(url, ctx.services.policy.webhook_networks)
    wanted = _validate_kinds(kinds)
    await _check_names_addresses(destination, ctx.services.policy.webhook_networks)
    new = Webhook(ctx.new_id(), url, wanted, ctx.now(), _new_secret())
    added = await journal_store.add_webhook(ctx.table, new, ctx.unit)
    await ctx.services.journal.learn(ctx.table)
    return added


def _validate_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    known = [kind.value for kind in Kind]
    for index, kind in enumerate(kinds):
        if kind not in known:
            raise InvalidInput(
                f"{kind[:40]!r} is not a kind of occurrence. The kinds are {', '.join(known)}.",
                path=("input", "kinds", str(index)),
            )
    return tuple(dict.fromkeys(kinds))


async def _check_names_addresses(destination: Destination, allowed: Sequence[str]) -> None:
    """Refuse a name that leads to a forbidden address now. Each request is checked again when it is sent."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await loop.getaddrinfo(destination.host, None, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError):  # it may get an address later
        return
    for *_, address in found:
        try:
            check_address(str(address[0]), allowed, secure=destination.secure)
        except ForbiddenAddress as reason:
            raise InvalidInput(
                f"This is not an address for a webhook. {destination.host} leads to where nothing is sent: {reason}.",
                path=("input", "url"),
            ) from None


def _new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


async def remove_webhook(ctx: Context, /, *, webhook: WebhookId) -> str:
    """The id of the removed webhook."""
    ctx.with_role(Role.ADMIN)
    removed_id = node_id("Webhook", webhook)
    await journal_store.remove_webhook(ctx.table, webhook, ctx.unit, removed_id)
    await ctx.services.journal.learn(ctx.table)
    return removed_id


async def rotate_webhook_secret(ctx: Context, /, *, webhook: WebhookId) -> WebhookWithSecret:
    ctx.with_role(Role.ADMIN)
    return await journal_store.rotate_secret(ctx.table, webhook, _new_secret(), ctx.unit)


async def redeliver(ctx: Context, /, *, webhook: WebhookId, since: datetime) -> Job:
    """A job that lets everything that occurred since then wait again."""
    ctx.with_role(Role.ADMIN)
    current = await journal_store.read_webhook(ctx.table, webhook)
    if current is None or not current.active:
        raise NotFound("There is no webhook with this id.", path=("input", "webhook"))
    if since > ctx.now():
        raise InvalidInput("Name a time in the past.", path=("input", "since"))
    job = new_job(ctx, REDELIVER, {"webhook": webhook, "since": since.isoformat()})
    occurrence = ctx.unit.occurred(Kind.WEBHOOK_REDELIVERED, f"Webhook:{webhook}")
    await begin_job_once(ctx, job, job, *occurrence)
    return job


async def redeliver_job(services: Services, run: JobRun) -> str:
    """Queue deliveries again. Started over after an interruption, it repeats some."""
    webhook = await journal_store.read_webhook(services.table, run.input["webhook"])
    if webhook is None or not webhook.active:
        return "The webhook was removed."
    since = datetime.fromisoformat(run.input["since"])
    wanted = journal_store.deliveries_between(services.table, webhook.id, since, run.job.started_at)
    async for delivery in wanted:
        if wants(webhook, delivery.kind):
            run.done += await journal_store.requeue(services.table, delivery, services.clock())
    return f"{run.done} occurrences will be delivered again."
