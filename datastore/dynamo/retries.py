"""How often calls are repeated, until the time of their request is used up (see `budgets`).

The deadline travels with the task (a context variable), so no signature carries it and no call can forget it. Work
without a deadline of its own, such as a command of the command line, gets `PATIENCE` for each call.

The shared rule: Throttled, TransactionConflict and EngineUnavailable are repeated with full jitter until the deadline
would be passed.
No write depends on being sent only once: what must count once carries its own record (see datastore/__init__).
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, TypeVar

from datastore.dynamo.budgets import current
from datastore.dynamo.errors import (
    ConditionFailed,
    DeadlineExceeded,
    EngineUnavailable,
    Throttled,
    TransactionConflict,
    named,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

PATIENCE = 30.0
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0


def ending() -> float:
    """When this request's time is used up, by the loop's clock."""
    ends = current().ends
    return asyncio.get_running_loop().time() + PATIENCE if ends is None else ends


def remaining() -> float:
    """Seconds left to this request."""
    return ending() - asyncio.get_running_loop().time()


async def within_deadline(shared: Awaitable[T]) -> T:
    """The result of work that is shared with other requests, waited for until this request's own deadline."""
    ends = current().ends
    if ends is None:
        return await shared
    try:
        async with asyncio.timeout_at(ends):
            return await shared
    except TimeoutError:
        raise DeadlineExceeded("the request's time was used up; last: it waited for shared work") from None


async def persist(call: Callable[..., Awaitable[T]], *arguments: Any, **parameters: Any) -> T:
    """The answer of a call, repeated as the shared rule says."""
    ends = ending()
    pause, doubtful = _FIRST_PAUSE, False
    last: Throttled | TransactionConflict | EngineUnavailable | None = None
    while True:
        try:
            async with asyncio.timeout_at(ends):
                return await call(*arguments, **parameters)
        except Exception as error:
            failure = named(error) or error
            if isinstance(failure, ConditionFailed):
                raise ConditionFailed(failure.failures, doubtful=doubtful) from None
            if not isinstance(failure, Throttled | TransactionConflict | EngineUnavailable):
                if failure is error:
                    raise
                raise failure from error
            # That the deadline ended an attempt says less than why the attempt before it failed.
            if not (isinstance(error, TimeoutError) and isinstance(last, EngineUnavailable)):
                last = failure
        doubtful = doubtful or isinstance(failure, EngineUnavailable)
        # Full jitter: synchronised repeats are what made the conflict in the first place.
        wait = random.uniform(0, pause)  # noqa: S311 - spreads load, hides nothing
        if asyncio.get_running_loop().time() + wait >= ends:
            raise _given_up(last) from last
        await asyncio.sleep(wait)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _given_up(
    last: Throttled | TransactionConflict | EngineUnavailable,
) -> Throttled | TransactionConflict | EngineUnavailable:
    if isinstance(last, EngineUnavailable):
        return DeadlineExceeded(f"the request's time was used up; last: {last}")
    return last
