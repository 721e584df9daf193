"""Limits per network address, over all processes: on votes, new visitors, new guests, and emails asked for.

The emails with a code that an email address gets are limited in the same way.

Invariant: whatever an address does and however many processes serve it, the hits admitted in a period (a minute, an
hour … by the clock), plus the share of the previous period's hits that a sliding window of one period still covers,
stay within the limit; and each process writes at most once a second for each of the limits. A process reserves parts
of a limit in the table in advance and admits hits from them. What it has reserved and not used is lost for the period:
at most a quarter of the limit per process; for one with few hits, what the limit allows in a second, or a fiftieth of
it. While a process waits to write, requests wait up to a second.

An IPv6 address counts as its /64, which is what one customer of a provider gets. A visitor is new when they draw a pair
on a board they have never voted on, or start a visit, unless this process has counted them before. A cookie or a
visit's token proves nothing, since these can be collected; people who only look at pages are not counted.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from math import ceil, floor

from datastore.dynamo import OFF, BoundedDict, Rate, SingleFlight, parse_rate, shared_context, within_deadline
from datastore.people import address_use
from datastore.people.address_use import AddressUse
from datastore.refusals import RateLimited
from datastore.values.seal import Seal
from resolvers.requests.context import Context, Services
from resolvers.values.network_addresses import network

VOTES = "VOTES"
VISITORS = "VISITORS"
EMAILS = "EMAILS"
GUESTS = "GUESTS"
CODES = (("CODES-ASKER", "5/day"), ("CODES-HOUR", "5/hour"), ("CODES-DAY", "20/day"))
"""How many emails with a code go to an email address: in a day to one asking network, in an hour, and in a day.

In this order: what one limit refuses does not count towards the next, so no network uses up what is others'.
"""

_MOST_WAITING = 64
"""Requests of one address that wait for the next part, for at most a second; any more are refused."""

_MOST_KEPT = 20_000
_MOST_VISITORS = 50_000
_KEPT_PERIODS = 3
"""A period's item is read until the next period ends."""


def address_hash(seal: Seal, address: str) -> str:
    """The keyed hash that stands for an address in the table."""
    return seal.keyed_hash("address", network(address).encode()).hex()


def allowed_hits(rate: Rate, previous: int, elapsed: float) -> int:
    """How many hits a period may have so far, after so many in the previous period."""
    return floor(rate.limit - previous * (1 - elapsed / rate.seconds))


def seconds_to_wait(rate: Rate, hits: int, previous: int, elapsed: float) -> float:
    """The time until the next hit is allowed: in this period, or in the next one, but no more than a whole period."""
    if hits < rate.limit:
        return _allowed_from(rate, previous, rate.limit - hits) - elapsed
    return min(rate.seconds, rate.seconds - elapsed + _allowed_from(rate, hits, rate.limit))


def _allowed_from(rate: Rate, previous: int, room: int) -> float:
    """The time within a period from which a hit is allowed, with room for so many."""
    return rate.seconds * max(0.0, 1 - (room - 1) / previous) if previous else 0.0


@dataclass(slots=True)
class _Reserved:
    """What this process may still admit for one address in a period, and when it may ask for more."""

    period: int = -1
    left: int = 0
    previous: int | None = None
    """What all processes reserved in the previous period. While it is not known, the whole limit is assumed."""
    used: int = 0
    """What all processes had reserved in this period when this one last asked."""
    size: int = 0
    reserved_at: float = float("-inf")
    refused_until: float = float("-inf")
    waiting: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def take(self, period: int) -> bool:
        if self.period != period or self.left == 0:
            return False
        self.left -= 1
        return True

    def next_size(self, rate: Rate, *, soon: bool) -> int:
        """Twice the last part if that was used up soon, enough for those who wait, at most a quarter of the limit."""
        smallest = max(ceil(rate.limit / rate.seconds), rate.limit // 50)
        doubled = 2 * self.size if soon else 0
        return min(max(smallest, doubled, self.waiting), max(1, rate.limit // 4))


class AddressLimits:
    """What one process has reserved, by limit and address."""

    def __init__(self, services: Services) -> None:
        self.interval = 1.0
        """Seconds between two writes about an address and a limit."""
        self._services = services
        self._reserved: BoundedDict[tuple[str, str], _Reserved] = BoundedDict(_MOST_KEPT)
        self._visitors: BoundedDict[str, None] = BoundedDict(_MOST_VISITORS)
        self._admissions: SingleFlight[str, None] = SingleFlight(shared_context)

    async def admit_vote(self, ctx: Context) -> None:
        """Count a vote; RateLimited if the viewer's address has cast too many."""
        await self._take(VOTES, self._services.policy.votes_per_address, ctx.address)

    async def admit_email(self, ctx: Context) -> None:
        """Count an email that the viewer asks for; RateLimited if their address has asked for too many."""
        await self._take(EMAILS, self._services.policy.emails_per_address, ctx.address)

    async def admit_guest(self, ctx: Context) -> None:
        """Count a new guest; RateLimited if their address has had too many."""
        await self._take(GUESTS, self._services.policy.new_guests_per_address, ctx.address)

    async def admits_code(self, ctx: Context, email_hash: str) -> bool:
        """Count a code for an email address, which a keyed hash stands for; False if it gets no more for now."""
        asker = f"{email_hash} {network(ctx.address)}".encode()
        asked_by = self._services.seal.keyed_hash("sign-in asker", asker).hex()
        try:
            for (kind, limit), key in zip(CODES, (asked_by, email_hash, email_hash), strict=True):
                await self._take_of(kind, limit, key)
        except RateLimited:
            return False
        return True

    async def admit_visitor(self, ctx: Context) -> None:
        """Count a visitor who has not voted on a board; RateLimited if the address has had too many new ones."""
        visitor = ctx.viewer.id
        if ctx.viewer.is_signed_in or visitor in self._visitors:
            return
        # Requests of one visitor at the same time count once, and are admitted or refused together.
        await within_deadline(self._admissions.run(visitor, partial(self._admit, visitor, ctx.address)))

    async def _admit(self, visitor: str, address: str) -> None:
        await self._take(VISITORS, self._services.policy.new_visitors_per_address, address)
        self._visitors[visitor] = None

    async def close(self) -> None:
        await self._admissions.close()

    async def _take(self, kind: str, limit: str, address: str) -> None:
        if limit != OFF and address:
            await self._take_of(kind, limit, address_hash(self._services.seal, address))

    async def _take_of(self, kind: str, limit: str, hashed: str) -> None:
        rate, key = parse_rate(limit), (kind, hashed)
        reserved = self._reserved[key] = self._reserved.get(key) or _Reserved()
        while not reserved.take(self._period(rate)[0]):
            wait = reserved.refused_until - asyncio.get_running_loop().time()
            if wait > 0 or reserved.waiting >= _MOST_WAITING:
                raise RateLimited(retry_after=ceil(max(wait, self.interval) * 10) / 10)
            await self._wait_for_more(reserved, rate, key)

    def _period(self, rate: Rate) -> tuple[int, float]:
        """The number of the present period and the seconds since it began, by the clock that all processes share."""
        period, elapsed = divmod(self._services.clock().timestamp(), rate.seconds)
        return int(period), elapsed

    async def _wait_for_more(self, reserved: _Reserved, rate: Rate, key: tuple[str, str]) -> None:
        loop = asyncio.get_running_loop()
        reserved.waiting += 1
        try:
            async with reserved.turn:
                if reserved.left and reserved.period == self._period(rate)[0]:
                    return  # reserved while this request waited for its turn
                if reserved.refused_until > loop.time():
                    return
                await asyncio.sleep(reserved.reserved_at + self.interval - loop.time())
                await self._reserve(reserved, rate, key)
        finally:
            reserved.waiting -= 1

    async def _reserve(self, reserved: _Reserved, rate: Rate, key: tuple[str, str]) -> None:
        loop, (kind, address), (period, elapsed) = asyncio.get_running_loop(), key, self._period(rate)
        reserved.size = reserved.next_size(rate, soon=loop.time() - reserved.reserved_at < 2 * self.interval)
        reserved.reserved_at = loop.time()
        if reserved.period != period:
            reserved.period, reserved.left, reserved.used, reserved.previous = period, 0, 0, None
        if reserved.previous is None and allowed_hits(rate, rate.limit, elapsed) < reserved.size:
            reserved.previous = await self._read_previous(rate, key, period)
        allowed = allowed_hits(rate, rate.limit if reserved.previous is None else reserved.previous, elapsed)
        expires = datetime.fromtimestamp((period + _KEPT_PERIODS) * rate.seconds, UTC)
        use = AddressUse(address, kind, period, expires=expires)
        size = max(1, min(reserved.size, allowed - reserved.used))  # more would be lost
        reserved.left, reserved.used = await address_use.reserve(self._services.table, use, size, allowed)
        if reserved.left == 0 and reserved.previous is None:
            reserved.previous = await self._read_previous(rate, key, period)  # for the next attempt, a second later
        elif reserved.left == 0:
            wait = seconds_to_wait(rate, reserved.used, reserved.previous or 0, elapsed)
            reserved.refused_until = loop.time() + max(self.interval, wait)

    async def _read_previous(self, rate: Rate, key: tuple[str, str], period: int) -> int:
        kind, address = key
        return min(rate.limit, await address_use.read_used(self._services.table, address, kind, period - 1))
