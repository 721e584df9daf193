"""Loading records by key in batches, with one read per key at a time.

Keys requested within one turn of the event loop, by any request, are read in batches of up to a hundred, as many as one
call to the table reads; with `Loader.each`, whose keys take a call each, every key is a batch of its own. A request
pays for a batch when it adds it (see `budgets`). There are two kinds of loader:

- `Loader(read, ttl=seconds)` returns records that were read or `put` at most so many seconds ago. A request for a key
  that is being read waits for that read. A missing record is never cached.
- `Loader(read, fresh=True)` caches nothing, and no answer is older than its request. A request for a key that is being
  read waits for the next read, which it shares with all requests that come before that read begins. So concurrent
  requests cause one read after another, and each request waits for two at most.

Why: a batch read of 20 profiles costs 9-10 read units, more than the page of comments that shows them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, TypeVar, overload

from datastore.dynamo import BATCH_READ, SingleFlight, TooCostly, charged_context, join_work, within_deadline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    Answers: TypeAlias = Mapping[Any, Any]
    """Records by key; None or nothing where there is none, an exception where it could not be read."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class LoadCounts:
    """How many keys were answered in which way."""

    hits: int = 0
    """From the cache."""
    misses: int = 0
    """By a read that began for them."""
    waits: int = 0
    """By a read that was under way or planned already."""


class _Batch(Generic[K]):
    """Keys of one read. Keys are added until the read begins."""

    __slots__ = ("keys", "predecessor", "reading", "successor", "task")

    def __init__(self, predecessor: _Batch[K] | None = None) -> None:
        self.keys: dict[K, None] = {}
        self.predecessor = predecessor
        """The batch that reads the same keys, or more, whose read ends before this one begins."""
        self.reading = False
        self.successor: _Batch[K] | None = None
        self.task: asyncio.Task[None] | None = None


class Loader(Generic[K, V]):
    """One kind of batch read. At most `size` records are cached; the oldest are dropped first."""

    @overload
    def __init__(
        self, read: Callable[[Sequence[K]], Awaitable[Mapping[K, V | Exception]]], *, ttl: float, size: int = ...
    ) -> None: ...

    @overload
    def __init__(
        self, read: Callable[[Sequence[K]], Awaitable[Mapping[K, V | Exception]]], *, fresh: Literal[True]
    ) -> None: ...

    def __init__(
        self,
        read: Callable[[Sequence[K]], Awaitable[Mapping[K, V | Exception]]],
        *,
        ttl: float = 0.0,
        size: int = 10_000,
        fresh: bool = False,
    ) -> None:
        self.counts = LoadCounts()
        self._read = read
        self._at_once = BATCH_READ
        self._ttl = ttl
        self._size = size
        self._fresh = fresh
        self._cached: dict[K, tuple[float, V]] = {}
        self._last_batch: dict[K, _Batch[K]] = {}
        """The latest batch of each key that is being read."""
        self._gathering: _Batch[K] | None = None
        self._reads: SingleFlight[_Batch[K], Answers] = SingleFlight(charged_context, join=join_work)

    @classmethod
    def each(cls, read: Callable[[K], Awaitable[V | None]], **kind: Any) -> Self:
        """A loader whose keys are read one by one. So nobody waits for the keys of others."""

        async def read_one(keys: Sequence[K]) -> Mapping[K, V | Exception]:
            (key,) = keys
            value = await read(key)
            return {} if value is None else {key: value}

        loader = cls(read_one, **kind)
        loader._at_once = 1
        return loader

    async def load(self, key: K) -> V | None:
        """The record of a key, or None if there is none."""
        entry = self._cached.get(key)
        if entry is not None and entry[0] >= monotonic():
            self.counts.hits += 1
            return entry[1]
        ((waiter, _),) = self._waiters((key,))
        return self._value(await within_deadline(waiter), key)

    async def load_many(self, keys: Sequence[K]) -> list[V | None]:
        """The same for many keys, in their order. Raises if one of them could not be read."""
        now, cached = monotonic(), self._cached
        values: list[V | None] = []
        for key in keys:
            entry = cached.get(key)
            if entry is None or entry[0] < now:
                return await self._load_missing(keys, now)
            values.append(entry[1])
        self.counts.hits += len(values)
        return values

    async def _load_missing(self, keys: Sequence[K], now: float) -> list[V | None]:
        answers: dict[K, Any] = {}
        missing: dict[K, None] = {}
        for key in keys:
            entry = self._cached.get(key)
            if entry is None or entry[0] < now:
                missing[key] = None
            else:
                answers[key] = entry[1]
        self.counts.hits += len(answers)
        for waiter, read in self._waiters(missing):
            batch_answers = await within_deadline(waiter)
            # Only these keys: a batch may also have an older answer to a key that a later batch reads again.
            answers.update((key, batch_answers.get(key)) for key in read)
        return [self._value(answers, key) for key in keys]

    @staticmethod
    def _value(answers: Answers, key: K) -> V | None:
        answer: V | Exception | None = answers.get(key)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def cached(self, key: K) -> V | None:
        """The cached record of a key; None if it would have to be read."""
        entry = self._cached.get(key)
        return None if entry is None or entry[0] < monotonic() else entry[1]

    def prefetch(self, key: K) -> None:
        """Begin to read a record that the request will need, unless it is cached or the request may read no more."""
        if self.cached(key) is None:
            with suppress(TooCostly):
                self._waiters((key,))

    def put(self, key: K, value: V) -> None:
        """Cache a record that this process has just written, so that it is visible at once."""
        self._drop(key)
        self._cached[key] = (monotonic() + self._ttl, value)
        self._trim()

    def forget(self, key: K) -> None:
        """Make the next caller read again: a read under way may return a record from before a change."""
        self._drop(key)

    def _drop(self, key: K) -> None:
        self._cached.pop(key, None)
        batch = self._last_batch.get(key)
        if batch is not None and batch.reading:
            del self._last_batch[key]

    def _trim(self) -> None:
        while len(self._cached) > self._size:
            del self._cached[next(iter(self._cached))]

    async def close(self) -> None:
        """Cancel all reads, and the requests that wait for them."""
        await self._reads.close()

    # ── batches ──

    def _waiters(self, keys: Sequence[K] | Mapping[K, None]) -> list[tuple[asyncio.Future[Answers], list[K]]]:
        """A future for each batch that reads some of these keys, with those keys. Missing batches are begun."""
        waiters: list[tuple[asyncio.Future[Answers], list[K]]] = []
        batches: dict[_Batch[K], list[K]] = {}
        for key in keys:
            batches.setdefault(self._batch_with(key), []).append(key)
        try:
            for batch, read in batches.items():
                waiters.append((self._wait_for(batch), read))
        except TooCostly:  # for the batches that were not begun yet
            for batch in batches:
                if batch.task is None:
                    self._remove(batch)
            for waiter, _ in waiters:
                waiter.cancel()
            raise
        return waiters

    def _wait_for(self, batch: _Batch[K]) -> asyncio.Future[Answers]:
        carry_out = partial(self._carry_out, batch)
        if batch.task is None:
            batch.task = self._reads.begin(batch, carry_out).task
            # It may be abandoned before it begins to run.
            batch.task.add_done_callback(lambda _: self._remove(batch))
        return self._reads.run(batch, carry_out)

    def _batch_with(self, key: K) -> _Batch[K]:
        batch = self._last_batch.get(key)
        if batch is None:
            batch = self._gathering
            if batch is None or self._is_abandoned(batch) or len(batch.keys) >= self._at_once:
                batch = self._gathering = _Batch()
        elif self._is_abandoned(batch) or (self._fresh and batch.reading):
            batch = self._successor(batch)
        if key in batch.keys:
            self.counts.waits += 1
        else:
            self.counts.misses += 1
            batch.keys[key] = None
            self._last_batch[key] = batch
        return batch

    def _is_abandoned(self, batch: _Batch[K]) -> bool:
        """Whether nobody waited for a batch any more, so that it is about to end without an answer."""
        return batch.task is not None and batch not in self._reads

    def _successor(self, batch: _Batch[K]) -> _Batch[K]:
        """The batch that begins when this one has ended."""
        if batch.successor is None or self._is_abandoned(batch.successor):
            batch.successor = _Batch(batch if batch.reading else batch.predecessor)
        return batch.successor

    async def _carry_out(self, batch: _Batch[K]) -> Answers:
        """Begin in the next turn of the event loop, or after the predecessor; until then keys are added."""
        if batch.predecessor is not None and batch.predecessor.task is not None:
            await asyncio.wait((batch.predecessor.task,))
        batch.reading = True
        if self._gathering is batch:
            self._gathering = None
        answers: Answers
        try:
            answers = await self._read(list(batch.keys))
        except Exception as error:  # noqa: BLE001 - it is raised in every request that waits for one of the keys
            answers = dict.fromkeys(batch.keys, error)
        finally:
            current = self._remove(batch)
        if self._fresh:
            return answers
        return self._cache_answers(batch, answers, current)

    def _remove(self, batch: _Batch[K]) -> list[K]:
        """Let nobody join a batch any more; the keys of which it was the latest."""
        if self._gathering is batch:
            self._gathering = None
        before = batch.predecessor
        current = [key for key in batch.keys if self._last_batch.get(key) is batch]
        for key in current:
            if before is not None and before.task is not None and not before.task.done():
                self._last_batch[key] = before  # this batch was abandoned before it began to read
            else:
                del self._last_batch[key]
        batch.predecessor = None
        return current

    def _cache_answers(self, batch: _Batch[K], answers: Answers, current: Sequence[K]) -> Answers:
        """Cache the answers of current keys. Records that this process wrote during the read replace their answers."""
        now, cached = monotonic(), self._cached
        written = {key: entry[1] for key in batch.keys if (entry := cached.get(key)) is not None and entry[0] >= now}
        for key in current:
            answer = answers.get(key)
            if key not in written and answer is not None and not isinstance(answer, Exception):
                cached.pop(key, None)  # so that the key moves to the end
                cached[key] = (now + self._ttl, answer)
        self._trim()
        return {**answers, **written}


async def read_each(keys: Sequence[K], read: Callable[[K], Awaitable[V | None]]) -> dict[K, V | Exception]:
    """A batch read made of concurrent single reads; the answer of a failed read is its exception.

    For batches whose keys are read together in part. Others are read by `Loader.each`.
    """
    answers = await asyncio.gather(*map(read, keys), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, Exception):
            raise answer
    return {key: answer for key, answer in zip(keys, answers, strict=True) if answer is not None}  # type: ignore[misc]
