"""Reads in flight, shared: many requests that want the same at once make one read of it.

- One read at a time for the same request in this process; who comes while it is under way waits for its answer.
- Consistent reads are never shared. Others are, unless a write of this process that could have touched what is read
  has ended since the read began: whoever is told of a write and then reads, reads anew (`closed`).
- Whoever began a read makes it inside the own request, and pays for it. When that request is cancelled or out of
  time, or its read fails, the next one in line reads for itself and for the others: nobody fails for another's
  reasons. Who waits does so until the own deadline.
- An answer that is shared is read by all and changed by none.

Which writes touch which reads is told by the first word of a partition key: `LEADERBOARD` of `LEADERBOARD#cats`. A
write of an item touches its own word and those of the index keys of all entities that share it (`Reach`); a word that
no entity declares touches everything.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from datastore.dynamo.errors import DeadlineExceeded
from datastore.dynamo.retries import ending
from datastore.dynamo.transport.timeouts import timeout_at

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping

T = TypeVar("T")


def word_of(partition: str) -> str:
    """What a partition key begins with: what kind of partition it is."""
    return partition.partition("#")[0]


class Reach:
    """Which partitions change when items under a partition key are written."""

    def __init__(self) -> None:
        self._words: dict[str, set[str]] = {}

    def add(self, primary: str, *indexes: str) -> None:
        """Items under such a primary key are also found under such keys of indexes; texts or templates of keys."""
        word = word_of(primary)
        self._words.setdefault(word, {word}).update(map(word_of, indexes))

    def of(self, word: str) -> set[str] | None:
        """The words of everything that a write under this word touches; None: anything."""
        words = self._words.get(word)
        # A template may begin with a hole, and then with any word.
        return None if words is None or any("{" in one for one in words) else words


REACH = Reach()  # filled by every entity that is declared


@dataclass(slots=True)
class _Flight:
    word: str
    waiting: list[asyncio.Future[tuple[Any] | None]] = field(default_factory=list)

    def land(self, answer: tuple[Any] | None) -> None:
        """Tell everybody who waits; None: somebody else must read."""
        for one in self.waiting:
            if not one.done():
                one.set_result(answer)


class Flights:
    """The reads of one table that are under way."""

    def __init__(self, reach: Reach = REACH) -> None:
        self._reach = reach
        self._under_way: dict[Hashable, _Flight] = {}

    async def share(self, key: Hashable, partition: str, read: Callable[[], Awaitable[T]]) -> T:
        """What `read` answers, or answered to somebody else with the same key who began it and is not done yet."""
        while (flight := self._under_way.get(key)) is not None:
            landed = await _landing(flight)
            if landed is not None:
                return landed[0]  # type: ignore[no-any-return]
        flight = self._under_way[key] = _Flight(word_of(partition))
        landed = None
        try:
            answer = await read()
            landed = (answer,)
            return answer
        finally:
            if self._under_way.get(key) is flight:
                del self._under_way[key]
            flight.land(landed)

    def closed(self, partitions: Iterator[str]) -> None:
        """A write under these partition keys has ended: nobody may join reads that began before and could miss it."""
        if not self._under_way:
            return
        touched: set[str] = set()
        for partition in partitions:
            reached = self._reach.of(word_of(partition))
            if reached is None:
                self._under_way.clear()
                return
            touched |= reached
        for key, flight in list(self._under_way.items()):
            if flight.word in touched:
                del self._under_way[key]


async def _landing(flight: _Flight) -> tuple[Any] | None:
    landing: asyncio.Future[tuple[Any] | None] = asyncio.get_running_loop().create_future()
    flight.waiting.append(landing)
    try:
        with timeout_at(ending()):
            return await landing
    except TimeoutError:
        message = "the request's time was used up; last: it waited for a read that another request had begun"
        raise DeadlineExceeded(message) from None


def written(parameters: Mapping[str, Any]) -> Iterator[str]:
    """The partition keys of the items that a call writes."""
    if "Key" in parameters or "Item" in parameters:
        yield _partition(parameters)
    for action in parameters.get("TransactItems", ()):
        for operation, one in action.items():
            if operation != "ConditionCheck":
                yield _partition(one)
    for requests in parameters.get("RequestItems", {}).values():
        for request in requests:
            for one in request.values():
                yield _partition(one)


def _partition(one: Mapping[str, Any]) -> str:
    partition: str = (one.get("Key") or one["Item"])["pk"]["S"]
    return partition
