"""What arrives, to all who listen: one poll per topic and process, however many listen.

Law: a listener that begins at a position gets every record that becomes visible at a later one, once, oldest first;
one that comes back with the mark of its last event gets what it missed in between. Records are found by positions
that grow with time, and a write takes a while from its position to its commit. So a position counts as passed only
`HELD_BACK` seconds later; and each look goes back over the last `OVERLAP` seconds, longer than a request may live, to
find what was committed later still. Those come late, but they come.

Why not the change stream of the table: it is one more service to run, and no engine here has it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeAlias, TypeVar

import structlog

from datastore.dynamo import DynamoError
from datastore.ids import first_id_of

V = TypeVar("V")

SECONDS = 1.0
HELD_BACK = timedelta(seconds=0.5)
OVERLAP = timedelta(seconds=15)
LOGGED = 2_000
_log = structlog.get_logger("ringside.live")


@dataclass(frozen=True, slots=True)
class Arrival(Generic[V]):
    """A record that became visible at `position`. `mark` is where to come back to after it."""

    position: str
    record: V
    mark: str = ""


Look: TypeAlias = Callable[[str, str], Awaitable[tuple[list[Arrival[Any]], str]]]
"""What arrived past one position and up to another, oldest first, and the position that it is complete to."""


class Arrivals(Generic[V]):
    """One topic: a log of what arrived since somebody listens, and who reads it."""

    def __init__(self, look: Look, clock: Callable[[], datetime]) -> None:
        self._look = look
        self._clock = clock
        self._log: deque[Arrival[V]] = deque(maxlen=LOGGED)
        self._logged = 0
        self._seen: set[str] = set()
        self._settled: str | None = None
        self._changed = asyncio.Condition()
        self._listeners = 0
        self._polling: asyncio.Task[None] | None = None

    @property
    def deserted(self) -> bool:
        return self._listeners == 0

    async def listen(self, after: str) -> AsyncGenerator[Arrival[V]]:
        self._listeners += 1
        if self._polling is None:
            # Not in the first listener's context: its deadline and its meter are not the topic's.
            self._polling = asyncio.get_running_loop().create_task(self._poll(), context=contextvars.Context())
        try:
            async for arrival in self._from(after):
                yield arrival
        finally:
            self._listeners -= 1
            if self.deserted:
                await self.stop()

    async def stop(self) -> None:
        polling, self._polling = self._polling, None
        if polling is not None:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)

    async def _from(self, start: str) -> AsyncIterator[Arrival[V]]:
        async with self._changed:
            while self._settled is None:
                await self._changed.wait()
            read, settled = self._logged, self._settled
        mark, given, back = start, set[str](), start < settled
        while True:
            horizon = first_id_of(self._clock() - OVERLAP)
            async for arrival in self._between(mark, settled):
                mark = max(mark, arrival.position)
                if arrival.position >= horizon:  # what is older, no look will find again
                    given.add(arrival.position)
                yield replace(arrival, mark=mark)
            while (logged := await self._logged_since(read)) is not None:
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
        """What the log holds from a number on, waiting for the first; None when it has already dropped some."""
        async with self._changed:
            while self._logged == read:
                await self._changed.wait()
            new = self._logged - read
            return list(self._log)[-new:] if new <= len(self._log) else None

    async def _poll(self) -> None:
        looked = self._clock()
        while True:
            now = self._clock()
            bound = max(first_id_of(now - HELD_BACK), self._settled or "")
            try:
                found = [arrival async for arrival in self._between(first_id_of(looked - OVERLAP), bound)]
            except DynamoError as error:
                _log.warning("a topic could not be looked at; trying again", reason=str(error))
            except Exception:  # noqa: BLE001 - one bad look must not end the topic for its listeners
                _log.exception("a topic cannot be looked at")
            else:
                await self._publish(found, bound)
                looked = now
            await asyncio.sleep(SECONDS)

    async def _publish(self, found: list[Arrival[V]], bound: str) -> None:
        async with self._changed:
            if self._settled is not None:  # the first look only says what is there already
                fresh = [arrival for arrival in found if arrival.position not in self._seen]
                self._log.extend(fresh)
                self._logged += len(fresh)
            self._seen = {arrival.position for arrival in found}
            self._settled = bound
            self._changed.notify_all()
