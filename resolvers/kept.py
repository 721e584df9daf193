"""Records kept for some seconds in the process, loaded together and never twice at a time.

Law: `load(key)` answers with what `read` answered for that key at most `seconds` ago, or with what `put` said since.
Keys asked for within one turn of the event loop, by any request, are read as one batch; a key being read is waited
for, not read again; at most `most` entries are kept, the oldest leave first. Why: a batch read of 20 profiles costs
9-10 read units, more than the page of comments they belong to.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

from datastore.dynamo.deadline import unhurried

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

K = TypeVar("K")
V = TypeVar("V")


class _Batch(Generic[K, V]):
    """Keys that are read together, and what was found when they are."""

    __slots__ = ("done", "keys")

    def __init__(self, done: asyncio.Future[Mapping[K, V | None]]) -> None:
        self.keys: list[K] = []
        self.done = done


class Kept(Generic[K, V]):
    """A bounded cache in front of a batch read. What is not there is remembered as None for as long."""

    def __init__(
        self,
        read: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]],
        *,
        seconds: float,
        most: int = 10_000,
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._most = most
        self._known: OrderedDict[K, tuple[float, V | None]] = OrderedDict()
        self._under_way: dict[K, _Batch[K, V]] = {}
        self._gathering: _Batch[K, V] | None = None
        self._reads: set[asyncio.Task[None]] = set()

    async def load(self, key: K) -> V | None:
        """The record of a key, or None if there is none."""
        known = self.at_hand(key)
        if known is not None:
            return known[0]
        return (await asyncio.shield(self._awaited(key).done))[key]

    async def load_many(self, keys: Sequence[K]) -> list[V | None]:
        """As `load`, without a task for each key."""
        now = asyncio.get_running_loop().time()
        found: list[V | None] = [None] * len(keys)
        waiting: list[tuple[int, K, _Batch[K, V]]] = []
        for place, key in enumerate(keys):
            entry = self._known.get(key)
            if entry is not None and entry[0] >= now:
                found[place] = entry[1]
            else:
                waiting.append((place, key, self._awaited(key)))
        for place, key, batch in waiting:
            done = batch.done
            found[place] = (done.result() if done.done() else await asyncio.shield(done))[key]
        return found

    def at_hand(self, key: K) -> tuple[V | None] | None:
        """What is kept for a key, in a tuple; None when it must be read first."""
        entry = self._known.get(key)
        if entry is None or entry[0] < asyncio.get_running_loop().time():
            return None
        return (entry[1],)

    def put(self, key: K, value: V | None) -> None:
        """What this process has just written, so that its own readers see it at once."""
        self._keep(key, value, asyncio.get_running_loop().time() + self._seconds)

    def _keep(self, key: K, value: V | None, until: float) -> None:
        self._known.pop(key, None)
        self._known[key] = (until, value)
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def forget(self, key: K) -> None:
        self._known.pop(key, None)

    def _awaited(self, key: K) -> _Batch[K, V]:
        batch = self._under_way.get(key)
        if batch is None:
            batch = self._gathering
            if batch is None:
                loop = asyncio.get_running_loop()
                batch = self._gathering = _Batch(loop.create_future())
                # The batch is paid for by the request that began it, but must not end with that request's deadline.
                loop.call_soon(self._begin, contextvars.copy_context())
            batch.keys.append(key)
            self._under_way[key] = batch
        return batch

    def _begin(self, context: contextvars.Context) -> None:
        batch, self._gathering = self._gathering, None
        if batch is not None:
            task = asyncio.get_running_loop().create_task(self._settle(batch), context=context)
            self._reads.add(task)
            task.add_done_callback(self._reads.discard)

    async def _settle(self, batch: _Batch[K, V]) -> None:
        try:
            with unhurried():
                found = await self._read(batch.keys)
        except Exception as error:  # noqa: BLE001 - it is told to everybody who waits for a key
            self._end(batch)
            batch.done.set_exception(error)
            batch.done.exception()  # nobody may be left to ask for it
            return
        self._end(batch)
        now = asyncio.get_running_loop().time()
        until = now + self._seconds
        values: dict[K, V | None] = {}
        for key in batch.keys:
            entry = self._known.get(key)
            if entry is not None and entry[0] >= now:  # written by us while the read was under way
                values[key] = entry[1]
            else:
                values[key] = value = found.get(key)
                self._keep(key, value, until)
        batch.done.set_result(values)

    def _end(self, batch: _Batch[K, V]) -> None:
        for key in batch.keys:
            self._under_way.pop(key, None)
