"""Records kept for some seconds in the process, loaded together and never twice at a time.

Law: `load(key)` answers with what `read` answered for that key at most `seconds` ago, or with what `put` said since.
Keys asked for within one turn of the event loop, by any request, are read as one batch; a key being read is waited
for, not read again; at most `most` entries are kept, the oldest leave first. Why: a batch read of 20 profiles costs
9-10 read units, more than the page of comments they belong to.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

from datastore.dynamo.budgets import unhurried

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

K = TypeVar("K")
V = TypeVar("V")


class _Batch(Generic[K, V]):
    """Keys that are read together, and who waits for what is found."""

    __slots__ = ("keys", "task", "waiting")

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        """Kept here, since the loop itself holds tasks loosely."""
        self.keys: list[K] = []
        self.waiting: list[asyncio.Future[Mapping[K, V | None] | Exception]] = []

    def landing(self) -> asyncio.Future[Mapping[K, V | None] | Exception]:
        """A future of the asker's own, which may be cancelled without harm to others."""
        landing = asyncio.get_running_loop().create_future()
        self.waiting.append(landing)
        return landing

    def land(self, found: Mapping[K, V | None] | Exception) -> None:
        for one in self.waiting:
            if not one.done():
                one.set_result(found)


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
        self._known: dict[K, tuple[float, V | None]] = {}
        self._under_way: dict[K, _Batch[K, V]] = {}
        self._gathering: _Batch[K, V] | None = None

    async def load(self, key: K) -> V | None:
        """The record of a key, or None if there is none."""
        known = self.at_hand(key)
        if known is not None:
            return known[0]
        (batch,) = self._awaited((key,))
        return _found(await batch.landing())[key]

    async def load_many(self, keys: Sequence[K]) -> list[V | None]:
        """As `load`, without a task for each key."""
        now, known = monotonic(), self._known
        values: dict[K, V | None] = {}
        missing: list[K] = []
        for key in keys:
            entry = known.get(key)
            if entry is None or entry[0] < now:
                missing.append(key)
            else:
                values[key] = entry[1]
        if missing:
            for landing in [batch.landing() for batch in self._awaited(missing)]:
                values.update(_found(await landing))
        return [values[key] for key in keys]

    def at_hand(self, key: K) -> tuple[V | None] | None:
        """What is kept for a key, in a tuple; None when it must be read first."""
        entry = self._known.get(key)
        if entry is None or entry[0] < monotonic():
            return None
        return (entry[1],)

    def put(self, key: K, value: V | None) -> None:
        """What this process has just written, so that its own readers see it at once."""
        self._known.pop(key, None)
        self._known[key] = (monotonic() + self._seconds, value)
        self._trim()

    def _trim(self) -> None:
        while len(self._known) > self._most:
            del self._known[next(iter(self._known))]

    def forget(self, key: K) -> None:
        """The next to ask reads anew: what is being read at this moment may be from before the change."""
        self._known.pop(key, None)
        if self._under_way.get(key) is not self._gathering:
            self._under_way.pop(key, None)

    def _awaited(self, keys: Sequence[K]) -> set[_Batch[K, V]]:
        """The reads that bring these keys, begun if they are not under way."""
        under_way, gathering, batches = self._under_way, self._gathering, set()
        for key in keys:
            batch = under_way.get(key)
            if batch is None:
                batch = gathering = gathering or self._begun()
                batch.keys.append(key)
                under_way[key] = batch
            batches.add(batch)
        return batches

    def _begun(self) -> _Batch[K, V]:
        batch = self._gathering = _Batch()
        # The batch is paid for by the request that began it, but must not end with that request's deadline.
        batch.task = asyncio.get_running_loop().create_task(self._settle(batch))
        return batch

    async def _settle(self, batch: _Batch[K, V]) -> None:
        """Begun in the next turn of the event loop: until then keys are added."""
        self._gathering = None
        try:
            with unhurried():
                found = await self._read(batch.keys)
        except Exception as error:  # noqa: BLE001 - it is told to everybody who waits for a key
            for key in batch.keys:
                if self._under_way.get(key) is batch:
                    del self._under_way[key]
            batch.land(error)
            return
        now = monotonic()
        until, known, under_way = now + self._seconds, self._known, self._under_way
        values: dict[K, V | None] = {}
        for key in batch.keys:
            entry = known.get(key)
            if entry is not None and entry[0] >= now:  # written by us while the read was under way
                values[key] = entry[1]
                if under_way.get(key) is batch:
                    del under_way[key]
                continue
            values[key] = value = found.get(key)
            if under_way.get(key) is batch:
                del under_way[key]
                if entry is not None:
                    del known[key]  # what is put in anew stands at the end
                known[key] = (until, value)
        self._trim()
        batch.land(values)


def _found(landed: Mapping[K, V] | Exception) -> Mapping[K, V]:
    if isinstance(landed, Exception):
        raise landed
    return landed
