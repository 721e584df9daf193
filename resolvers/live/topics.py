"""The topics that subscriptions listen to: one poll per topic and process, however many clients listen.

While a topic has listeners, its `read` runs every `seconds`. Each listener gets the current value at once, and then
every value that differs from the previous one, in order and without repeats. A slow listener gets the newest value and
misses those in between. The poll ends when the last listener leaves.

`rows` is for lists, of which each listener may want a different number of rows: one read of the largest number serves
all. `changes` is for one value, a list of one row. `arrivals` is for records that follow each other, none of which may
be missed; `feed` describes what it guarantees. Each of these kinds is bounded by itself, per process and per network
address: a listener beyond a bound is refused with Overloaded.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any, Generic, TypeVar, cast

from datastore.refusals import Overloaded
from resolvers.live.feed import Arrival, Feed, Poller, ResumePoint, Source
from resolvers.values.network_addresses import network

V = TypeVar("V")

SECONDS = 2.0
MOST_TOPICS = 500
"""Topics of each kind per process: each reads the table every second or two, and clients choose among them."""
TOPICS_PER_ADDRESS = 100
"""How many of them one network address may listen to, so that none can take them all.

A topic counts for every address that listens to it, not only for the one that opened it: otherwise topics could be kept
open, uncounted, by joining them.
"""


T = TypeVar("T", bound="_List[Any] | Feed[Any]")


class Live:
    """The topics that have listeners in this process. Each is read again every so many seconds."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._values: _OpenTopics[_List[Any]] = _OpenTopics()
        self._lists: _OpenTopics[_List[Any]] = _OpenTopics()
        self._feeds: _OpenTopics[Feed[Any]] = _OpenTopics()

    async def changes(self, name: Hashable, read: Callable[[], Awaitable[V]], address: str) -> AsyncGenerator[V]:
        """The topic's current value, then every changed one. The first listener's `read` is used for all of them."""

        async def read_one(_: int) -> Sequence[V]:
            return (await read(),)

        with self._values.joined(name, lambda: _List(read_one, self._seconds), address) as topic:
            async with aclosing(topic.listen(1)) as lists:
                async for (value,) in lists:
                    yield cast("V", value)

    async def rows(
        self, name: Hashable, read: Callable[[int], Awaitable[Sequence[V]]], size: int, address: str
    ) -> AsyncGenerator[Sequence[V]]:
        """The topic's first `size` rows, then again whenever they have changed."""
        with self._lists.joined(name, lambda: _List(read, self._seconds), address) as topic:
            async with aclosing(topic.listen(size)) as lists:
                async for rows in lists:
                    yield cast("Sequence[V]", rows)

    async def arrivals(
        self, name: Hashable, source: Source, resume_point: ResumePoint, address: str, *, resumed: bool
    ) -> AsyncGenerator[Arrival[Any]]:
        """Every record that becomes visible and was not told. The first listener's source is used for all of them."""
        with self._feeds.joined(name, lambda: Feed(source), address) as feed:
            async with aclosing(feed.listen(resume_point, resumed=resumed)) as arrivals:
                async for arrival in arrivals:
                    yield arrival

    async def close(self) -> None:
        """End all topics, and with them their listeners' streams."""
        opened = (self._values.by_name, self._lists.by_name, self._feeds.by_name)
        topics: list[_List[Any] | Feed[Any]] = [topic for by_name in opened for topic in by_name.values()]
        for topic in topics:
            await topic.poller.close()


class _OpenTopics(Generic[T]):
    """The topics of one kind that have listeners."""

    def __init__(self) -> None:
        self.by_name: dict[Hashable, T] = {}
        self._of_address: dict[str, Counter[Hashable]] = {}
        """What each network address listens to, and with how many listeners."""

    @contextmanager
    def joined(self, name: Hashable, make: Callable[[], T], address: str) -> Iterator[T]:
        """The topic of this name, which is dropped when its last listener leaves; Overloaded if there are enough."""
        with self._counted(name, network(address)):
            topic = self.by_name.get(name)
            if topic is None:
                if len(self.by_name) >= MOST_TOPICS:
                    raise Overloaded(retry_after=1.0)
                topic = self.by_name[name] = make()
            try:
                yield topic
            finally:
                if topic.poller.idle and self.by_name.get(name) is topic:
                    del self.by_name[name]

    @contextmanager
    def _counted(self, name: Hashable, client: str) -> Iterator[None]:
        """Count a listener for its address during the block."""
        names = self._of_address.setdefault(client, Counter())
        if name not in names and len(names) >= TOPICS_PER_ADDRESS:
            raise Overloaded(retry_after=1.0)
        names[name] += 1
        try:
            yield
        finally:
            names[name] -= 1
            if not names[name]:
                del names[name]
            if not names:
                del self._of_address[client]


class _List(Generic[V]):
    """The first rows of a list that is read repeatedly."""

    def __init__(self, read: Callable[[int], Awaitable[Sequence[V]]], seconds: float) -> None:
        self.poller = Poller(self._poll, seconds)
        self._read = read
        self._sizes: Counter[int] = Counter()
        self._rows: Sequence[V] = ()
        self._size = 0
        """The number of rows that the last read asked for."""
        self._asked = 0
        """The same, of a read under way."""
        self._version = 0

    async def listen(self, size: int) -> AsyncGenerator[Sequence[V]]:
        self._sizes[size] += 1
        seen, last = 0, None
        try:
            if 0 < self._asked < size:
                self.poller.hurry()
            async with self.poller.listening():
                while await self.poller.until(partial(self._is_newer, seen, size)):
                    seen, rows = self._version, self._rows[:size]
                    if rows != last:
                        last = rows
                        yield rows
        finally:
            self._sizes -= Counter([size])

    def _is_newer(self, seen: int, size: int) -> bool:
        return self._version > seen and self._size >= size

    async def _poll(self) -> bool:
        size = self._asked = max(self._sizes)
        rows = await self._read(size)
        if self._version and size <= self._size and rows == self._rows:
            self._size = size
            return False
        self._rows, self._size = rows, size
        self._version += 1
        return True
