"""Webhooks: sending a message, signed and only to an address that was checked, and delivering what waits.

The check is where the socket is made, for exactly the address that it then connects to. So a name that is resolved
anew, or a number that the system reads as another address, cannot lead elsewhere. Redirects are not followed, no proxy
of the environment is used, no cookie is kept, and of the response at most 64 KB are read.
"""

import asyncio
import base64
import hmac
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

import aiohttp
import orjson
import structlog

from datastore.changes.occurrences import DELIVERY_SHARDS, Delivery, Occurrence, Webhook
from datastore.dynamo import iso
from datastore.jobs.leases import Held
from datastore.journal import webhooks
from datastore.refusals import InvalidInput
from resolvers.journal.occurrences import id_of
from resolvers.journal.webhooks import SECRET_PREFIX, ForbiddenAddress, check_address, parse_destination
from resolvers.live.background import Repeated, uneven, unless_failed
from resolvers.requests.context import Services
from resolvers.values.node_ids import node_id

# ── messages ──


def message(occurrence: Occurrence) -> bytes:
    """What is sent; the same bytes at every attempt.

    Of two messages about an object, the one with the greater `sequence` is the later one, as a text.
    """
    at = iso(occurrence.at)
    data = {
        "id": node_id("Occurrence", occurrence.ulid),
        "at": at,
        "kind": occurrence.kind,
        "source": occurrence.source,
        "actor": id_of(occurrence.actor),
        "object": id_of(occurrence.object),
        "ground": occurrence.ground,
        "note": occurrence.note,
    }
    return orjson.dumps(
        {"type": occurrence.kind, "timestamp": at, "occurredAt": at, "sequence": occurrence.ulid, "data": data}
    )


# ── signatures ──
# Signatures of messages as the Standard Webhooks specification defines them (version 1, symmetric).


def sign(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """One signature for each secret, separated by spaces: a receiver may know any of them."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets)


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


# ── pace ──


@dataclass(slots=True)
class Pace:
    """How often is looked, how long is waited, and how much is under way. In seconds where nothing else is said."""

    check: float = 5.0
    """How often a process looks for webhooks that nobody sends to, at the latest."""
    tenure: float = 600.0
    """After these a webhook is left to the process that comes next, so that those started later get some."""
    clear: float = 60.0
    """A removed webhook's deliveries are deleted after these: no process adds any by then."""
    poll: float = 1.0
    """Between two looks at a shard in which something is due."""
    stuck: float = 5.0
    """The pause of a shard where everything waits for its next attempt: to read it costs up to 125 units."""
    send: float = 10.0
    """How long a receiver has to answer."""
    first_pause: float = 2.0
    """Before the second attempt, at the most; it doubles with every attempt."""
    give_up_after: timedelta = timedelta(days=1)
    at_once: int = 32
    """Requests under way to one webhook. There are ten webhooks at most, so in all there are 320."""
    window: int = 1000
    """Deliveries of a shard in memory."""


PACE = Pace()
"""Of all webhooks."""


# ── sending ──

MOST_RESPONSE_BYTES = 65_536
_SUCCESS = range(200, 300)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one attempt: the response's status, if there was one, and why it counts as failed."""

    status: int | None
    error: str | None = None


class Sender:
    """HTTP connections to webhooks: encrypted ones to public addresses, and any to the allowed networks."""

    def __init__(self, sessions: Mapping[bool, aiohttp.ClientSession], allowed: Sequence[str]) -> None:
        self._sessions = sessions
        self._allowed = allowed

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        try:
            destination = parse_destination(url, self._allowed)
            session = self._sessions[destination.secure]
            async with (
                asyncio.timeout(PACE.send),
                session.post(url, data=body, headers=headers, allow_redirects=False) as response,
            ):
                await _read_away(response)
                if response.status in _SUCCESS:
                    return Outcome(response.status)
                return Outcome(response.status, f"it answered {response.status}")
        except InvalidInput as refused:  # the allowed networks have changed since it was added
            return Outcome(None, refused.message)
        except TimeoutError:
            return Outcome(None, f"it did not answer within {PACE.send:.0f} s")
        except (aiohttp.ClientError, OSError) as error:
            return Outcome(None, _reason(error))


async def _read_away(response: aiohttp.ClientResponse) -> None:
    """Read a short response to its end, so that the connection can be used again; close it within a long one."""
    read = 0
    async for chunk in response.content.iter_any():
        read += len(chunk)
        if read > MOST_RESPONSE_BYTES:
            response.close()
            return


def _reason(error: Exception) -> str:
    forbidden: BaseException | None = error
    while forbidden is not None:
        if isinstance(forbidden, _ForbiddenSocket):
            return str(forbidden)
        forbidden = forbidden.__cause__ or forbidden.__context__
    # As texts, an answer that is none and a body that cannot be written have the whole address, which may be a secret.
    said: object = error
    if isinstance(error, aiohttp.ClientResponseError):
        said = error.message
    elif type(error) is aiohttp.ClientOSError:
        said = error.__cause__ or error.errno
    return f"{type(error).__name__}: {said}"


class _ForbiddenSocket(OSError):
    """A connection that may not be made; aiohttp passes an OSError on."""


@asynccontextmanager
async def open_sender(allowed: Sequence[str]) -> AsyncIterator[Sender]:
    async with _session(allowed, secure=True) as secure, _session(allowed, secure=False) as plain:
        yield Sender({True: secure, False: plain}, allowed)


def _session(allowed: Sequence[str], *, secure: bool) -> aiohttp.ClientSession:
    def checked_socket(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        try:
            check_address(address[0], allowed, secure=secure)
        except ForbiddenAddress as reason:
            raise _ForbiddenSocket(f"nothing is sent there: {reason}") from reason
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made

    # Without a limit, since who sends has one for each webhook: a receiver that hangs holds up no other. A name is
    # looked up once at a time, for ten seconds: a process has four threads for all lookups, those of the table too.
    connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=10, socket_factory=checked_socket)
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("Accept-Encoding",),
        headers={"User-Agent": "Ringside-Webhooks"},
    )


# ── delivering ──
# A process acquires the leases of webhooks, and sends what waits for these.
#
# Each message is sent at least once, in no particular order: the receiver can tell from its `sequence` which is later.
# A failed one is tried again after a pause that doubles, with full jitter, for a day from its first failure, and then
# given up. It holds up no other. A receiver that hangs or is slow delays its own messages only: each webhook may have
# `Pace.at_once` requests under way.
#
# A webhook's lease is renewed while this process sends to it. If the process is killed, another one acquires the lease
# once it has lapsed, and sends what still waits; what was accepted but not marked as delivered is then sent again.
#
# A shard in which nothing is due is polled again after a second, and after longer and longer pauses while nothing
# comes; what this process writes itself ends a pause at once.

_LONGEST_PAUSE = 3600.0
_WRONG_CLOCK = timedelta(minutes=1)
"""A next attempt that is later than it can be by so much was set by a clock that was wrong: it is due."""
_MOST_POLLS = 8
"""The longest pause of a shard to which nothing comes, in pauses of one that is busy."""

_log = structlog.get_logger("ringside.webhooks")


@dataclass(slots=True)
class Counts:
    """What a process has done so far."""

    delivered: int = 0
    failed: int = 0
    dead: int = 0


class Deliverer(Repeated):
    """The webhooks that this process sends to."""

    def __init__(self, services: Services, sender: Sender) -> None:
        self.counts = Counts()
        self.services = services
        self.sender = sender
        self._known: list[Webhook] = []
        self._workers: dict[str, Worker] = {}
        super().__init__(self._check, lambda: uneven(PACE.check, 0.8), "webhooks could not be read", _log)
        services.journal.on_delivery = self._expect

    def _expect(self, delivery: Delivery) -> None:
        """This process is about to write a delivery."""
        if worker := self._workers.get(delivery.webhook):
            worker.expected[delivery.shard].set()

    async def _check(self) -> None:
        """Where there are none, the process is told of the first one (see `Watch`), and reads nothing here."""
        journal = self.services.journal
        if self._known or journal.has_webhooks or not journal.is_current:
            await self.acquire_free()

    async def acquire_free(self) -> None:
        """Learn the webhooks, and acquire those that no living process sends to."""
        services, asked_at = self.services, monotonic()
        self._known = await webhooks.read_webhooks(services.table)
        services.journal.know(self._known, asked_at)
        self._workers = {key: worker for key, worker in self._workers.items() if not worker.task.done()}
        for webhook in self._known:
            if worker := self._workers.get(webhook.id):
                worker.webhook = webhook
            elif services.leases.is_free(webhook):
                lease = await services.leases.acquire(webhook)
                if lease is not None:
                    self._workers[webhook.id] = Worker(self, lease)

    async def drain(self) -> None:
        """Deliver what is due, for a command; webhooks that other processes send to are left to them."""
        first: dict[str, int] = {}
        while True:
            await self.acquire_free()
            if all(self._is_drained(webhook, first) for webhook in self._known if webhook.active):
                return
            await asyncio.sleep(PACE.poll / 4)

    def _is_drained(self, webhook: Webhook, first: dict[str, int]) -> bool:
        """Whether nothing is due here, or another process has renewed its lease since it was first read."""
        if worker := self._workers.get(webhook.id):
            return worker.is_idle and not worker.task.done()
        return webhook.beat != first.setdefault(webhook.id, webhook.beat)

    async def close(self) -> None:
        """Stop sending, and leave the webhooks to other processes at once."""
        await super().close()
        tasks = [worker.task for worker in self._workers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Worker:
    """A webhook while this process sends to it."""

    def __init__(self, deliverer: Deliverer, lease: Held[Webhook]) -> None:
        self.webhook = lease.record
        """As it was when this process last read it."""
        self.expected = [asyncio.Event() for _ in range(DELIVERY_SHARDS)]
        """Set for a shard in which this process is about to write something."""
        self._deliverer = deliverer
        self._services = deliverer.services
        self._lease = lease
        self._until = monotonic() + uneven(PACE.tenure)
        self._places = asyncio.Semaphore(PACE.at_once)
        self._under_way: set[str] = set()
        self._idle: set[int] = set()
        """The shards whose last poll found nothing that is due."""
        problem = "a webhook is no longer this process's, or could not be cleared; it is tried again"
        hold = unless_failed(self._hold(), problem, _log, webhook=self.webhook.id)
        self.task = asyncio.get_running_loop().create_task(hold)

    @property
    def is_idle(self) -> bool:
        return len(self._idle) == DELIVERY_SHARDS and not self._under_way

    def _goes_on(self) -> bool:
        return self.webhook.active and monotonic() < self._until

    async def _hold(self) -> None:
        try:
            await self._lease.renewed_during(self._work())
        finally:
            await self._lease.leave()

    async def _work(self) -> None:
        if self.webhook.active:
            async with asyncio.TaskGroup() as sending:
                for shard in range(DELIVERY_SHARDS):
                    sending.create_task(self._watch(shard, sending))
        else:
            await asyncio.sleep(PACE.clear)
            await webhooks.clear_webhook(self._services.table, self.webhook.id)

    async def _watch(self, shard: int, sending: asyncio.TaskGroup) -> None:
        """Send what is due in a shard, again and again."""
        past, quiet = None, PACE.poll
        while self._goes_on():
            busy = set(self._under_way)  # what ends during the read is still in its answer
            read = webhooks.read_waiting(self._services.table, self.webhook.id, shard, PACE.window, past)
            waiting = await unless_failed(read, "deliveries could not be read", _log, webhook=self.webhook.id)
            if waiting is None:
                await asyncio.sleep(PACE.stuck)
                continue
            # If so many wait that one poll does not show all, the next one goes on from there.
            past = waiting[-1].ulid if len(waiting) == PACE.window else None
            due = [one for one in waiting if one.ulid not in busy and not self._is_paused(one)]
            for delivery in due:
                await self._places.acquire()
                if not self._goes_on():
                    self._places.release()
                    break
                self._under_way.add(delivery.ulid)
                sending.create_task(self._deliver(delivery))
            (self._idle.discard if due or past else self._idle.add)(shard)
            pause = PACE.poll if due else PACE.stuck if waiting else quiet
            expected = await self._rest(shard, pause)
            quiet = PACE.poll if waiting or expected else min(2 * quiet, _MOST_POLLS * PACE.poll)

    def _is_paused(self, delivery: Delivery) -> bool:
        now = self._services.clock()
        latest = now + timedelta(seconds=_LONGEST_PAUSE) + _WRONG_CLOCK
        return delivery.next_at is not None and now < delivery.next_at < latest

    async def _rest(self, shard: int, pause: float) -> bool:
        """Pause before the next poll. If this process writes something, whose transaction takes a moment: a second."""
        try:
            await asyncio.wait_for(self.expected[shard].wait(), pause)
        except TimeoutError:
            return False
        self.expected[shard].clear()
        await asyncio.sleep(PACE.poll)
        return True

    async def _deliver(self, delivery: Delivery) -> None:
        """Send a message, and store what came of it."""
        try:
            if self.webhook.active and self._lease.is_safe:
                sent, about = self._send_and_record(delivery), {"webhook": self.webhook.id, "occurrence": delivery.ulid}
                await unless_failed(sent, "a delivery failed", _log, **about)
        finally:
            self._under_way.discard(delivery.ulid)
            self._places.release()

    async def _send(self, delivery: Delivery) -> Outcome:
        occurrence = delivery.content
        if occurrence is None:
            return Outcome(None, "its content is gone")
        now = self._services.clock()
        body = message(occurrence)
        timestamp = int(now.timestamp())
        headers = {
            "content-type": "application/json",
            "webhook-id": occurrence.ulid,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign(self.webhook.secrets(now), occurrence.ulid, timestamp, body),
        }
        return await self._deliverer.sender.send(self.webhook.url, headers, body)

    async def _send_and_record(self, delivery: Delivery) -> None:
        outcome = await self._send(delivery)
        table, now, counts = self._services.table, self._services.clock(), self._deliverer.counts
        if outcome.error is None:
            await webhooks.mark_delivered(table, delivery, outcome.status or 0, now)
            counts.delivered += 1
            return
        failed = replace(delivery, since=failing_since(delivery, now))
        next_at = next_attempt(failed, now)
        await webhooks.mark_failed(table, failed, outcome.status, outcome.error, next_at=next_at, now=now)
        if next_at is not None:
            counts.failed += 1
            return
        counts.dead += 1
        _log.warning("a delivery was given up", webhook=self.webhook.id, occurrence=delivery.ulid, reason=outcome.error)


def failing_since(delivery: Delivery, now: datetime) -> datetime:
    """From when the day counts after which a delivery that has failed now is given up.

    That is its first failure. A time in which no process tried does not count: it moves with that.
    """
    if delivery.since is None or delivery.next_at is None:
        return now
    return min(now, delivery.since + max(timedelta(), now - delivery.next_at))


def next_attempt(delivery: Delivery, now: datetime) -> datetime | None:
    """When to try again after a failure; None after a day of them."""
    if now - (delivery.since or now) >= PACE.give_up_after:
        return None
    longest = min(_LONGEST_PAUSE, PACE.first_pause * 2 ** min(delivery.attempts, 16))
    return now + timedelta(seconds=uneven(longest, 0.0))
