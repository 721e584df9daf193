"""Work in the background: nobody waits for it, so a failure is logged, and what is repeated goes on."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from random import uniform
from typing import Any, TypeVar

from datastore.dynamo import DynamoError
from datastore.jobs.leases import LeaseLost

T = TypeVar("T")

LONGEST_WAIT = 5.0
"""Seconds for which a process that ends carries out what it has promised."""


async def unless_failed(
    work: Awaitable[T], problem: str, log: Any, *expected: type[Exception], **about: object
) -> T | None:
    """The result, or None if it failed; a failure that is not expected is logged in full."""
    usual: tuple[type[Exception], ...] = (DynamoError, LeaseLost, *expected)
    try:
        return await work
    except usual as error:
        log.warning(problem, reason=str(error), **about)
    except Exception:
        log.exception(problem, **about)
    return None


class Promised:
    """Work that goes on after its request was answered. A process that ends carries it out first, for some seconds."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def all_ended(self) -> None:
        """Wait until everything is done that was promised before or meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.all_ended(), LONGEST_WAIT)
        for task in self._tasks:
            task.cancel()


def uneven(seconds: float, least: float = 0.5) -> float:
    """A pause of at most so long: processes that were started together do not all work at the same moment."""
    return uniform(least, 1.0) * seconds  # noqa: S311 - spreads load, hides nothing


class Repeated:
    """Work that is done again and again while the process runs, with a pause after each time."""

    def __init__(
        self,
        work: Callable[[], Awaitable[object]],
        pause: Callable[[], float],
        problem: str,
        log: Any,
        *expected: type[Exception],
    ) -> None:
        self._work = work
        self._pause = pause
        self._told = (problem, log, *expected)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            await unless_failed(self._work(), *self._told)
            await asyncio.sleep(self._pause())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
