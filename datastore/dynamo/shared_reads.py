"""Eventually consistent reads, shared by those who want the same at once.

A read joins one for the same that is under way, unless a write of this process that could have changed the answer has
ended since that one began: after a write was acknowledged, the process reads it. Consistent reads are never shared,
since another process may have written in between.

A single attempt is shared, not its repetitions: each request repeats a failed attempt until its own deadline, so no
request fails because another one ran out of time. An attempt is bounded by the transport's own timeouts, and its units
are charged to the request that began it. A shared answer must not be changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from datastore.dynamo.budgets import shared_context
from datastore.dynamo.invalidation import INVALIDATION, Invalidation, first_word
from datastore.dynamo.retries import persist
from datastore.dynamo.transport.single_flight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Iterator

T = TypeVar("T")


class SharedReads:
    """The reads of one table that are under way."""

    def __init__(self, invalidation: Invalidation = INVALIDATION) -> None:
        self._invalidation = invalidation
        self._attempts: SingleFlight[tuple[str, Hashable], Any] = SingleFlight(shared_context)

    async def read(self, key: Hashable, partition: str, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The answer to an attempt for this key, repeated until the deadline; equal keys mean equal reads."""
        answer: T = await persist(self._attempts.run, (partition, key), attempt)
        return answer

    def invalidate(self, partitions: Iterator[str]) -> None:
        """After a write under these partition keys: later reads do not join those that may have missed it."""
        under_way = tuple(self._attempts)
        if not under_way:
            return
        changed: set[str] = set()
        for partition in partitions:
            words = self._invalidation.words(first_word(partition))
            if words is None:
                changed.update(first_word(partition) for partition, _ in under_way)
                break
            changed |= words
        for place in under_way:
            if first_word(place[0]) in changed:
                self._attempts.forget(place)

    async def close(self) -> None:
        await self._attempts.close()
