"""Eventually consistent reads, shared by simultaneous requests.

A read joins an equal one that is under way, unless a write of this process that may have changed the answer has ended
since that one began. So sharing hides no acknowledged write of this process; the engine itself may still be behind.
Consistent reads are never shared, since another process may have written in between.

One attempt is shared, not its retries: each request repeats a failed attempt until its own deadline, so no request
fails because another one ran out of time. The transport's timeouts bound an attempt, and its units are metered for the
request that began it. A shared answer must not be changed.

An attempt ends when nobody waits for it any more. Otherwise, while an engine hangs, attempts of requests that gave up
would queue without bound, and the engine would answer them first once it is back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from datastore.dynamo.budgets import charged_context
from datastore.dynamo.invalidation import INVALIDATION, Invalidation, first_word
from datastore.dynamo.retries import retry
from datastore.dynamo.transport.single_flight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Iterator

T = TypeVar("T")


class SharedReads:
    """The reads of one table that are under way."""

    def __init__(self, invalidation: Invalidation = INVALIDATION) -> None:
        self._invalidation = invalidation
        self._attempts: SingleFlight[tuple[str, Hashable], Any] = SingleFlight(charged_context, abandons=True)

    async def read(self, key: Hashable, partition: str, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The answer to an attempt for this key, repeated until the deadline; equal keys mean equal reads."""
        answer: T = await retry(self._attempts.run, (partition, key), attempt)
        return answer

    def invalidate(self, partitions: Iterator[str]) -> None:
        """After a write under these partition keys, later reads do not join those that may have missed it."""
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
        for partition, key in under_way:
            if first_word(partition) in changed:
                self._attempts.forget((partition, key))

    async def close(self) -> None:
        await self._attempts.close()
