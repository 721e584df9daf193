"""A feed of records as they arrive: one poll per topic and process, however many clients listen.

A listener that starts at a position gets every record that becomes visible at a later position, once, oldest first. A
listener that returns with the text of its last event gets the records that it missed, even those that were committed
late while it was away.

Positions grow with time, and a write is committed some time after it has chosen its position: at the latest when its
request ends. So a position counts as passed only after `COMMIT_DELAY`; and every `FULL_INTERVAL` a poll reads again as
far back as a request may take, and `CLOCK_SKEW` longer. It finds records that were committed late. They are late, but
not lost. What was seen once is not logged again, even if a poll in between did not find it.

All reads are consistent. One that is behind could show a record again that was deleted since, to a listener that was
told of it elsewhere. A returning listener begins with a read of its own: it shows what the listener was not told yet,
and which records a later poll must not tell it again.

A clock that is corrected may step back by more than `CLOCK_SKEW`. Then the polls begin again at its present time, and
so do the listeners: what was told by the clock that was ahead is noted, so that no poll tells it again.

A topic costs 2 read units a second while nothing arrives. Each arrival is read about five times with a request timeout
of 10 seconds, and 34 times with one of 300.

The table's change stream is not used: it is another service to run, and the embedded engines do not have it.

The text that a listener keeps says where to resume. It is the id of the listener's last event, and names what the
listener was told:

    01K9ZD3Q7W…  .  XcWq0g9Zt1I…
    `complete_to`   names of the positions told since, 4 bytes each, as base64url

Up to the position `complete_to` each record is committed, and was told or is not wanted. After it a record may still be
committed late, so every position told there is named. A listener that returns is told all other records after
`complete_to`. The names are checksums: one late record in 16 million is taken for a told one, at worst.

A text names the latest 256 positions told, so it has at most 1,400 characters. With more, `complete_to` moves to the
last position that is not named. The text is not sealed. A client that changes it only changes what it is told, and may
begin at any position anyway.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeAlias, TypeVar
from zlib import crc32

import structlog

from datastore.dynamo import SingleFlight, pieces, shared_context
from datastore.values.ids import CLOCK_SKEW, first_id, is_ulid
from resolvers.live.background import unless_failed

# ── resume point ──

MOST_NAMED = 256
_NAME_BYTES = 4


@dataclass(slots=True)
class ResumePoint:
    """Where a stream resumes: all up to `complete_to` was told, and some positions after it."""

    complete_to: str
    up_to: str = ""
    """If it begins at one record: what is committed up to its position when its listener returns counts as told."""
    _named: set[bytes] = field(default_factory=set)
    """Names from a listener's text whose positions are not known yet."""
    _latest: dict[str, bytes] = field(default_factory=dict)
    """Positions in the order in which they were told, with their names."""

    @classmethod
    def parse(cls, text: str) -> ResumePoint:
        """What a text says; ValueError if it is not one."""
        complete_to, dot, names = text.partition(".")
        if not is_ulid(complete_to) or not dot:
            raise ValueError("A position is missing.")
        named = b64decode(names + "=" * (-len(names) % 4), altchars=b"-_", validate=True)
        if len(named) % _NAME_BYTES or len(named) > MOST_NAMED * _NAME_BYTES:
            raise ValueError("The names are incomplete or too many.")
        return cls(complete_to, _named={*pieces(named, _NAME_BYTES)})

    @classmethod
    def after(cls, position: str) -> ResumePoint:
        """Where a listener resumes if only the position of one record is known."""
        return cls(position, up_to=position)

    @property
    def text(self) -> str:
        names = b"".join([*self._latest.values(), *sorted(self._named)])
        return f"{self.complete_to}.{urlsafe_b64encode(names).rstrip(b'=').decode()}"

    def includes(self, position: str) -> bool:
        return (
            position <= max(self.complete_to, self.up_to) or position in self._latest or _name(position) in self._named
        )

    def add(self, position: str, complete_to: str) -> None:
        """Add a position that was told, when all up to `complete_to` had been told."""
        name = self._latest[position] = _name(position)
        self._named.discard(name)
        self.complete_to = max(self.complete_to, complete_to)
        while self._latest:
            oldest = next(iter(self._latest))
            if oldest > self.complete_to and len(self._latest) + len(self._named) <= MOST_NAMED:
                break
            del self._latest[oldest]
            self.complete_to = max(self.complete_to, oldest)

    def reopen(self, horizon: str) -> None:
        """One record's position does not say what was told before it: lower `complete_to` to the horizon."""
        if self.up_to:
            self.complete_to = min(self.complete_to, horizon)

    def step_back(self, position: str) -> None:
        """Lower `complete_to` to before this position; the positions that are named stay delivered."""
        self.complete_to = min(self.complete_to, position)

    def forget_unknown(self) -> None:
        """Drop the names that no record has: their records were deleted."""
        self._named.clear()


def _name(position: str) -> bytes:
    return crc32(position.encode()).to_bytes(_NAME_BYTES, "big")


# ── poller ──
# One loop for any number of listeners: it begins with the first listener and ends with the last.
#
# A read that fails is logged and repeated. The poll follows the rule of `SingleFlight`: it runs in a context of
# its own, a listener may leave at any time without affecting the others, and the end of the process ends the poll and
# all waiting.

_log = structlog.get_logger("ringside.live")


class Poller:
    """Calls `read` repeatedly, with pauses of `seconds`. It returns whether there is news."""

    def __init__(self, read: Callable[[], Awaitable[bool]], seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._listeners = 0
        self._polls: SingleFlight[None, None] = SingleFlight(shared_context)
        self._news = asyncio.Condition()
        self._wanted = asyncio.Event()
        self._closed = False

    @property
    def idle(self) -> bool:
        """Whether there are no listeners."""
        return self._listeners == 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        self._listeners += 1
        self._polls.begin(None, self._poll)
        try:
            yield
        finally:
            self._listeners -= 1
            if self.idle:
                await self._polls.close()

    def hurry(self) -> None:
        """End the present pause, so that the next poll begins at once."""
        self._wanted.set()

    async def until(self, condition: Callable[[], bool]) -> bool:
        """Wait until a poll has made the condition true; False if the process ends before."""
        async with self._news:
            await self._news.wait_for(lambda: self._closed or condition())
        return not self._closed

    async def close(self) -> None:
        """End the poll, and all waiting."""
        self._closed = True
        await self._polls.close()
        await self._tell()

    async def _poll(self) -> None:
        while True:
            if await unless_failed(self._read(), "a topic could not be read; trying again", _log):
                await self._tell()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await self._wanted.wait()
            self._wanted.clear()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()


# ── feed ──

V = TypeVar("V")

SECONDS = 1.0
COMMIT_DELAY = timedelta(seconds=0.5)
FULL_INTERVAL = timedelta(seconds=10)
RECENT = timedelta(seconds=3)
"""How far the polls between full ones go back."""
MOST_LOGGED = 2_000


@dataclass(frozen=True, slots=True)
class Arrival(Generic[V]):
    """A record that became visible at `position`. A listener that returns after it resumes at `resume_after`."""

    position: str
    record: V
    resume_after: str = ""


ReadArrivals: TypeAlias = Callable[[str, str], Awaitable[tuple[list[Arrival[Any]], str]]]
"""Reads the arrivals after one position and up to another, oldest first, and the position they are complete to.

It is consistent: it shows every write that has ended before it begins.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a feed's records come from: they are committed at most `longest_write` after their positions."""

    read: ReadArrivals
    clock: Callable[[], datetime]
    longest_write: timedelta
    seconds: float = SECONDS
    """Between two polls."""


@dataclass(slots=True, eq=False)
class _Listener:
    """Where a listener is in the log, and which arrivals it was told before the log has them."""

    resume_point: ResumePoint
    start: str
    """Later polls may find arrivals up to here; it was told them, or does not want them."""
    passed: int
    """How many arrivals of the log it has passed."""
    told_early: set[str] = field(default_factory=set)

    def wants(self, position: str) -> bool:
        return position > self.start and position not in self.told_early

    def step_back(self, position: str) -> None:
        """Want what comes after this position: the clock has stepped back to it."""
        self.start = min(self.start, position)
        self.resume_point.step_back(position)

    def tell(self, arrival: Arrival[V], complete_to: str) -> Arrival[V]:
        self.resume_point.add(arrival.position, complete_to)
        return replace(arrival, resume_after=self.resume_point.text)


class Feed(Generic[V]):
    """One topic: a log of the arrivals since its first listener came."""

    def __init__(self, source: Source) -> None:
        self.poller = Poller(self._poll, source.seconds)
        self._source = source
        self._overlap = source.longest_write + CLOCK_SKEW
        self._listeners: set[_Listener] = set()
        self._polled_at: datetime | None = None
        self._polled_fully_at: datetime | None = None
        self._log: deque[tuple[Arrival[V], str]] = deque(maxlen=MOST_LOGGED)
        """Arrivals, each with the position up to which all had been logged before."""
        self._logged = 0
        self._seen: dict[str, int] = {}
        """The positions that later polls may find again, each with its number in the log; -1 for the first poll's."""
        self._complete_to: str | None = None

    async def listen(self, resume_point: ResumePoint, *, resumed: bool) -> AsyncGenerator[Arrival[V]]:
        """The arrivals that were not told yet: a new listener's after its start, or a returning one's."""
        async with self.poller.listening():
            if not await self.poller.until(lambda: self._complete_to is not None):
                return
            resume_point.reopen(self._horizon)
            if resume_point.complete_to > self._ceiling:  # from a clock that was ahead
                resume_point.step_back(self._horizon)
            listener = _Listener(resume_point, resume_point.complete_to, self._logged)
            self._listeners.add(listener)
            try:
                async for arrival in self._told_to(listener, self._ceiling if resumed else ""):
                    yield arrival
            finally:
                self._listeners.discard(listener)

    async def _told_to(self, listener: _Listener, known_to: str) -> AsyncIterator[Arrival[V]]:
        async for arrival in self._catch_up(listener, known_to):
            yield arrival
        while await self.poller.until(lambda: self._logged != listener.passed):
            new = self._logged - listener.passed
            if new > len(self._log):
                async for arrival in self._missed_in_log(listener):
                    yield arrival
                continue
            listener.passed += new
            for arrival, complete_to in list(self._log)[-new:]:
                if listener.wants(arrival.position):
                    yield listener.tell(arrival, complete_to)

    async def _catch_up(self, listener: _Listener, known_to: str) -> AsyncIterator[Arrival[V]]:
        """What is committed and was not told; it may have been told elsewhere what the poll has yet to reach."""
        horizon, reached, resume_point = self._horizon, self._complete_to or "", listener.resume_point
        up_to = max(reached, known_to, resume_point.up_to)
        async for arrival in self._between(resume_point.complete_to, up_to):
            position, was_told = arrival.position, resume_point.includes(arrival.position)
            if position > reached and not was_told:
                continue
            if position >= horizon:  # later polls do not find older arrivals again
                listener.told_early.add(position)
            now_told = listener.tell(arrival, min(position, horizon))
            if not was_told:
                yield now_told
        resume_point.forget_unknown()

    async def _missed_in_log(self, listener: _Listener) -> AsyncIterator[Arrival[V]]:
        """What the log has dropped before this slow listener came to it."""
        passed, listener.passed = listener.passed, self._logged
        horizon, resume_point = self._horizon, listener.resume_point
        async for arrival in self._between(min(resume_point.complete_to, horizon), self._complete_to or ""):
            position, number = arrival.position, self._seen.get(arrival.position)
            was_told = resume_point.includes(position) if number is None else number < passed
            if not was_told and listener.wants(position):
                listener.told_early.add(position)
                yield listener.tell(arrival, min(position, horizon))

    @property
    def _horizon(self) -> str:
        """No later poll finds arrivals before this position."""
        return first_id((self._polled_fully_at or self._source.clock()) - self._overlap)

    @property
    def _ceiling(self) -> str:
        """No arrival that was told anywhere is after this position."""
        return first_id(self._source.clock() + CLOCK_SKEW)

    async def _between(self, past: str, up_to: str) -> AsyncIterator[Arrival[V]]:
        while past < up_to:
            arrivals, past = await self._source.read(past, up_to)
            for arrival in arrivals:
                yield arrival

    async def _poll(self) -> bool:
        now, is_first = self._source.clock(), self._complete_to is None
        if self._polled_at is not None and now < self._polled_at - CLOCK_SKEW:
            return await self._step_back(self._polled_at, now)
        bound = max(first_id(now - COMMIT_DELAY), self._complete_to or "")
        is_full = self._polled_fully_at is None or now >= self._polled_fully_at + FULL_INTERVAL
        horizon = self._horizon
        since = horizon if is_full else first_id((self._polled_at or now) - RECENT)
        found = [arrival async for arrival in self._between(since, bound)]
        fresh = [arrival for arrival in found if arrival.position not in self._seen]
        if is_first:  # it only finds earlier arrivals
            self._seen = {arrival.position: -1 for arrival in fresh}
        else:
            self._log_new(fresh, horizon)
        self._complete_to, self._polled_at = bound, now
        if is_full:
            self._polled_fully_at = now
            self._seen = {position: number for position, number in self._seen.items() if position >= self._horizon}
        return is_first or bool(fresh)

    def _log_new(self, arrivals: Sequence[Arrival[V]], horizon: str) -> None:
        for number, arrival in enumerate(arrivals, self._logged):
            self._seen[arrival.position] = number
        self._log.extend((arrival, horizon) for arrival in arrivals)
        self._logged += len(arrivals)

    async def _step_back(self, polled_at: datetime, now: datetime) -> bool:
        """A full poll after the clock has stepped back: whether there are arrivals that had not been logged."""
        logged_to, horizon, fresh = self._horizon, first_id(now - self._overlap), []
        async for arrival in self._between(horizon, first_id(polled_at + CLOCK_SKEW)):
            if arrival.position >= logged_to and arrival.position not in self._seen:
                fresh.append(arrival)
            else:
                self._seen.setdefault(arrival.position, -1)
        for listener in self._listeners:
            listener.step_back(horizon)
        self._log_new(fresh, horizon)
        self._complete_to, self._polled_at, self._polled_fully_at = first_id(now - COMMIT_DELAY), now, now
        return bool(fresh)
