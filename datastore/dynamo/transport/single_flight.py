"""One piece of work for all callers who want the same at the same time.

`run(key, factory)` waits for the work under way for a key, or begins it. The work runs in a task and a context of its
own, so it belongs to none of those who wait: each of them may be cancelled, and the others still get its result or its
error. Nothing is remembered: the next caller after the end starts again.

With `join`, each caller who waits joins the work, which is cancelled, and `abandoned`, when the last of them gives up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound="Hashable")
T = TypeVar("T")


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
        """The same without waiting. If nobody else waits either, the event loop reports an error."""
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
