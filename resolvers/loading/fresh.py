"""Records as they are now: asked for one by one, by anybody, and read together.

Law: `load(key)` answers with what a read found that began after the asking; so whoever has just written reads what was
written. Keys asked for within one turn of the event loop, by any request, are one batch. A key is read once at a time:
who asks while it is being read waits for the next read, together with everybody else who comes until that one begins.
So a crowd of any size makes one read after another, and waits for two of them at most. Nothing is remembered.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from datastore.dynamo.budgets import unhurried

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class _Wait:
    """Who waits for a key. The first of a batch pays for it, but it must not end with that one's deadline."""

    found: asyncio.Future[Any]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)


class Together(Generic[K, V]):
    """One kind of batch read."""

    def __init__(self, read: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._read = read
        self._next: dict[K, _Wait] = {}
        self._later: dict[K, _Wait] = {}
        self._under_way: set[K] = set()
        self._reads: set[asyncio.Task[None]] = set()

    async def load(self, key: K) -> V | None:
        """The record of a key, or None if there is none."""
        loop = asyncio.get_running_loop()
        waiting = self._later if key in self._under_way else self._next
        wait = waiting.get(key)
        if wait is None:
            wait = _Wait(loop.create_future())
            if waiting is self._later:
                self._later[key] = wait
            else:
                self._soon({key: wait})
        found: V | None = await asyncio.shield(wait.found)
        return found

    def _soon(self, more: Mapping[K, _Wait]) -> None:
        if not self._next:
            asyncio.get_running_loop().call_soon(self._begin)
        self._next.update(more)

    def _begin(self) -> None:
        batch, self._next = self._next, {}
        self._under_way.update(batch)
        first = next(iter(batch.values()))
        task = asyncio.get_running_loop().create_task(self._settle(batch), context=first.context)
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)

    async def _settle(self, batch: Mapping[K, _Wait]) -> None:
        try:
            with unhurried():
                found = await self._read(list(batch))
        except Exception as error:  # noqa: BLE001 - it is raised again where the record is waited for
            for wait in batch.values():
                wait.found.set_exception(error)
                wait.found.exception()  # nobody may be left to ask for it
        else:
            for key, wait in batch.items():
                wait.found.set_result(found.get(key))
        self._under_way.difference_update(batch)
        later = {key: self._later.pop(key) for key in batch if key in self._later}
        if later:
            self._soon(later)
