"""A second engine that follows the first: each item with its own lag, in order per item, in no order across items."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, TypeAlias

from datastore.dynamo.attributes import Item

Apply: TypeAlias = Callable[[str, Any], Awaitable[None]]


class ItemName(NamedTuple):
    """An item's place: table, partition key and sort key."""

    table: str
    pk: str
    sk: str


@dataclass(frozen=True, slots=True)
class Lag:
    """How far an index, or a read that is not consistent, is behind. `stale` is the share of such table reads."""

    mean: float = 0.15
    longest: float = 5.0
    stale: float = 0.3
    late: float = 0.0
    """The share of changes that take between two seconds and `longest`."""

    def seconds(self, seed: int, item: ItemName, number: int) -> float:
        """The lag of an item's n-th change: the same in every run with this seed."""
        chance = Random(f"{seed} {item} {number}")
        if chance.random() < self.late:
            return chance.uniform(min(2.0, self.longest), self.longest)
        return min(self.longest, chance.expovariate(1 / self.mean)) if self.mean else 0.0


class Replica:
    """The changes that the second engine has not seen yet."""

    def __init__(self, lag: Lag, seed: int, put: Apply, delete: Apply) -> None:
        self.lag = lag
        self.latest: dict[ItemName, Item | None] = {}
        """The newest image of each item that was written through the proxy."""
        self._seed = seed
        self._put = put
        self._delete = delete
        self._changes = Counter[ItemName]()
        self._waiting: dict[ItemName, deque[tuple[float, Item | None]]] = {}
        self._workers: dict[ItemName, asyncio.Task[None]] = {}
        self._catching_up = asyncio.Event()

    def change(self, item: ItemName, image: Item | None) -> None:
        """Let the second engine see an item's new image, after its lag and after the item's earlier changes."""
        self.latest[item] = image
        self._changes[item] += 1
        due = asyncio.get_running_loop().time() + self.lag.seconds(self._seed, item, self._changes[item])
        self._waiting.setdefault(item, deque()).append((due, image))
        if item not in self._workers:
            self._workers[item] = asyncio.create_task(self._follow(item))

    async def catch_up(self) -> None:
        """Let the second engine see everything written so far, without waiting for the lags."""
        self._catching_up.set()
        while self._workers:
            await asyncio.gather(*self._workers.values())
        self._catching_up.clear()

    async def close(self) -> None:
        workers = list(self._workers.values())
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _follow(self, item: ItemName) -> None:
        waiting, loop = self._waiting[item], asyncio.get_running_loop()
        try:
            while waiting:
                due, image = waiting.popleft()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(max(due, loop.time())):
                        await self._catching_up.wait()
                if image is None:
                    await self._delete(item.table, {"pk": {"S": item.pk}, "sk": {"S": item.sk}})
                else:
                    await self._put(item.table, image)
        finally:
            del self._workers[item], self._waiting[item]
