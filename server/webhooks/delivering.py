"""Delivering: each process claims shards of webhooks, and sends what waits in them.

In a shard, the deliveries about one object are sent one after the other; those about different objects do not wait for
each other. A failed one is tried again after a pause that doubles, with full jitter, for a day from its occurrence, and
then given up; until then the later ones about its object wait. So a receiver gets everything at least once, and what
concerns one object in order. A receiver that hangs delays its own messages only: each webhook has its share of the
requests under way (`server.webhooks.slots`).

A shard that finds nothing new looks again after a second, and after ever longer while nothing comes; what this process
writes itself ends that at once. A process stops sending well before others may take its claim (see
`datastore.journal.webhooks`), so two processes never send from one shard, unless one was stopped for seconds. It renews
the claim of a shard without work just in time to keep it, and sends once it has been renewed again.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from datastore import journal as journal_store
from datastore.dynamo import DynamoError
from datastore.journal import DELIVERY_SHARDS, WRONG_CLOCK, Delivery, Registry, ShardClaim, Webhook
from server.webhooks.messages import message
from server.webhooks.sending import SEND_SECONDS, Outcome, Sender
from server.webhooks.signatures import sign
from server.webhooks.slots import AT_ONCE, Slots

if TYPE_CHECKING:
    from resolvers.context import Services

LOOK_SECONDS = 2.0
"""How often a process looks for webhooks and shards."""
RENEW_SECONDS = 3.0
"""How often it says that it still delivers a shard, while there is something to deliver."""
IDLE_RENEW_SECONDS = 12.0
"""And how often while there is nothing: before the claim counts as lost, with time for a slow look."""
LOST_SECONDS = 20.0
"""A claim that was not renewed for so long has lost its process."""
SAFE_SECONDS = LOST_SECONDS - SEND_SECONDS - 3.0
"""How long after renewing a claim a request may begin: it ends three seconds before the claim counts as lost."""
TENURE_SECONDS = 60.0
"""After these a shard is given up, so that processes that were started later get their share."""
CLEAR_SECONDS = 60.0
"""A removed webhook's deliveries are deleted after these: no process adds any by then."""

MARGIN = timedelta(seconds=1)
"""By how much the servers' clocks may differ."""
WINDOW = 1000
"""Deliveries of a shard in memory. If so many are tried again, the ones after them wait."""
POLL_SECONDS = 1.0
MOST_POLLS = 8
"""The longest pause of a shard to which nothing comes, in pauses of one that is busy."""
STUCK_SECONDS = 5.0
"""The pause of a shard where everything waits for its next attempt: to look costs up to 50 units."""

GIVE_UP_AFTER = timedelta(days=1)
_FIRST_PAUSE = 2.0
_LONGEST_PAUSE = 3600.0

_log = structlog.get_logger("ringside.webhooks")


@dataclass(slots=True)
class Counts:
    """What a process has done so far."""

    delivered: int = 0
    failed: int = 0
    dead: int = 0


class Deliverer:
    """The shards that this process delivers."""

    def __init__(self, services: Services, sender: Sender) -> None:
        self.counts = Counts()
        self._services = services
        self._sender = sender
        self._process = secrets.token_hex(8)
        self._workers: dict[tuple[str, int], ShardWorker] = {}
        self._seen: Mapping[tuple[str, int], ShardClaim] = {}
        """The claims as they were at the last look."""
        self._alive: set[tuple[str, int]] = set()
        """The shards whose claim was renewed by another process while this one looked."""
        self._removed: dict[str, float] = {}
        self._slots = Slots()
        self._looking: asyncio.Task[None] | None = None
        self._clearing: asyncio.Task[None] | None = None
        self._hurried = asyncio.Event()
        services.journal.on_delivery = self._expect

    def _expect(self, delivery: Delivery) -> None:
        """This process is about to write a delivery."""
        if shard := self._workers.get((delivery.webhook, delivery.shard)):
            shard.expect()

    def hurry(self) -> None:
        """Let the next look be now: a claim has to be renewed."""
        self._hurried.set()

    def start(self) -> None:
        self._looking = asyncio.get_running_loop().create_task(self._look_repeatedly())

    async def _look_repeatedly(self) -> None:
        while True:
            try:
                await self.look()
            except DynamoError as error:
                _log.info("webhooks could not be read", reason=str(error))
            except Exception:  # noqa: BLE001 - a fault with one webhook must not end the delivery of others
                _log.exception("webhooks could not be read")
            pause = random.uniform(0.5, 1.0) * LOOK_SECONDS  # noqa: S311 - spreads load, hides nothing
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurried.wait(), pause)
                await asyncio.sleep(POLL_SECONDS / 4)  # one look for all that hurry
            self._hurried.clear()

    async def look(self) -> None:
        """Learn the webhooks, keep this process's shards, and take free ones."""
        asked_at = monotonic()
        registry = await journal_store.read_registry(self._services.table)
        self._services.journal.know(registry.webhooks, asked_at)
        active = {webhook.id: webhook for webhook in registry.webhooks if webhook.active}
        self._slots.divide(active)
        for key, shard in list(self._workers.items()):
            if not await self._keep(shard, active.get(key[0])):
                del self._workers[key]
                await shard.stop()
        await self._take(registry, active)
        self._clear_removed([webhook for webhook in registry.webhooks if not webhook.active])

    async def _keep(self, shard: ShardWorker, webhook: Webhook | None) -> bool:
        """Whether the shard stays this process's: its claim is renewed when it is time."""
        if webhook is None or shard.ended:
            return False
        shard.webhook = webhook
        now = monotonic()
        if now - shard.taken_at > TENURE_SECONDS:
            return False
        if now - shard.renewed_at < (IDLE_RENEW_SECONDS if shard.is_idle else RENEW_SECONDS):
            return True
        renewed = replace(shard.claim, revision=shard.claim.revision + 1, renewed_at=self._services.clock())
        try:
            if not await journal_store.claim_shard(self._services.table, renewed, shard.claim):
                shard.lost = True
                return False
        except DynamoError:  # perhaps it was renewed: it sends nothing any more once its time is up
            shard.lost = now - shard.renewed_at > LOST_SECONDS
            return not shard.lost
        shard.claim, shard.renewed_at = renewed, now
        return True

    async def _take(self, registry: Registry, active: dict[str, Webhook]) -> None:
        """Claim free shards: all of them, or a part if there are other processes."""
        self._alive |= {key for key, claim in registry.claims.items() if self._seen.get(key, claim) != claim}
        self._seen = registry.claims
        keys = {(webhook, shard) for webhook in active for shard in range(DELIVERY_SHARDS)}
        free = [key for key in keys - self._workers.keys() if self._is_free(registry, key)]
        others = {claim.owner for claim in registry.claims.values()} - {self._process}
        random.shuffle(free)
        for key in free[: max(1, len(free) // (len(others) + 1))]:
            before = registry.claims.get(key)
            claim = ShardClaim(*key, self._process, self._services.clock(), before.revision + 1 if before else 1)
            now = monotonic()
            if await journal_store.claim_shard(self._services.table, claim, before):
                self._workers[key] = ShardWorker(self, active[key[0]], claim, now)

    def _is_free(self, registry: Registry, key: tuple[str, int]) -> bool:
        claim, now = registry.claims.get(key), self._services.clock()
        return claim is None or not now - timedelta(seconds=LOST_SECONDS) < claim.renewed_at < now + WRONG_CLOCK

    def _clear_removed(self, removed: Sequence[Webhook]) -> None:
        """Begin to delete what was left for removed webhooks, some time after they were removed.

        That may take minutes, during which the claims of other webhooks have to be renewed.
        """
        now = monotonic()
        self._removed = {webhook.id: self._removed.get(webhook.id, now) for webhook in removed}
        due = [webhook for webhook in removed if now - self._removed[webhook.id] >= CLEAR_SECONDS]
        if due and (self._clearing is None or self._clearing.done()):
            self._clearing = asyncio.get_running_loop().create_task(self._clear(due))

    async def _clear(self, removed: Sequence[Webhook]) -> None:
        try:
            for webhook in removed:
                await journal_store.clear_deliveries(self._services.table, webhook.id)
                await journal_store.delete_webhook(self._services.table, webhook)
        except DynamoError as error:
            _log.info("a removed webhook could not be cleared; it is tried again", reason=str(error))
        except Exception:  # noqa: BLE001 - it is tried again
            _log.exception("a removed webhook could not be cleared")

    async def drain(self) -> None:
        """Deliver what is due, for a command; shards that other processes deliver are left to them."""
        while True:
            await self.look()
            webhooks = [one for one in await journal_store.read_webhooks(self._services.table) if one.active]
            keys = {(webhook.id, shard) for webhook in webhooks for shard in range(DELIVERY_SHARDS)}
            if all(key in self._alive or (key in self._workers and self._workers[key].is_idle) for key in keys):
                return
            await asyncio.sleep(POLL_SECONDS / 4)

    async def close(self) -> None:
        """Stop sending, and leave the shards to other processes at once."""
        background = [task for task in (self._looking, self._clearing) if task is not None]
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await asyncio.gather(*(shard.stop() for shard in self._workers.values()))
        self._workers.clear()


class ShardWorker:
    """One shard of a webhook while this process delivers it."""

    def __init__(self, deliverer: Deliverer, webhook: Webhook, claim: ShardClaim, now: float) -> None:
        self.webhook = webhook
        self.claim = claim
        self.taken_at = self.renewed_at = now
        self.lost = False
        self.is_idle = False
        """Whether the last look found nothing that is due, and this process has written nothing since."""
        self._is_new = True
        """Whether it has yet to look; the first look costs a little more."""
        self._quiet = POLL_SECONDS
        """The next pause, if nothing waits."""
        self._expected = asyncio.Event()
        self._deliverer = deliverer
        self._services = deliverer._services  # noqa: SLF001 - the two belong together
        self._busy: dict[str, asyncio.Task[None]] = {}
        """Objects whose deliveries are being sent."""
        self._running = asyncio.get_running_loop().create_task(self._run())

    @property
    def ended(self) -> bool:
        return self._running.done()

    @property
    def _may_send(self) -> bool:
        """Whether a request that begins now ends before another process may take the shard."""
        return not self.lost and monotonic() - self.renewed_at <= SAFE_SECONDS

    def expect(self) -> None:
        """Something is about to wait here: look as often as if something had come."""
        self.is_idle = False
        self._quiet = POLL_SECONDS
        self._expected.set()
        if not self._may_send:
            self._deliverer.hurry()

    async def _run(self) -> None:
        while True:
            try:
                pause = await self._start_due()
            except DynamoError as error:
                _log.info("deliveries could not be read", webhook=self.webhook.id, reason=str(error))
                pause = POLL_SECONDS
            except Exception:  # noqa: BLE001 - a fault must not end the shard
                _log.exception("deliveries could not be read", webhook=self.webhook.id)
                pause = STUCK_SECONDS
            if self._busy:
                await self._until_fewer_are_busy()
            else:
                await self._rest(pause)

    async def _until_fewer_are_busy(self) -> None:
        """Wait until more could be sent: a look reads those that are being sent again, which costs units."""
        await asyncio.wait(self._busy.values(), timeout=POLL_SECONDS)
        while len(self._busy) > AT_ONCE:
            await asyncio.wait(self._busy.values(), timeout=POLL_SECONDS)

    async def _rest(self, pause: float) -> None:
        """Pause before the next look; less if this process writes something, which can be sent after a second."""
        began = monotonic()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._expected.wait(), pause)
        self._expected.clear()
        await asyncio.sleep(max(0.0, min(POLL_SECONDS, began + pause - monotonic())))

    async def _start_due(self) -> float:
        """Begin to send what is due; return after how many seconds to look again if that is nothing."""
        busy, now = set(self._busy), self._services.clock()
        until = now - MARGIN
        waiting = await journal_store.read_waiting(
            self._services.table, self.webhook.id, self.claim.shard, until, WINDOW, ahead=self._is_new
        )
        self._is_new = False
        due = [
            (name, deliveries)
            for name, deliveries in by_object(waiting, until).items()
            if name not in busy and not is_paused(deliveries[0], now)
        ]
        self.is_idle = not due and not busy
        if due and not self._may_send:
            self._deliverer.hurry()
            return POLL_SECONDS
        for name, deliveries in due:
            task = asyncio.get_running_loop().create_task(self._deliver(deliveries))
            self._busy[name] = task
            task.add_done_callback(lambda _, name=name: self._busy.pop(name))  # type: ignore[misc]
        if waiting:
            self._quiet = POLL_SECONDS
            return POLL_SECONDS if due else STUCK_SECONDS
        pause, self._quiet = self._quiet, min(2 * self._quiet, MOST_POLLS * POLL_SECONDS)
        return pause

    async def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Send the deliveries about one object, up to the first that fails and is tried again later."""
        try:
            for delivery in deliveries:
                async with self._deliverer._slots.take(self.webhook.id):  # noqa: SLF001 - the two belong together
                    if not self._may_send:
                        return
                    outcome = await self._send(delivery)
                    if not await self._record(delivery, outcome):
                        return
        except DynamoError as error:
            _log.info("an outcome could not be stored", webhook=self.webhook.id, reason=str(error))
        except Exception:  # noqa: BLE001 - a fault with one object must not end the shard
            _log.exception("a delivery failed", webhook=self.webhook.id, occurrence=deliveries[0].ulid)

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
        return await self._deliverer._sender.send(self.webhook.url, headers, body)  # noqa: SLF001 - they belong together

    async def _record(self, delivery: Delivery, outcome: Outcome) -> bool:
        """Store an outcome; whether the next delivery about the object may be sent."""
        table, now, counts = self._services.table, self._services.clock(), self._deliverer.counts
        if outcome.error is None:
            await journal_store.mark_delivered(table, delivery, outcome.status or 0, now)
            counts.delivered += 1
            return True
        next_at = next_attempt(delivery, now)
        await journal_store.mark_failed(table, delivery, outcome.status, outcome.error, next_at=next_at, now=now)
        if next_at is not None:
            counts.failed += 1
            return False
        counts.dead += 1
        _log.warning("a delivery was given up", webhook=self.webhook.id, occurrence=delivery.ulid, reason=outcome.error)
        return True

    async def stop(self) -> None:
        """End what is being sent, and give the shard up unless it is lost."""
        tasks = {self._running, *self._busy.values()}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if not self.lost:
            with suppress(DynamoError):
                await journal_store.release_shard(self._services.table, self.claim)


def by_object(waiting: Sequence[Delivery], until: datetime) -> dict[str, list[Delivery]]:
    """The deliveries about each object in order, up to the first that was queued again only just now.

    What was ordered before that one may not be there yet: see `read_waiting`.
    """
    groups: dict[str, list[Delivery]] = {}
    cut: set[str] = set()
    for delivery in waiting:
        name = (delivery.content and delivery.content.object) or delivery.ulid
        if name not in cut and delivery.since is not None and until <= delivery.since < until + WRONG_CLOCK:
            cut.add(name)
        if name not in cut:
            groups.setdefault(name, []).append(delivery)
    return groups


def is_paused(delivery: Delivery, now: datetime) -> bool:
    latest = now + timedelta(seconds=_LONGEST_PAUSE) + WRONG_CLOCK
    return delivery.next_at is not None and now < delivery.next_at < latest


def next_attempt(delivery: Delivery, now: datetime) -> datetime | None:
    """When to try again after a failure; None after a day."""
    began = delivery.since or (delivery.content.at if delivery.content else now)
    if now - began >= GIVE_UP_AFTER:
        return None
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(delivery.attempts, 16))
    return now + timedelta(seconds=random.uniform(0, longest))  # noqa: S311 - spreads load, hides nothing
