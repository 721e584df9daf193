"""Work in batches, and several pieces of work at once, none of which goes on after a failure."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Coroutine, Iterable, Iterator

T = TypeVar("T")

BATCH_READ = 100
"""As many keys as one call to the table reads."""


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of `size`; the last one may be shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


async def batches(items: AsyncIterable[T], size: int) -> AsyncIterator[list[T]]:
    """The same for items that come one by one."""
    batch: list[T] = []
    async for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


async def gather_or_cancel(work: Iterable[Coroutine[Any, Any, T]], at_once: int | None = None) -> list[T]:
    """As `asyncio.gather`; but the first error is raised once all others were cancelled and have ended.

    So whoever sees the error knows that no write is under way any more. With `at_once`, each is begun in its turn.
    """
    turns = asyncio.Semaphore(at_once or sys.maxsize)
    tasks: list[asyncio.Task[T]] = []
    try:
        async with asyncio.TaskGroup() as group:
            rest = iter(work)
            while await turns.acquire() and (each := next(rest, None)) is not None:
                tasks.append(group.create_task(each))
                tasks[-1].add_done_callback(lambda _: turns.release())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
