"""A feed of records as they arrive: one poll per topic and process, however many clients listen.

A listener that starts at a position gets every record that becomes visible at a later position, once, oldest first. A
listener that returns with the id of its last event gets the records that it missed.

Positions grow with time, and a write is committed some time after it has chosen its position: at the latest when its
request ends. So a position counts as passed only after `SETTLE_DELAY`; and every `FULL_SECONDS` a look reads again as
far back as a request may take, and `CLOCK_SKEW` longer. It finds records that were committed late. They are late, but
not lost. What was seen once is not logged again, even if a look between did not find it.

All reads are consistent. One that is behind could show a record again that was deleted since, to a listener that was
told of it elsewhere. A returning listener begins with a read of its own: what it finds at or before the listener's
position counts as told, so that nothing is told twice. A record that was committed late while the listener was away is
therefore missed.

A topic costs 2 read units a second while nothing arrives. Each arrival is read about five times with a request timeout
of 10 seconds, and 34 times with one of 300.

The table's change stream is not used: it is another service to run, and the embedded engines do not have it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeAlias, TypeVar

from datastore.ids import first_id
from resolvers.live.poller import Poller

V = TypeVar("V")

SECONDS = 1.0
SETTLE_DELAY = timedelta(seconds=0.5)
CLOCK_SKEW = timedelta(seconds=5)
"""How far the clocks of processes may differ."""
FULL_SECONDS = timedelta(seconds=10)
RECENT = timedelta(seconds=3)
"""How far the looks between full ones go back."""
MAX_LOGGED = 2_000


@dataclass(frozen=True, slots=True)
class Arrival(Generic[V]):
    """A record that became visible at `position`. A listener that returns after it resumes at `resume_after`."""

    position: str
    record: V
    resume_after: str = ""


Look: TypeAlias = Callable[[str, str], Awaitable[tuple[list[Arrival[Any]], str]]]
"""Reads the arrivals after one position and up to another, oldest first, and the position they are complete to.

It is consistent: it shows every write that has ended before it begins.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a feed's records come from: they are committed at most `longest_write` after their positions."""

    look: Look
    clock: Callable[[], datetime]
    longest_write: timedelta


@dataclass(slots=True)
class _Listener:
    """Where a listener began, what it was told last, and which arrivals it was told without the log."""

    start: str
    resumed: bool
    read: int
    """How many arrivals of the log it has passed."""
    resume_after: str
    told: set[str] = field(default_factory=set)

    def wants(self, position: str) -> bool:
        """A late arrival may lie before `start`: a returning listener missed it, a new one does not want it."""
        return position not in self.told and (self.resumed or position > self.start)

    def tell(self, arrival: Arrival[V]) -> Arrival[V]:
        self.resume_after = max(self.resume_after, arrival.position)
        return replace(arrival, resume_after=self.resume_after)


class Feed(Generic[V]):
    """One topic: a log of the arrivals since its first listener came."""

    def __init__(self, source: Source) -> None:
        self.poller = Poller(self._poll, SECONDS)
        self._source = source
        self._overlap = source.longest_write + CLOCK_SKEW
        self._looked: datetime | None = None
        self._looked_fully: datetime | None = None
        self._log: deque[Arrival[V]] = deque(maxlen=MAX_LOGGED)
        self._logged = 0
        self._seen: dict[str, int] = {}
        """The positions that later looks may find again, each with its number in the log; -1 for the first look's."""
        self._settled: str | None = None

    async def listen(self, after: str, *, resumed: bool) -> AsyncGenerator[Arrival[V]]:
        """The arrivals after a position: a new listener's, or the last one that a returning listener was told."""
        async with self.poller.listening():
            async for arrival in self._from(after, resumed=resumed):
                yield arrival

    async def _from(self, start: str, *, resumed: bool) -> AsyncIterator[Arrival[V]]:
        if not await self.poller.until(lambda: self._settled is not None):
            return
        listener = _Listener(start, resumed, self._logged, start)
        async for arrival in self._missed_before(listener):
            yield arrival
        while await self.poller.until(lambda: self._logged != listener.read):
            new = self._logged - listener.read
            if new > len(self._log):
                async for arrival in self._missed_in_log(listener):
                    yield arrival
                continue
            listener.read += new
            for arrival in list(self._log)[-new:]:
                if listener.wants(arrival.position):
                    yield listener.tell(arrival)

    async def _missed_before(self, listener: _Listener) -> AsyncIterator[Arrival[V]]:
        """What is committed after the listener's start already. What is committed before it counts as told."""
        horizon, start = self._horizon, listener.start
        async for arrival in self._committed(min(start, horizon) if listener.resumed else start, start):
            if arrival.position >= horizon:  # later looks do not find older arrivals again
                listener.told.add(arrival.position)
            if arrival.position > start:
                yield listener.tell(arrival)

    async def _missed_in_log(self, listener: _Listener) -> AsyncIterator[Arrival[V]]:
        """What the log has dropped before this slow listener came to it."""
        missed, listener.read = listener.read, self._logged
        async for arrival in self._committed(min(listener.resume_after, self._horizon), listener.resume_after):
            number = self._seen.get(arrival.position)
            is_missed = arrival.position > listener.resume_after if number is None else number >= missed
            if is_missed and listener.wants(arrival.position):
                listener.told.add(arrival.position)
                yield listener.tell(arrival)

    @property
    def _horizon(self) -> str:
        """No later look finds arrivals before this position."""
        return first_id((self._looked_fully or self._source.clock()) - self._overlap)

    async def _committed(self, past: str, at_least: str) -> AsyncIterator[Arrival[V]]:
        """All that is committed now, up to a position or up to where the poll has come, if that is later."""
        up_to = max(at_least, self._settled or "")
        async for arrival in self._between(past, up_to):
            yield arrival

    async def _between(self, past: str, up_to: str) -> AsyncIterator[Arrival[V]]:
        while past < up_to:
            arrivals, past = await self._source.look(past, up_to)
            for arrival in arrivals:
                yield arrival

    async def _poll(self) -> bool:
        now, is_first = self._source.clock(), self._settled is None
        bound = max(first_id(now - SETTLE_DELAY), self._settled or "")
        is_full = self._looked_fully is None or now >= self._looked_fully + FULL_SECONDS
        since = self._horizon if is_full else first_id((self._looked or now) - RECENT)
        found = [arrival async for arrival in self._between(since, bound)]
        fresh = [arrival for arrival in found if arrival.position not in self._seen]
        for number, arrival in enumerate(fresh, self._logged):
            self._seen[arrival.position] = -1 if is_first else number
        if not is_first:  # the first look only finds earlier arrivals
            self._log.extend(fresh)
            self._logged += len(fresh)
        self._settled, self._looked = bound, now
        if is_full:
            self._looked_fully = now
            horizon = self._horizon
            self._seen = {position: number for position, number in self._seen.items() if position >= horizon}
        return is_first or bool(fresh)
