"""Retries of calls until their request's deadline; changes that are made again after a conflict; and work in batches.

The deadline is in a context variable (see `budgets`), so no signature needs it and no call can forget it. Without a
deadline, as in commands, each call has `DEFAULT_SECONDS`.

**Calls** are repeated after `Passing` errors, with full jitter, until the deadline; after StorageFailed they are not,
since waiting does not help. No write depends on being sent only once: a change that must count once has a record of its
own in its transaction. A call that is given up is logged, once in ten seconds.

**Changes** are read, changed, and written if nobody has changed them meanwhile: otherwise read and changed again.

- The first read may be of a cache (`optimistic_from`). Each further one is consistent, or it would find the same again.
- Only a conflict repeats: `Stale`, or a ConditionFailed that the change lets pass. What else a failed condition says, a
  refusal or that it was written after all, is for the change to tell.
- An unclear answer is no conflict: a ConditionFailed that is doubtful is raised, since the change may have been made.
  Only an `idempotent` change is made again: from what is read then, it finds nothing left to do. `UnitOfWork` leaves
  no doubt about a change with a receipt or an occurrence.
- There are `ATTEMPTS` attempts at most, with pauses of full jitter between them, until the request's deadline. Then the
  change is refused, and the refusal says when to ask again.
"""

import asyncio
import logging
import random
import sys
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from math import inf
from typing import Any, TypeVar

from datastore.dynamo import errors
from datastore.dynamo.budgets import current
from datastore.refusals import Conflict

# ── retries ──

T = TypeVar("T")

DEFAULT_SECONDS = 30.0
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0
_LOG_SECONDS = 10.0

_log = logging.getLogger(__name__)
_check: ContextVar[Callable[[], None]] = ContextVar("_check", default=lambda: None)
_logged: dict[str, float] = {}
"""When each reason was last logged: few texts, since errors name no item."""


@contextmanager
def check_before_each_attempt(check: Callable[[], None]) -> Iterator[None]:
    """In this block, `check` may refuse each attempt of a call. An earlier one may have been applied then."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def remaining() -> float:
    """Seconds until the request's deadline."""
    ends = current().ends
    return DEFAULT_SECONDS if ends == inf else ends - asyncio.get_running_loop().time()


async def within_deadline(shared: Awaitable[T]) -> T:
    """The result of work that is shared with other requests, waited for until this request's own deadline."""
    ends = current().ends
    try:
        async with asyncio.timeout_at(None if ends == inf else ends):
            return await shared
    except TimeoutError:
        raise errors.DeadlineExceeded("the request's time was used up; last: it waited for shared work") from None


async def retry(call: Callable[..., Awaitable[T]], *arguments: Any, **parameters: Any) -> T:
    """The answer of a call, which is repeated until the deadline."""
    budget, check, now = current(), _check.get(), asyncio.get_running_loop().time
    otherwise = now() + DEFAULT_SECONDS
    pause, doubtful = _FIRST_PAUSE, False
    last: errors.Passing | None = None
    while True:
        check()
        ends = otherwise if budget.ends == inf else budget.ends
        try:
            async with asyncio.timeout_at(ends):
                return await call(*arguments, **parameters)
        except Exception as error:
            failure = errors.dynamo_error(error) or error
            if isinstance(failure, errors.ConditionFailed):
                raise errors.ConditionFailed(failure.failures, doubtful=doubtful) from None
            if isinstance(failure, errors.StorageFailed):
                _log_failure(failure)
            if not isinstance(failure, errors.Passing) or isinstance(failure, errors.StorageFailed):
                if failure is error:
                    raise
                raise failure from error
            # The failure of the attempt before says more than that the deadline ended this one.
            if not (isinstance(error, TimeoutError) and isinstance(last, errors.EngineUnavailable)):
                last = failure
        doubtful = doubtful or isinstance(failure, errors.EngineUnavailable)
        # Full jitter: repeats at the same moment would conflict again.
        wait = random.uniform(0, pause)  # noqa: S311 - spreads load, hides nothing
        ends = otherwise if budget.ends == inf else budget.ends  # others may have joined, who have more time
        if now() + wait >= ends:
            _log_failure(last)
            if isinstance(last, errors.EngineUnavailable):
                raise errors.DeadlineExceeded(f"the request's time was used up; last: {last}") from last
            raise last
        await asyncio.sleep(wait)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _log_failure(failure: errors.DynamoError) -> None:
    reason, now = f"{type(failure).__name__}: {failure}", time.monotonic()
    if now - _logged.get(reason, -_LOG_SECONDS) >= _LOG_SECONDS:
        _logged[reason] = now
        _log.warning("the table cannot be used: %s", reason)


# ── conflicts ──

S = TypeVar("S")

ATTEMPTS = 32
"""With all pauses they take some seven seconds."""
_PAUSES = [min(0.02 * 2**attempt, 0.5) for attempt in range(ATTEMPTS)]


class Stale(Exception):
    """Somebody has changed what a change was made from."""


async def optimistic(
    read: Callable[[], Awaitable[S]], change: Callable[[S], Awaitable[T]], *, idempotent: bool = False
) -> T:
    """What `change` returns, of something that others change too."""
    return await optimistic_from(await read(), read, change, idempotent=idempotent)


async def optimistic_from(
    known: S, read: Callable[[], Awaitable[S]], change: Callable[[S], Awaitable[T]], *, idempotent: bool = False
) -> T:
    """The same, where the first attempt is made from what is known already."""
    state = known
    for pause in _PAUSES:
        try:
            return await change(state)
        except Stale:
            pass
        except errors.ConditionFailed as failed:
            if failed.doubtful and not idempotent:
                raise
        wait = random.uniform(0, pause)  # noqa: S311 - spreads load, hides nothing
        if wait >= remaining():
            break
        await asyncio.sleep(wait)
        state = await read()
    raise Conflict("Others are changing this all the time. Try again in a moment.", retry_after=1.0)


# ── concurrency ──
# Work in batches, and several pieces of work at once, none of which goes on after a failure.

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
