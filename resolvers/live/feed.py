"""A feed of records as they arrive: one poll per topic and process, however many clients listen.

A listener that starts at a position gets every record that becomes visible at a later position, once, oldest first. A
listener that returns with the id of its last event gets the records that it missed. Positions grow with time, and a
write is committed some time after it has chosen its position. So a position counts as passed only after `SETTLE_DELAY`,
and each look reads the last `OVERLAP` again, which is longer than a request may take: it finds records that were
committed even later. They are late, but not lost.

The table's change stream is not used: it is another service to run, and the embedded engines do not have it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeAlias, TypeVar

from datastore.ids import first_id
from resolvers.live.poller import Poller

V = TypeVar("V")

SECONDS = 1.0
SETTLE_DELAY = timedelta(seconds=0.5)
OVERLAP = timedelta(seconds=15)
MAX_LOGGED = 2_000


@dataclass(frozen=True, slots=True)
class Arrival(Generic[V]):
    """A record that became visible at `position`. A listener that returns after it resumes at `resume_after`."""

    position: str
    record: V
    resume_after: str = ""


Look: TypeAlias = Callable[[str, str], Awaitable[tuple[list[Arrival[Any]], str]]]
"""Reads the arrivals after one position and up to another, oldest first, and the position they are complete to."""


class Feed(Generic[V]):
    """One topic: a log of the arrivals since its first listener came."""

    def __init__(self, look: Look, clock: Callable[[], datetime]) -> None:
        self.poller = Poller(self._poll, SECONDS)
        self._look = look
        self._clock = clock
        self._looked: datetime | None = None
        self._log: deque[Arrival[V]] = deque(maxlen=MAX_LOGGED)
        self._logged = 0
        self._seen: set[str] = set()
        self._settled: str | None = None

    async def listen(self, after: str) -> AsyncGenerator[Arrival[V]]:
        async with self.poller.listening():
            async for arrival in self._from(after):
                yield arrival

    async def _from(self, start: str) -> AsyncIterator[Arrival[V]]:
        if not await self.poller.until(lambda: self._settled is not None):
            return
        read, settled = self._logged, self._settled or ""
        resume_after, given, resumed = start, set[str](), start < settled
        while True:
            horizon = first_id(self._clock() - OVERLAP)
            async for arrival in self._between(resume_after, settled):
                resume_after = max(resume_after, arrival.position)
                if arrival.position >= horizon:  # later looks do not find older arrivals again
                    given.add(arrival.position)
                yield replace(arrival, resume_after=resume_after)
            while (logged := await self._logged_since(read)) is not None:
                if not logged:
                    return
                read += len(logged)
                for arrival in logged:
                    # A late arrival may lie before `start`: a resumed listener missed it, a new one does not want it.
                    if arrival.position not in given and (resumed or arrival.position > start):
                        resume_after = max(resume_after, arrival.position)
                        yield replace(arrival, resume_after=resume_after)
            # The log has dropped arrivals that this slow listener still needs: read them from the table.
            read, settled = self._logged, self._settled or settled

    async def _between(self, past: str, up_to: str) -> AsyncIterator[Arrival[V]]:
        while past < up_to:
            arrivals, past = await self._look(past, up_to)
            for arrival in arrivals:
                yield arrival

    async def _logged_since(self, read: int) -> list[Arrival[V]] | None:
        """The logged arrivals from a number on, at least one; None if the log has dropped some of them already.

        An empty list means that the process ends.
        """
        if not await self.poller.until(lambda: self._logged != read):
            return []
        new = self._logged - read
        return list(self._log)[-new:] if new <= len(self._log) else None

    async def _poll(self) -> bool:
        now = self._clock()
        bound = max(first_id(now - SETTLE_DELAY), self._settled or "")
        since = first_id((self._looked or now) - OVERLAP)
        arrivals = [arrival async for arrival in self._between(since, bound)]
        fresh: list[Arrival[V]] = []
        if self._settled is not None:  # the first look only finds earlier arrivals
            fresh = [arrival for arrival in arrivals if arrival.position not in self._seen]
            self._log.extend(fresh)
            self._logged += len(fresh)
        is_first = self._settled is None
        self._seen = {arrival.position for arrival in arrivals}
        self._settled, self._looked = bound, now
        return is_first or bool(fresh)
