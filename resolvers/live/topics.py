"""What changes, to all who watch it: one poll per topic and process, however many listen.

Law: while a topic has listeners, its `look` runs every `seconds`; each listener gets the current value at once and then
every value that differs from the one before, in order, none of them twice. A listener that is slow gets the newest
value and misses those between. When the last listener leaves, the polling ends.

`changes` is for values that replace each other; for records that follow each other, none of which may be missed, there
is `arrivals`, whose law stands in `feed`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import aclosing, contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, cast

from datastore.refusals import Overloaded
from resolvers.live.feed import Arrival, Feed, Look
from resolvers.live.poller import Poller

V = TypeVar("V")

SECONDS = 2.0
MOST_POLLED = 500
"""Topics of arrivals in one process: each asks the table twice a second, and strangers choose their names."""


class _Polled(Protocol):
    poller: Poller


T = TypeVar("T", bound=_Polled)


class Live:
    """The topics that are being watched in this process."""

    def __init__(self) -> None:
        self._topics: dict[Hashable, _Topic[Any]] = {}
        self._feeds: dict[Hashable, Feed[Any]] = {}

    async def changes(
        self, name: Hashable, look: Callable[[], Awaitable[V]], *, seconds: float = SECONDS
    ) -> AsyncIterator[V]:
        """The topic's value now, and each time it is another. `look` of the first listener serves all of them."""
        with _joined(self._topics, name, lambda: _Topic(look, seconds)) as topic:
            async with aclosing(topic.listen()) as values:
                async for value in values:
                    yield cast("V", value)

    async def arrivals(
        self, name: Hashable, look: Look, after: str, clock: Callable[[], datetime]
    ) -> AsyncGenerator[Arrival[Any]]:
        """Every record that becomes visible past a position. `look` of the first listener serves all of them."""
        if name not in self._feeds and len(self._feeds) >= MOST_POLLED:
            raise Overloaded
        with _joined(self._feeds, name, lambda: Feed(look, clock)) as feed:
            async with aclosing(feed.listen(after)) as arrivals:
                async for arrival in arrivals:
                    yield arrival

    async def close(self) -> None:
        """End all topics, and with them the streams of their listeners."""
        topics: list[_Polled] = [*self._topics.values(), *self._feeds.values()]
        for topic in topics:
            await topic.poller.close()


@contextmanager
def _joined(topics: dict[Hashable, T], name: Hashable, make: Callable[[], T]) -> Iterator[T]:
    """The topic of this name, for as long as anybody listens to it."""
    topic = topics.get(name)
    if topic is None:
        topic = topics[name] = make()
    try:
        yield topic
    finally:
        if topic.poller.idle and topics.get(name) is topic:
            del topics[name]


class _Topic(Generic[V]):
    """One value that is looked at again and again."""

    def __init__(self, look: Callable[[], Awaitable[V]], seconds: float) -> None:
        self.poller = Poller(self._poll, seconds)
        self._look = look
        self._value: V | None = None
        self._version = 0

    async def listen(self) -> AsyncGenerator[V]:
        seen = 0
        async with self.poller.listening():
            while await self.poller.until(partial(self._is_newer, seen)):
                seen = self._version
                yield cast("V", self._value)

    def _is_newer(self, seen: int) -> bool:
        return self._version > seen

    async def _poll(self) -> bool:
        value = await self._look()
        if self._version and value == self._value:
            return False
        self._value = value
        self._version += 1
        return True
