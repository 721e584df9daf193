"""One piece of work for all who want the same at the same time.

`run(key, factory)` waits for the work under way for a key, or begins it. The work runs in a task and a context of its
own, so it belongs to none of those who wait: each of them may be cancelled, and the others still get its result or its
error. Nothing is remembered: the next caller after the end begins anew.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator
    from contextvars import Context

K = TypeVar("K", bound="Hashable")
T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Work:
    """Work under way, and the futures of those who wait for it. To shield a task instead would cost twice as much."""

    task: asyncio.Task[None] | None = None
    waiting: list[asyncio.Future[Any]] = field(default_factory=list)


class SingleFlight(Generic[K, T]):
    """The work under way, by key. `context` makes the context in which a piece of work runs."""

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context
        self._under_way: dict[K, _Work] = {}
        self._all: set[_Work] = set()
        """Also what was forgotten: the event loop alone holds tasks only weakly."""

    def run(self, key: K, factory: Callable[[], Awaitable[T]]) -> asyncio.Future[T]:
        """The result of the work under way for this key, or else of what `factory` begins.

        The future is this caller's own: to cancel it cancels nothing else.
        """
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.begin(key, factory).waiting.append(waiter)
        return waiter

    def begin(self, key: K, factory: Callable[[], Awaitable[T]]) -> _Work:
        """The same without waiting. If nobody else waits either, the event loop reports an error."""
        work = self._under_way.get(key)
        if work is None:
            work = self._under_way[key] = _Work()
            self._all.add(work)
            carried_out = self._carry_out(key, work, factory)
            work.task = asyncio.get_running_loop().create_task(carried_out, context=self._context())
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
        else:
            for waiter in work.waiting:
                if not waiter.done():
                    waiter.set_result(result)
        finally:
            if self._under_way.get(key) is work:
                del self._under_way[key]
            self._all.discard(work)
            for waiter in work.waiting:  # those that are left when the work was cancelled
                waiter.cancel()

    def forget(self, key: K) -> None:
        """The next caller begins anew; those who wait already still get what they wait for."""
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
            if work.task is not None:
                work.task.cancel()
        await asyncio.gather(*(work.task for work in ending if work.task is not None), return_exceptions=True)
        self._all.difference_update(ending)
        for work in ending:
            for waiter in work.waiting:  # a task that was cancelled before it began has told nobody
                waiter.cancel()
