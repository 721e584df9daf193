"""What arrives, to all who listen: one poll per topic and process, however many listen.

Law: a listener that begins at a position gets every record that becomes visible at a later one, once, oldest first;
one that comes back with the mark of its last event gets what it missed in between. Records are found by positions
that grow with time, and a write takes a while from its position to its commit. So a position counts as passed only
`HELD_BACK` seconds later; and each look goes back over the last `OVERLAP` seconds, longer than a request may live, to
find what was committed later still. Those come late, but they come.

Why not the change stream of the table: it is one more service to run, and no engine here has it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeAlias, TypeVar

from datastore.ids import first_id_of
from resolvers.live.poller import Poller

V = TypeVar("V")

SECONDS = 1.0
HELD_BACK = timedelta(seconds=0.5)
OVERLAP = timedelta(seconds=15)
LOGGED = 2_000


@dataclass(frozen=True, slots=True)
class Arrival(Generic[V]):
    """A record that became visible at `position`. `mark` is where to come back to after it."""

    position: str
    record: V
    mark: str = ""


Look: TypeAlias = Callable[[str, str], Awaitable[tuple[list[Arrival[Any]], str]]]
"""What arrived past one position and up to another, oldest first, and the position that it is complete to."""


class Feed(Generic[V]):
    """One topic: a log of what arrived since somebody listens, and its listeners."""

    def __init__(self, look: Look, clock: Callable[[], datetime]) -> None:
        self.poller = Poller(self._poll, SECONDS)
        self._look = look
        self._clock = clock
        self._looked: datetime | None = None
        self._log: deque[Arrival[V]] = deque(maxlen=LOGGED)
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
        mark, given, back = start, set[str](), start < settled
        while True:
            horizon = first_id_of(self._clock() - OVERLAP)
            async for arrival in self._between(mark, settled):
                mark = max(mark, arrival.position)
                if arrival.position >= horizon:  # what is older, no look will find again
                    given.add(arrival.position)
                yield replace(arrival, mark=mark)
            while (logged := await self._logged_since(read)) is not None:
                if not logged:
                    return
                read += len(logged)
                for arrival in logged:
                    # One that comes late lies before `start`: news to who comes back, the past to who has just come.
                    if arrival.position not in given and (back or arrival.position > start):
                        mark = max(mark, arrival.position)
                        yield replace(arrival, mark=mark)
            # So slow that the log has moved on: the table knows the rest.
            read, settled = self._logged, self._settled or settled

    async def _between(self, past: str, up_to: str) -> AsyncIterator[Arrival[V]]:
        while past < up_to:
            found, past = await self._look(past, up_to)
            for arrival in found:
                yield arrival

    async def _logged_since(self, read: int) -> list[Arrival[V]] | None:
        """What the log holds from a number on, waiting for the first; None when it has already dropped some.

        Nothing at all means that the process ends.
        """
        if not await self.poller.until(lambda: self._logged != read):
            return []
        new = self._logged - read
        return list(self._log)[-new:] if new <= len(self._log) else None

    async def _poll(self) -> bool:
        now = self._clock()
        bound = max(first_id_of(now - HELD_BACK), self._settled or "")
        since = first_id_of((self._looked or now) - OVERLAP)
        found = [arrival async for arrival in self._between(since, bound)]
        fresh: list[Arrival[V]] = []
        if self._settled is not None:  # the first look only says what is there already
            fresh = [arrival for arrival in found if arrival.position not in self._seen]
            self._log.extend(fresh)
            self._logged += len(fresh)
        is_first = self._settled is None
        self._seen = {arrival.position for arrival in found}
        self._settled, self._looked = bound, now
        return is_first or bool(fresh)
