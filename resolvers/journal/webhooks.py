"""Webhooks: for admins. One function per field, and the job that delivers again."""

import asyncio
import base64
import re
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated
from urllib.parse import urlsplit

from datastore.changes.occurrences import Delivery, DeliveryState, Kind, Occurrence, Webhook, wants
from datastore.dynamo import Page, Window
from datastore.jobs.jobs import Job
from datastore.journal import webhooks as webhook_store
from datastore.journal.webhooks import WebhookWithSecret
from datastore.refusals import InvalidInput
from datastore.values.ids import is_ulid
from resolvers.jobs.running import JobRun, begin_job, new_job
from resolvers.loading import batched
from resolvers.requests.context import Context, NodeOf, Role, Services
from resolvers.values.node_ids import node_id

# ── addresses ──

LONGEST_URL = 2000

_NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",  # the metadata service of one cloud
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "3fff::/20",
        ),
    )
)
_GLOBAL_UNICAST = ip_network("2000::/3")
_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a webhook is: parsed, and allowed as far as the URL says."""

    url: str
    secure: bool
    host: str


class ForbiddenAddress(Exception):
    """An address that nothing is sent to; the message says why."""


def check_address(text: str, allowed: Sequence[str], *, secure: bool) -> None:
    """ForbiddenAddress unless a request may be sent to this address."""
    address = ip_address(text.partition("%")[0])
    if any(address in ip_network(network) for network in allowed):
        return
    if not secure:
        raise ForbiddenAddress("http is only for networks of RINGSIDE_WEBHOOK_NETWORKS")
    if "%" in text or not _is_public(address):
        raise ForbiddenAddress(f"{text} is not a public address")


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


def parse_destination(url: str, allowed: Sequence[str]) -> Destination:
    """The destination that a URL names; InvalidInput with the reason if nothing may be sent there."""
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise _refused(f"It has at most {LONGEST_URL} characters, all of them plain ASCII.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _refused("It cannot be read.") from None
    if parts.scheme not in ("https", "http") or not host or port == 0:
        raise _refused("It begins with https:// and names a host.")
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise _refused("It may not contain a user or a password.")
    if parts.fragment:
        raise _refused("It may not have a fragment.")
    destination = Destination(url, parts.scheme == "https", host)
    _check_host(destination, allowed)
    return destination


def _check_host(destination: Destination, allowed: Sequence[str]) -> None:
    if not destination.secure and not allowed:
        raise _refused("It begins with https://.")
    host = destination.host
    if ":" in host or _ends_in_number(host):
        try:
            check_address(host, allowed, secure=destination.secure)
        except ForbiddenAddress as reason:
            raise _refused(f"Nothing is sent there: {reason}.") from None
        except ValueError:
            raise _refused(f"{host[:80]} is not an IP address in its usual form.") from None
    elif not _HOST.fullmatch(host):
        raise _refused(f"{host[:80]} cannot be a host name: between dots go 1 to 63 letters, digits and dashes.")


def _ends_in_number(host: str) -> bool:
    """Whether systems may read a host as an IPv4 address, in any of its forms: 127.1, 2130706433, 0x7f.0.0.1."""
    last = host.rstrip(".").rpartition(".")[2]
    return last.isdecimal() or last.startswith("0x")


def _refused(reason: str) -> InvalidInput:
    return InvalidInput(f"This is not an address for a webhook. {reason}", path=("input", "url"))


# ── webhooks ──

WebhookId = Annotated[str, NodeOf("Webhook")]

REDELIVER = "REDELIVER"
SECRET_PREFIX = "whsec_"  # noqa: S105 - how secrets begin
_SECRET_BYTES = 32
_RESOLVE_SECONDS = 3.0


# ── reading ──


async def webhooks(ctx: Context, /, *, window: Window) -> Page[Webhook]:
    """Oldest first."""
    ctx.with_role(Role.ADMIN)
    return await webhook_store.read_webhooks_page(ctx.table, window)


async def webhook_node(ctx: Context, key: str) -> Webhook | None:
    return await webhook_store.read_webhook(ctx.table, key) if is_ulid(key) and ctx.viewer.may(Role.ADMIN) else None


async def deliveries(
    ctx: Context, webhook: Webhook, /, *, state: DeliveryState | None = None, window: Window
) -> Page[Delivery]:
    """Newest first."""
    ctx.with_role(Role.ADMIN)
    states = tuple(DeliveryState) if state is None else (state,)
    return await webhook_store.read_deliveries_page(ctx.table, webhook.id, states, window)


async def delivery_node(ctx: Context, key: str) -> Delivery | None:
    webhook, _, ulid = key.partition(":")
    if not (ctx.viewer.may(Role.ADMIN) and is_ulid(webhook) and is_ulid(ulid)):
        return None
    return await webhook_store.read_delivery(ctx.table, webhook, ulid)


@batched
async def delivery_occurrences(ctx: Context, deliveries: Sequence[Delivery], /) -> list[Occurrence | None]:
    return await webhook_store.read_occurrences_of(ctx.table, deliveries)


# ── writing ──


async def add_webhook(ctx: Context, /, *, url: str, kinds: list[str]) -> WebhookWithSecret:
    ctx.with_role(Role.ADMIN)
    destination = parse_destination(url, ctx.services.policy.webhook_networks)
    wanted = _validate_kinds(kinds)
    await _check_names_addresses(destination, ctx.services.policy.webhook_networks)
    new = Webhook(ctx.new_id(), url, wanted, ctx.now(), _new_secret())
    added = await webhook_store.add_webhook(ctx.table, new, ctx.unit)
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
            raise _refused(f"{destination.host} leads to where nothing is sent: {reason}.") from None


def _new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


async def remove_webhook(ctx: Context, /, *, webhook: WebhookId) -> str:
    """The id of the removed webhook."""
    ctx.with_role(Role.ADMIN)
    removed_id = node_id("Webhook", webhook)
    await webhook_store.remove_webhook(ctx.table, webhook, ctx.unit, removed_id)
    await ctx.services.journal.learn(ctx.table)
    return removed_id


async def rotate_webhook_secret(ctx: Context, /, *, webhook: WebhookId) -> WebhookWithSecret:
    ctx.with_role(Role.ADMIN)
    return await webhook_store.rotate_secret(ctx.table, webhook, _new_secret(), ctx.unit)


async def redeliver(ctx: Context, /, *, webhook: WebhookId, since: datetime) -> Job:
    """A job that lets everything that occurred since then wait again."""
    ctx.with_role(Role.ADMIN)
    await webhook_store.read_active(ctx.table, webhook)
    if since > ctx.now():
        raise InvalidInput("Name a time in the past.", path=("input", "since"))
    job = new_job(ctx, REDELIVER, {"webhook": webhook, "since": since.isoformat()})
    return await begin_job(ctx, job, *ctx.unit.occurred(Kind.WEBHOOK_REDELIVERED, f"Webhook:{webhook}"))


async def redeliver_job(services: Services, run: JobRun) -> str:
    """Queue deliveries again. Started over after an interruption, it repeats some."""
    id_, since = run.input["webhook"], datetime.fromisoformat(run.input["since"])
    await services.journal.learn(services.table)
    async for delivery in webhook_store.deliveries_between(services.table, id_, since, run.job.started_at):
        webhook = services.journal.webhook(id_)
        if webhook is None:  # nothing deletes what is queued for it from now on
            break
        if wants(webhook, delivery.kind):
            run.done += await webhook_store.requeue(services.table, delivery, services.clock())
    if services.journal.webhook(id_) is None:
        return "The webhook was removed."
    return f"{run.done} occurrences will be delivered again."
