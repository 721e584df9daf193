"""One read-through cache: all reads that requests share, each kind of them declared with one line.

- **Age.** An answer "at most so many seconds old" comes from a read that began at most so long before the request, or
  begins after it; with age 0, always after it. A key is read once at a time: requests that come too late for the read
  under way share the next one. The age of a kind is what its callers accept, unless they say otherwise.
- **Writes.** The process puts what it has written, or forgets what a write may have changed. Writes of others show by
  age alone.
- **Absence and errors** are never kept. An error in place of a record concerns that key alone.
- **Waiting.** Each request waits until its own deadline. A read has the latest deadline of those who wait for it, is
  paid for by them (see `budgets`), goes on when one of them leaves, and ends when nobody waits.

Invariant: a read that began before the process put or forgot its key and ends after it is not kept, and answers nobody
who asks later.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeAlias, TypeVar

from datastore.dynamo.budgets import built_context, charged_context, join_work
from datastore.dynamo.errors import TooCostly
from datastore.dynamo.retries import BATCH_READ, within_deadline

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
Answers: TypeAlias = Mapping[Any, Any]
"""Records by key; None or nothing where there is none, an exception where it could not be read."""

MOST = 10_000
"""Answers of one kind."""
_REST = 20.0
"""What took t seconds to build is not built again within 20·t, so that takes at most a twentieth of a processor."""


class BoundedDict(OrderedDict[K, V]):
    """Forgets its oldest entry beyond `most` of them. An entry that is set again becomes the newest.

    Clients choose the keys of most of what is remembered, and may choose any number of them.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class _Batch(Generic[K]):
    """Keys of one read. Keys are added until the read begins."""

    __slots__ = ("added", "began", "keys", "predecessor", "successor", "task")

    def __init__(self, predecessor: _Batch[K] | None = None) -> None:
        self.keys: dict[K, None] = {}
        self.added = False
        """Whether somebody waits for it, or did."""
        self.predecessor = predecessor
        """The batch that reads the same keys, or more, whose read ends before this one begins."""
        self.began: float | None = None
        self.successor: _Batch[K] | None = None
        self.task: asyncio.Task[Any] | None = None


class Reads(Generic[K, V]):
    """One kind of read, and its answers. The oldest ones are dropped first. See `ReadCache` for the parameters."""

    def __init__(
        self,
        cache: ReadCache,
        name: str,
        read: Callable[[Sequence[K]], Awaitable[Mapping[K, V | Exception]]],
        at_once: int,
        *,
        age: float = 0.0,
        kept: float = 0.0,
        most: int = MOST,
        built: bool = False,
    ) -> None:
        self.name = name
        self.counts: Counter[str] = Counter()
        """How many keys were answered from memory (`hit`), by a read that began for them (`miss`), or by one that was
        under way or planned already (`wait`)."""
        self._cache = cache
        self._read = read
        self._at_once = at_once
        self.age = age
        self._kept = max(age, kept)
        self._built = built
        self._entries: BoundedDict[K, tuple[float, V]] = BoundedDict(most)
        """When the read of each answer began, and the answer; in the order in which they were kept."""
        self._latest: dict[K, _Batch[K]] = {}
        """The latest batch of each key that is being read."""
        self._gathering: _Batch[K] | None = None
        self._under_way: SingleFlight[_Batch[K], Answers] = (
            SingleFlight(built_context)
            if built
            else SingleFlight(charged_context, join=join_work, abandoned=self._abandoned)
        )

    # ── asking ──

    async def load(self, key: K, age: float | None = None) -> V | None:
        """The record of a key, at most so many seconds old; None if there is none."""
        oldest = self._oldest(age)
        entry = self._entries.get(key)
        if entry is not None and entry[0] > oldest:
            self.counts["hit"] += 1
            return entry[1]
        return self._value(await within_deadline(self._waiter(key, oldest)), key)

    async def load_many(self, keys: Sequence[K]) -> list[V | None]:
        """The same for many keys, in their order. Raises if one of them could not be read."""
        oldest, entries = self._oldest(None), self._entries
        values: list[V | None] = []
        for key in keys:
            entry = entries.get(key)
            if entry is None or entry[0] <= oldest:
                return await self._load_missing(keys, oldest)
            values.append(entry[1])
        self.counts["hit"] += len(values)
        return values

    async def attempt(self, key: K, age: float) -> V | None:
        """As `load`, without a deadline of its own: for a caller who makes several attempts within one."""
        return self._value(await self._waiter(key, self._oldest(age)), key)

    async def _load_missing(self, keys: Sequence[K], oldest: float) -> list[V | None]:
        answers: dict[K, Any] = {}
        missing: dict[K, None] = {}
        for key in keys:
            entry = self._entries.get(key)
            if entry is not None and entry[0] > oldest:
                answers[key] = entry[1]
            else:
                missing[key] = None
        self.counts["hit"] += len(answers)
        waiters = self._waiters(missing, oldest)
        try:
            for waiter, read in waiters:
                batch_answers = await within_deadline(waiter)
                # Only these keys: a batch may also have an older answer to a key that a later batch reads again.
                answers.update((key, batch_answers.get(key)) for key in read)
        finally:
            for waiter, _ in waiters:  # nobody waits for the others if one fails, or the request leaves
                waiter.cancel()
        return [self._value(answers, key) for key in keys]

    @staticmethod
    def _value(answers: Answers, key: K) -> V | None:
        answer: V | Exception | None = answers.get(key)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def known(self, key: K, age: float | None = None) -> V | None:
        """The record of a key, if it is in memory and at most so many seconds old."""
        entry = self._entries.get(key)
        return None if entry is None or entry[0] <= self._oldest(age) else entry[1]

    def prefetch(self, key: K, age: float | None = None) -> None:
        """Begin to read what the request will need, unless it is known or the request may read no more."""
        if self.known(key, age) is None:
            with suppress(TooCostly):
                self._waiter(key, self._oldest(age))

    def _oldest(self, age: float | None) -> float:
        return self._cache.clock() - (self.age if age is None else age)

    # ── own writes ──

    def put(self, key: K, value: V) -> None:
        """Keep a record that this process has just written."""
        self.forget(key)
        self._keep(key, value, self._cache.clock())

    def amend(self, key: K, value: V) -> None:
        """Keep a record as this process is about to write it. What else it says is no younger for that."""
        entry = self._entries.get(key)
        if entry is not None:
            self._keep(key, value, entry[0])

    def forget(self, key: K) -> None:
        """Read anew for the next request: this process may have changed the record."""
        self._entries.pop(key, None)
        batch = self._latest.get(key)
        # One that waits for another read of the key would leave that one behind, if nobody waited for it any more.
        if batch is not None and (batch.began is not None or batch.predecessor is not None):
            del self._latest[key]

    def outdate(self, key: K) -> None:
        """Read anew for the next request, unless it accepts more than the age of this kind: for what may be late."""
        entry = self._entries.get(key)
        self.forget(key)
        if entry is not None:
            self._keep(key, entry[1], min(entry[0], self._oldest(None)))

    def forget_all(self) -> None:
        for key in (*self._latest, *self._entries):
            self.forget(key)

    def _keep(self, key: K, value: V, as_of: float) -> None:
        self._entries[key] = (as_of, value)
        outdated = self._oldest(self._kept)
        while self._entries:
            first, (began, _) = next(iter(self._entries.items()))
            if began > outdated:
                break
            del self._entries[first]

    async def close(self) -> None:
        """Cancel all reads, and the requests that wait for them."""
        await self._under_way.close()

    # ── batches ──

    def _waiter(self, key: K, oldest: float) -> asyncio.Future[Answers]:
        """A future for a batch that reads this key, which is begun if there is none."""
        [(waiter, _)] = self._waiters({key: None}, oldest)
        return waiter

    def _waiters(self, keys: Mapping[K, None], oldest: float) -> list[tuple[asyncio.Future[Answers], list[K]]]:
        """A future for each batch that reads some of these keys, with those keys. Missing batches are begun."""
        waiters: list[tuple[asyncio.Future[Answers], list[K]]] = []
        batches: dict[_Batch[K], list[K]] = {}
        for key in keys:
            batches.setdefault(self._batch_with(key, oldest), []).append(key)
        try:
            for batch, read in batches.items():
                waiters.append((self._wait_for(batch), read))
        except TooCostly:  # for the batches that were not begun yet
            for batch in batches:
                if not batch.added:
                    self._remove(batch)
            for waiter, _ in waiters:
                waiter.cancel()
            raise
        return waiters

    def _wait_for(self, batch: _Batch[K]) -> asyncio.Future[Answers]:
        waiter = self._under_way.run(batch, partial(self._carry_out, batch))
        batch.added = True
        return waiter

    def _batch_with(self, key: K, oldest: float) -> _Batch[K]:
        batch = self._latest.get(key)
        if batch is None:
            batch = self._gathering
            if batch is None or self._is_abandoned(batch) or len(batch.keys) >= self._at_once:
                batch = self._gathering = _Batch()
        elif self._is_abandoned(batch) or (batch.began is not None and batch.began <= oldest and not self._built):
            batch = self._successor(batch)
        if key in batch.keys:
            self.counts["wait"] += 1
        else:
            self.counts["miss"] += 1
            batch.keys[key] = None
            self._latest[key] = batch
        return batch

    def _abandoned(self, batch: _Batch[K]) -> None:
        if batch.began is None:  # else its task removes it, when it has ended
            self._remove(batch)

    def _is_abandoned(self, batch: _Batch[K]) -> bool:
        """Whether nobody waited for a batch any more, so that it is about to end without an answer."""
        return batch.added and batch not in self._under_way

    def _successor(self, batch: _Batch[K]) -> _Batch[K]:
        """The batch that begins when this one has ended."""
        if batch.successor is None or self._is_abandoned(batch.successor):
            batch.successor = _Batch(batch.predecessor if batch.began is None else batch)
        return batch.successor

    async def _carry_out(self, batch: _Batch[K]) -> Answers:
        """Begin in the next turn of the event loop, or after the predecessor; until then keys are added."""
        batch.task = asyncio.current_task()
        if batch.predecessor is not None and batch.predecessor.task is not None:
            await asyncio.wait((batch.predecessor.task,))
        began = read_at = batch.began = self._cache.clock()
        if self._gathering is batch:
            self._gathering = None
        answers: Answers
        try:
            answers = await self._read(list(batch.keys))
        except Exception as error:  # noqa: BLE001 - it is raised in every request that waits for one of the keys
            answers = dict.fromkeys(batch.keys, error)
        finally:
            current = self._remove(batch)
        if not self._kept:
            return answers
        if self._built:
            ended = self._cache.clock()
            began = max(began, ended + _REST * (ended - began) - self.age)
        for key in current:
            answer = answers.get(key)
            if answer is None:
                self._entries.pop(key, None)
            elif not isinstance(answer, Exception):
                self._keep(key, answer, began)
        # What this process wrote during the read replaces its answers; what is only outdated does not.
        kept = ((key, self._entries.get(key)) for key in batch.keys.keys() - current)
        written = {key: entry[1] for key, entry in kept if entry is not None and entry[0] >= read_at}
        return {**answers, **written} if written else answers

    def _remove(self, batch: _Batch[K]) -> list[K]:
        """Let nobody join a batch any more; the keys of which it was the latest."""
        if self._gathering is batch:
            self._gathering = None
        before = batch.predecessor
        current = [key for key in batch.keys if self._latest.get(key) is batch]
        for key in current:
            if before is not None and before.task is not None and not before.task.done():
                self._latest[key] = before  # this batch was abandoned before it began to read
            else:
                del self._latest[key]
        batch.predecessor = None
        return current


class ReadCache:
    """The kinds of reads of a process. `clock` is in seconds.

    A kind has a constant name, by which the metrics count it. Its answers are `kept` for callers who accept more than
    its age, at most so many of them.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.kinds: list[Reads[Any, Any]] = []

    def batches(
        self, name: str, read: Callable[[Sequence[K]], Awaitable[Mapping[K, V | Exception]]], **kind: Any
    ) -> Reads[K, V]:
        """Keys that are asked for within one turn of the event loop, by any request, are read by one call."""
        return self._add(Reads(self, name, read, BATCH_READ, **kind))

    def each(self, name: str, read: Callable[[K], Awaitable[V | None]], **kind: Any) -> Reads[K, V]:
        """Every key is read by itself, so that nobody waits for the keys of others.

        What is `built` is the service's own work: nobody pays for it, it goes on when nobody waits, and it is done
        again only after twenty times as long as it took. Its calls take turns with those of the request that began
        it. So they never stand before those of leases and settling, and are refused where too many wait.
        """

        async def read_one(keys: Sequence[K]) -> Mapping[K, V | Exception]:
            (key,) = keys
            value = await read(key)
            return {} if value is None else {key: value}

        return self._add(Reads(self, name, read_one, 1, **kind))

    def _add(self, kind: Reads[K, V]) -> Reads[K, V]:
        self.kinds.append(kind)
        return kind

    def loads(self) -> Mapping[tuple[str, str], int]:
        """How many keys of each kind were answered as a `hit`, `miss` or `wait`."""
        loads: Counter[tuple[str, str]] = Counter()
        for kind in self.kinds:
            loads.update({(kind.name, answered): kind.counts[answered] for answered in ("hit", "miss", "wait")})
        return loads

    async def close(self) -> None:
        await asyncio.gather(*(kind.close() for kind in self.kinds))


async def read_each(keys: Sequence[K], read: Callable[[K], Awaitable[V | None]]) -> dict[K, V | Exception]:
    """A batch read made of concurrent single reads; the answer of a failed read is its exception.

    For batches whose keys are read together in part. Others are read by `ReadCache.each`.
    """
    answers = await asyncio.gather(*map(read, keys), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, Exception):
            raise answer
    return {key: answer for key, answer in zip(keys, answers, strict=True) if answer is not None}  # type: ignore[misc]


# ── single flight ──
# One piece of work for all callers who want the same at the same time.
#
# `run(key, factory)` waits for the work under way for a key, or begins it. The work runs in a task and a context of its
# own, so it belongs to none of those who wait: each of them may be cancelled, and the others still get its result or
# its error. Nothing is remembered: the next caller after the end starts again.
#
# An error is for those who wait. If all of them have given up, it is dropped: mostly it is a refusal of what they asked
# for, or says that the table did not answer in time. Work that has to tell of its failures logs them itself.
#
# With `join`, each caller who waits joins the work. Once the last of them gives up, it is cancelled, and `abandoned` is
# called with its key.


@dataclass(eq=False, slots=True)
class _Work:
    """Work under way, and the futures of those who wait for it. To shield a task instead would cost twice as much.

    Waiters that have their result are dropped: they may refer to the work, and only the garbage collector frees such a
    cycle.
    """

    context: Context
    task: asyncio.Task[None] = field(init=False)
    waiting: list[asyncio.Future[Any]] = field(default_factory=list)


class _Waiter(asyncio.Future[Any]):
    """A future that tells at once when its caller gives up: a callback would run a turn later, and for each result."""

    given_up: Callable[[_Waiter], None]

    def cancel(self, msg: Any | None = None) -> bool:
        cancelled = super().cancel(msg)
        if cancelled:
            self.given_up(self)
        return cancelled


class SingleFlight(Generic[K, T]):
    """The work under way, by key. `context` makes the context in which a piece of work runs."""

    def __init__(
        self,
        context: Callable[[], Context],
        *,
        join: Callable[[Context], None] | None = None,
        abandoned: Callable[[K], None] = lambda _: None,
    ) -> None:
        self._context = context
        self._join = join
        self._abandoned = abandoned
        self._under_way: dict[K, _Work] = {}
        self._all: set[_Work] = set()
        """Also what was forgotten: the event loop alone holds tasks only weakly."""

    def run(self, key: K, factory: Callable[[], Awaitable[T]]) -> asyncio.Future[T]:
        """The result of the work under way for this key, or else of what `factory` begins.

        The future is this caller's own: to cancel it cancels nothing else.
        """
        work = self.begin(key, factory)
        waiter: asyncio.Future[T]
        if self._join is not None:
            self._join(work.context)
            waiter = _Waiter()
            waiter.given_up = partial(self._leave, key, work)
        else:
            waiter = asyncio.get_running_loop().create_future()
        work.waiting.append(waiter)
        return waiter

    def begin(self, key: K, factory: Callable[[], Awaitable[T]]) -> _Work:
        """The same without waiting. An error of work that nobody has ever waited for is reported by the event loop."""
        work = self._under_way.get(key)
        if work is None:
            work = self._under_way[key] = _Work(self._context())
            self._all.add(work)
            carried_out = self._carry_out(key, work, factory)
            work.task = asyncio.get_running_loop().create_task(carried_out, context=work.context)
        return work

    async def _carry_out(self, key: K, work: _Work, factory: Callable[[], Awaitable[T]]) -> None:
        try:
            result = await factory()
        except Exception as error:
            if not work.waiting:
                raise
            for waiter in work.waiting:
                if not waiter.done():
                    waiter.set_exception(error)
            work.waiting.clear()
        else:
            for waiter in work.waiting:
                if not waiter.done():
                    waiter.set_result(result)
            work.waiting.clear()
        finally:
            if self._under_way.get(key) is work:
                del self._under_way[key]
            self._all.discard(work)
            for waiter in work.waiting:  # those that are left when the work was cancelled
                waiter.cancel()

    def _leave(self, key: K, work: _Work, waiter: asyncio.Future[T]) -> None:
        if work not in self._all:  # it has ended, and cancels those who are left
            return
        work.waiting.remove(waiter)
        if work.waiting:
            return
        if self._under_way.get(key) is work:  # later callers start again
            del self._under_way[key]
        work.task.add_done_callback(lambda _: self._all.discard(work))  # if it has not begun, nothing else does this
        work.task.cancel()
        self._abandoned(key)

    def forget(self, key: K) -> None:
        """The next caller starts again; those who already wait still get what they wait for."""
        self._under_way.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._under_way

    def __iter__(self) -> Iterator[K]:
        """The keys of the work that a new caller would join."""
        return iter(self._under_way)

    async def close(self) -> None:
        """Cancel all work, and with it those who wait for it."""
        ending = tuple(self._all)
        self._under_way.clear()
        for work in ending:
            work.task.cancel()
        await asyncio.gather(*(work.task for work in ending), return_exceptions=True)
        self._all.difference_update(ending)
        for work in ending:
            for waiter in work.waiting:  # a task that was cancelled before it began has told nobody
                waiter.cancel()
