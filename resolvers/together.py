"""Records asked for one by one and read together, with nothing kept.

Law: keys that one request asks for within one turn of the event loop are read as one batch, each once. Nothing is
remembered, and no request sees what another one read: so whoever has just written reads what was written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

from resolvers.context import Asking

K = TypeVar("K")
V = TypeVar("V")


class Together(Generic[K, V]):
    """One kind of batch read."""

    def __init__(self, read: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._read = read
        self._waiting: dict[int, dict[K, asyncio.Future[V | None]]] = {}
        self._reads: set[asyncio.Task[None]] = set()

    async def load(self, asking: Asking, key: K) -> V | None:
        """The record of a key, or None if there is none."""
        loop = asyncio.get_running_loop()
        batch = self._waiting.get(id(asking))
        if batch is None:
            batch = self._waiting[id(asking)] = {}
            loop.call_soon(self._begin, asking)
        future = batch.get(key)
        if future is None:
            future = batch[key] = loop.create_future()
        return await asyncio.shield(future)

    def _begin(self, asking: Asking) -> None:
        batch = self._waiting.pop(id(asking))
        task = asyncio.get_running_loop().create_task(self._settle(batch))
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)

    async def _settle(self, batch: Mapping[K, asyncio.Future[V | None]]) -> None:
        try:
            found = await self._read(list(batch))
        except Exception as error:  # noqa: BLE001 - it is raised again where the record is waited for
            for future in batch.values():
                future.set_exception(error)
                future.exception()  # nobody may be left to ask for it
            return
        for key, future in batch.items():
            future.set_result(found.get(key))
