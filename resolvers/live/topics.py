"""The topics that subscriptions listen to: one poll per topic and process, however many clients listen.

While a topic has listeners, its `look` runs every `seconds`. Each listener gets the current value at once, and then
every value that differs from the previous one, in order and without repeats. A slow listener gets the newest value and
misses those in between. The poll ends when the last listener leaves.

`changes` is for values that replace each other. `arrivals` is for records that follow each other, none of which may be
missed; `feed` describes what it guarantees.
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
MAX_FEEDS = 500
"""Feeds per process: each queries the table every second, and clients choose their names."""


class _Polled(Protocol):
    poller: Poller


T = TypeVar("T", bound=_Polled)


class Live:
    """The topics that have listeners in this process."""

    def __init__(self) -> None:
        self._topics: dict[Hashable, _Topic[Any]] = {}
        self._feeds: dict[Hashable, Feed[Any]] = {}

    async def changes(
        self, name: Hashable, look: Callable[[], Awaitable[V]], *, seconds: float = SECONDS
    ) -> AsyncIterator[V]:
        """The topic's current value, then every changed one. The first listener's `look` is used for all of them."""
        with _joined(self._topics, name, lambda: _Topic(look, seconds)) as topic:
            async with aclosing(topic.listen()) as values:
                async for value in values:
                    yield cast("V", value)

    async def arrivals(
        self, name: Hashable, look: Look, after: str, clock: Callable[[], datetime]
    ) -> AsyncGenerator[Arrival[Any]]:
        """Every record that becomes visible after a position. The first listener's `look` is used for all of them."""
        if name not in self._feeds and len(self._feeds) >= MAX_FEEDS:
            raise Overloaded
        with _joined(self._feeds, name, lambda: Feed(look, clock)) as feed:
            async with aclosing(feed.listen(after)) as arrivals:
                async for arrival in arrivals:
                    yield arrival

    async def close(self) -> None:
        """Ends all topics, and with them their listeners' streams."""
        topics: list[_Polled] = [*self._topics.values(), *self._feeds.values()]
        for topic in topics:
            await topic.poller.close()


@contextmanager
def _joined(topics: dict[Hashable, T], name: Hashable, make: Callable[[], T]) -> Iterator[T]:
    """The topic of this name, which is dropped when its last listener leaves."""
    topic = topics.get(name)
    if topic is None:
        topic = topics[name] = make()
    try:
        yield topic
    finally:
        if topic.poller.idle and topics.get(name) is topic:
            del topics[name]


class _Topic(Generic[V]):
    """One value that is read repeatedly."""

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
