"""Retries of calls until their request's deadline; changes that are made again after a conflict; and work in batches.

The deadline is in a context variable (see `budgets`), so no signature needs it and no call can forget it. Without a
deadline, as in commands, each call has `DEFAULT_SECONDS`. Whatever is tried again goes through `repeated`, emails to a
mail server included.

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
from typing import Any, AnyStr, TypeVar

from datastore.dynamo import errors
from datastore.dynamo.budgets import Budget, RateLimit, SharedAllowance, current
from datastore.refusals import Conflict

# ── retries ──

T = TypeVar("T")

DEFAULT_SECONDS = 30.0
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0

_log = logging.getLogger(__name__)
_check: ContextVar[Callable[[], None]] = ContextVar("_check", default=lambda: None)
_logged = RateLimit(1, 10.0)


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


async def within_deadline(shared: asyncio.Future[T]) -> T:
    """The result of work that is shared with other requests, waited for until this request's own deadline.

    What waits may be shared work itself, whose deadline moves with each request that joins it.
    """
    budget = current()
    if isinstance(budget.payer, SharedAllowance):
        await _within_moving_deadline(shared, budget)
    try:
        async with asyncio.timeout_at(None if budget.ends == inf else budget.ends):
            return await shared
    except TimeoutError:
        raise errors.DeadlineExceeded("the request's time was used up; last: it waited for shared work") from None


async def _within_moving_deadline(shared: asyncio.Future[Any], budget: Budget) -> None:
    """Wait until the future is done or the deadline, as it is by then, has passed."""
    now = asyncio.get_running_loop().time
    try:
        while not shared.done() and now() < budget.ends < inf:
            await asyncio.wait((shared,), timeout=budget.ends - now())
    except asyncio.CancelledError:
        shared.cancel()
        raise


class Again(Exception):
    """An attempt failed that may succeed if it is made again."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(str(failure))
        self.failure = failure
        """What it means if it is not."""


async def repeated(attempt: Callable[[], Awaitable[T]], pauses: Iterable[float], time_left: Callable[[], float]) -> T:
    """What an attempt returns; it is made again after `Again`, as long as there are pauses and time. Otherwise Again.

    Each pause has full jitter: what is repeated at the same moment would conflict again.
    """
    for longest in pauses:
        try:
            return await attempt()
        except Again:
            wait = random.uniform(0, longest)  # noqa: S311 - spreads load, hides nothing
            if wait >= time_left():
                raise
        await asyncio.sleep(wait)
    return await attempt()


async def retry(call: Callable[..., Awaitable[T]], *arguments: Any, **parameters: Any) -> T:
    """The answer of a call, which is repeated until the deadline."""
    budget, check, now = current(), _check.get(), asyncio.get_running_loop().time
    otherwise = now() + DEFAULT_SECONDS
    doubtful = False
    last: errors.Passing | None = None

    def ends() -> float:
        return otherwise if budget.ends == inf else budget.ends  # others may have joined, who have more time

    async def attempt() -> T:
        nonlocal doubtful, last
        check()
        try:
            async with asyncio.timeout_at(ends()):
                return await call(*arguments, **parameters)
        except Exception as error:
            failure = _passing(error, doubtful=doubtful)
            # The failure of the attempt before says more than that the deadline ended this one.
            if not (isinstance(error, TimeoutError) and isinstance(last, errors.EngineUnavailable)):
                last = failure
            doubtful = doubtful or isinstance(failure, errors.EngineUnavailable)
            raise Again(last) from error

    try:
        return await repeated(attempt, _pauses(), lambda: ends() - now())
    except Again as given_up:
        failure = given_up.failure
        _log_failure(failure)
        if isinstance(failure, errors.EngineUnavailable):
            raise errors.DeadlineExceeded(f"the request's time was used up; last: {failure}") from failure
        raise failure from None


def _passing(error: Exception, *, doubtful: bool) -> errors.Passing:
    """The failure that an error means, after which the call is repeated. What it is not repeated after is raised."""
    failure = errors.dynamo_error(error) or error
    if isinstance(failure, errors.ConditionFailed):
        raise errors.ConditionFailed(failure.failures, doubtful=doubtful) from None
    if isinstance(failure, errors.StorageFailed):
        _log_failure(failure)
    elif isinstance(failure, errors.Passing):
        return failure
    if failure is error:
        raise error
    raise failure from error


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 2, _LONGEST_PAUSE)


def _log_failure(failure: Exception) -> None:
    reason = f"{type(failure).__name__}: {failure}"
    if not _logged.hit(reason, time.monotonic()):
        _log.warning("the table cannot be used: %s", reason)


# ── conflicts ──

S = TypeVar("S")

ATTEMPTS = 32
"""With all pauses they take some seven seconds."""
_PAUSES = [min(0.02 * 2**attempt, 0.5) for attempt in range(ATTEMPTS - 1)]


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
    is_known = True

    async def attempt() -> T:
        nonlocal is_known
        state, is_known = known if is_known else await read(), False
        try:
            return await change(state)
        except (Stale, errors.ConditionFailed) as conflict:
            if isinstance(conflict, errors.ConditionFailed) and conflict.doubtful and not idempotent:
                raise
            raise Again(conflict) from None

    try:
        return await repeated(attempt, _PAUSES, remaining)
    except Again:
        raise Conflict("Others are changing this all the time. Try again in a moment.", retry_after=1.0) from None


# ── concurrency ──
# Work in batches, and several pieces of work at once, none of which goes on after a failure.

BATCH_READ = 100
"""As many keys as one call to the table reads."""

PIECE_BYTES = 300_000
"""What is larger than an item, which holds at most 400 KB, is stored in pieces of so many bytes."""


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of `size`; the last one may be shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def pieces(data: AnyStr, size: int) -> list[AnyStr]:
    """A text or bytes in pieces of `size`; the last one may be shorter."""
    return [data[start : start + size] for start in range(0, len(data), size)]


async def batches(items: AsyncIterable[T], size: int) -> AsyncIterator[list[T]]:
    """Items that come one by one, in lists of `size`; the last one may be shorter."""
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
