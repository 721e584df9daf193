"""Eventually consistent reads of the table, shared by simultaneous requests through a `ReadCache`.

A write of this process forgets what it may have changed. So sharing hides no acknowledged write of this process; the
engine itself may still be behind. Consistent reads are not shared here: whoever wants them has a kind of read for it.

One attempt is shared, not its retries: each request repeats a failed attempt until its own deadline, so no request
fails because another one ran out of time. The transport's timeouts bound an attempt, and its units are metered for the
request that began it. A shared answer must not be changed.

Equal reads begin at most four times a second, after a burst of ten, and once after a write of this process. In
between, requests get the last answer, at most a quarter of a second old; an index may be further behind. So a page that
everybody asks for leaves its partition room, whose 3,000 read units a second all processes share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterator
from math import inf
from typing import Any, TypeVar, cast

from datastore.dynamo.entity import INVALIDATION, Invalidation, first_word
from datastore.dynamo.rate_limit import RateLimit
from datastore.dynamo.read_cache import ReadCache, Reads
from datastore.dynamo.retries import retry

T = TypeVar("T")

INTERVAL = 0.25
"""Seconds between equal reads, after a burst of them."""
BURST = 10
_MOST = 1_000
"""Answers of a quarter of a second under one first word."""


class _Read:
    """A read and how it is made. Equal keys mean equal reads; they are long, so their hash is computed once."""

    __slots__ = ("attempt", "hash", "key")

    def __init__(self, key: Hashable, attempt: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self.key = key
        self.attempt = attempt
        self.hash = hash(key)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Read) and self.key == other.key


class SharedReads:
    """The reads of one table, by the first word of their partition."""

    def __init__(self, invalidation: Invalidation = INVALIDATION) -> None:
        self._cache = ReadCache()
        self._invalidation = invalidation
        self._kinds: dict[str, Reads[_Read, Any]] = {}
        self._begun = RateLimit(BURST, BURST * INTERVAL)

    async def read(self, key: Hashable, partition: str, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The answer to an attempt for this key, repeated until the deadline; of many equal ones, the last answer."""
        word = first_word(partition)
        kind = self._kinds.get(word)
        if kind is None:
            kind = self._kinds[word] = self._cache.each("table", self._attempt, kept=INTERVAL, most=_MOST)
        read = _Read((partition, key), attempt)
        too_often = self._begun.wait(read.hash, self._cache.clock())
        answer: Any = kind.known(read, INTERVAL) if too_often else None
        if answer is None:
            answer = await retry(kind.attempt, read, inf)  # it joins one that is under way
        else:
            await asyncio.sleep(0)  # so that a caller that reads in a loop lets others run
        return cast("T", answer)

    async def _attempt(self, read: _Read) -> Any:
        self._begun.hit(read.hash, self._cache.clock())
        return await read.attempt()

    def invalidate(self, partitions: Iterator[str]) -> None:
        """After a write under these partition keys, later reads get no answer that may have missed it."""
        for partition in partitions:
            words = self._invalidation.words(first_word(partition))
            for word in self._kinds if words is None else words:
                if word in self._kinds:
                    self._kinds[word].forget_all()

    async def close(self) -> None:
        await self._cache.close()
