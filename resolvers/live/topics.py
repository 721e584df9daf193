"""What changes, to all who watch it: one poll per topic and process, however many listen.

Law: while a topic has listeners, its `look` runs every `seconds`; each listener gets the current value at once and then
every value that differs from the one before, in order, none of them twice. A listener that is slow gets the newest
value and misses those between. When the last listener leaves, the polling ends.

`changes` is for values that replace each other; for records that follow each other, none of which may be missed, there
is `arrivals`, whose law stands in resolvers/arrivals.py.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable
from contextlib import aclosing
from datetime import datetime
from typing import Any, Generic, TypeVar, cast

import structlog

from datastore.dynamo import DynamoError
from datastore.refusals import Overloaded
from resolvers.live.feed import Arrival, Arrivals, Look

V = TypeVar("V")

SECONDS = 2.0
MOST_POLLED = 500
"""Topics of arrivals in one process: each asks the table twice a second, and strangers choose their names."""
_log = structlog.get_logger("ringside.live")


class Live:
    """The topics that are being watched in this process."""

    def __init__(self) -> None:
        self._topics: dict[Hashable, _Topic[Any]] = {}
        self._arrivals: dict[Hashable, Arrivals[Any]] = {}

    async def changes(
        self, name: Hashable, look: Callable[[], Awaitable[V]], *, seconds: float = SECONDS
    ) -> AsyncIterator[V]:
        """The topic's value now, and each time it is another. `look` of the first listener serves all of them."""
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(look, seconds)
        try:
            async with aclosing(topic.listen()) as values:
                async for value in values:
                    yield cast("V", value)
        finally:
            if topic.deserted and self._topics.get(name) is topic:
                del self._topics[name]

    async def arrivals(
        self, name: Hashable, look: Look, after: str, clock: Callable[[], datetime]
    ) -> AsyncGenerator[Arrival[Any]]:
        """Every record that becomes visible past a position. `look` of the first listener serves all of them."""
        topic = self._arrivals.get(name)
        if topic is None:
            if len(self._arrivals) >= MOST_POLLED:
                raise Overloaded
            topic = self._arrivals[name] = Arrivals(look, clock)
        try:
            async with aclosing(topic.listen(after)) as arrivals:
                async for arrival in arrivals:
                    yield arrival
        finally:
            if topic.deserted and self._arrivals.get(name) is topic:
                del self._arrivals[name]

    async def close(self) -> None:
        topics: list[_Topic[Any] | Arrivals[Any]] = [*self._topics.values(), *self._arrivals.values()]
        for topic in topics:
            await topic.stop()
        self._topics.clear()
        self._arrivals.clear()


class _Topic(Generic[V]):
    """One value that is looked at again and again."""

    def __init__(self, look: Callable[[], Awaitable[V]], seconds: float) -> None:
        self._look = look
        self._seconds = seconds
        self._value: V | None = None
        self._version = 0
        self._changed = asyncio.Condition()
        self._listeners = 0
        self._polling: asyncio.Task[None] | None = None

    @property
    def deserted(self) -> bool:
        return self._listeners == 0

    async def listen(self) -> AsyncGenerator[V]:
        self._listeners += 1
        if self._polling is None:
            # Not in the first listener's context: its deadline and its meter are not the topic's.
            self._polling = asyncio.get_running_loop().create_task(self._poll(), context=contextvars.Context())
        seen = 0
        try:
            while True:
                async with self._changed:
                    while self._version <= seen:
                        await self._changed.wait()
                    seen, value = self._version, self._value
                yield cast("V", value)
        finally:
            self._listeners -= 1
            if self.deserted:
                await self.stop()

    async def stop(self) -> None:
        polling, self._polling = self._polling, None
        if polling is not None:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)

    async def _poll(self) -> None:
        while True:
            try:
                value = await self._look()
            except DynamoError as error:
                _log.warning("a topic could not be looked at; trying again", reason=str(error))
            except Exception:  # noqa: BLE001 - one bad look must not end the topic for its listeners
                _log.exception("a topic cannot be looked at")
            else:
                if self._version == 0 or value != self._value:
                    async with self._changed:
                        self._value = value
                        self._version += 1
                        self._changed.notify_all()
            await asyncio.sleep(self._seconds)
