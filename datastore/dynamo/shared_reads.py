"""Eventually consistent reads, shared by simultaneous requests.

A read joins an equal one that is under way, unless a write of this process that may have changed the answer has ended
since that one began. So sharing hides no acknowledged write of this process; the engine itself may still be behind.
Consistent reads are never shared, since another process may have written in between.

One attempt is shared, not its retries: each request repeats a failed attempt until its own deadline, so no request
fails because another one ran out of time. The transport's timeouts bound an attempt, and its units are metered for the
request that began it. A shared answer must not be changed.

An attempt ends when nobody waits for it any more. Otherwise, while an engine hangs, attempts of requests that gave up
would queue without bound, and the engine would answer them first once it is back.

Equal reads begin at most four times a second, after a burst of ten. In between, requests get the last answer, at most
a quarter of a second old; an index may be further behind. A write of this process that may have changed it ends that.
So a page that everybody asks for leaves its partition room, whose 3,000 read units a second all processes share.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from datastore.dynamo.budgets import charged_context, join_work
from datastore.dynamo.invalidation import INVALIDATION, Invalidation, first_word
from datastore.dynamo.retries import retry
from datastore.dynamo.transport.single_flight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Iterator

T = TypeVar("T")
Read = tuple[str, "Hashable"]
"""A read's partition and its key; equal keys mean equal reads."""

INTERVAL = 0.25
"""Seconds between equal reads, after a burst of them."""
BURST = 10
MOST_PACED = 1_000
"""Beyond so many reads, those that may begin at once again are forgotten."""


class SharedReads:
    """The reads of one table that are under way, and cached answers of reads that exceed the rate."""

    def __init__(self, invalidation: Invalidation = INVALIDATION) -> None:
        self._invalidation = invalidation
        self._attempts: SingleFlight[Read, Any] = SingleFlight(charged_context, join=join_work)
        self._answers: dict[Read, tuple[Any]] = {}
        """Each in a tuple of its own, by which its end tells it from a later answer."""
        self._current: dict[Read, object] = {}
        """A mark for the latest attempt of each read, until it ends or a write outdates what it may have read."""
        self._due: dict[Read, float] = {}
        """When each read would begin next if all had begun at the even rate."""

    async def read(self, key: Hashable, partition: str, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The latest answer, or else that to an attempt for this key, repeated until the deadline."""
        read = (partition, key)
        latest: tuple[T] | None = self._answers.get(read)
        if latest is not None:
            await asyncio.sleep(0)  # so that a caller that reads in a loop lets others run
            return latest[0]
        answer: T = await retry(self._attempts.run, read, partial(self._attempt, read, attempt))
        return answer

    async def _attempt(self, read: Read, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Carry out an attempt, and keep its answer until the next one may begin."""
        mark = self._current[read] = object()
        loop = asyncio.get_running_loop()
        began = loop.time()
        if len(self._due) > MOST_PACED:
            self._due = {read: due for read, due in self._due.items() if due > began}
        due = max(self._due.get(read, began), began) + INTERVAL
        # Reads that began early because of writes delay the next one by no more than an interval.
        self._due[read] = due = min(due, began + (BURST + 1) * INTERVAL)
        next_at = due - BURST * INTERVAL
        try:
            answer = await attempt()
            # An absence is not kept: what was just created may be needed to go on.
            if answer is not None and next_at > loop.time() and self._current.get(read) is mark:
                latest = self._answers[read] = (answer,)
                loop.call_at(next_at, self._end, read, latest)
        finally:
            if self._current.get(read) is mark:
                del self._current[read]
        return answer

    def _end(self, read: Read, latest: tuple[Any]) -> None:
        """Give this answer no longer; after a write a later one may have taken its place."""
        if self._answers.get(read) is latest:
            del self._answers[read]

    def invalidate(self, partitions: Iterator[str]) -> None:
        """After a write under these partition keys, later reads get no answer that may have missed it."""
        known = {*self._attempts, *self._current, *self._answers}
        if not known:
            return
        changed: set[str] = set()
        for partition in partitions:
            words = self._invalidation.words(first_word(partition))
            if words is None:
                changed.update(first_word(partition) for partition, _ in known)
                break
            changed |= words
        for read in known:
            if first_word(read[0]) in changed:
                self._attempts.forget(read)
                self._current.pop(read, None)
                self._answers.pop(read, None)

    async def close(self) -> None:
        await self._attempts.close()
