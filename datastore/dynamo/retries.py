"""Retries of calls, until the deadline of their request (see `budgets`).

The deadline is in a context variable, so no signature needs it and no call can forget it. Without a deadline, as in
commands, each call has `DEFAULT_SECONDS`.

Calls are repeated after `Passing` errors, with full jitter, until the deadline; after StorageFailed they are not, since
waiting does not help. No write depends on being sent only once: a change that
must count once has a record of its own in its transaction. A call that is given up is logged, once in ten seconds.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import Any, TypeVar

from datastore.dynamo.budgets import current
from datastore.dynamo.errors import (
    ConditionFailed,
    DeadlineExceeded,
    DynamoError,
    EngineUnavailable,
    Passing,
    StorageFailed,
    dynamo_error,
)

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
        raise DeadlineExceeded("the request's time was used up; last: it waited for shared work") from None


async def retry(call: Callable[..., Awaitable[T]], *arguments: Any, **parameters: Any) -> T:
    """The answer of a call, which is repeated until the deadline."""
    budget, check, now = current(), _check.get(), asyncio.get_running_loop().time
    otherwise = now() + DEFAULT_SECONDS
    pause, doubtful = _FIRST_PAUSE, False
    last: Passing | None = None
    while True:
        check()
        ends = otherwise if budget.ends == inf else budget.ends
        try:
            async with asyncio.timeout_at(ends):
                return await call(*arguments, **parameters)
        except Exception as error:
            failure = dynamo_error(error) or error
            if isinstance(failure, ConditionFailed):
                raise ConditionFailed(failure.failures, doubtful=doubtful) from None
            if isinstance(failure, StorageFailed):
                _log_failure(failure)
            if not isinstance(failure, Passing) or isinstance(failure, StorageFailed):
                if failure is error:
                    raise
                raise failure from error
            # The failure of the attempt before says more than that the deadline ended this one.
            if not (isinstance(error, TimeoutError) and isinstance(last, EngineUnavailable)):
                last = failure
        doubtful = doubtful or isinstance(failure, EngineUnavailable)
        # Full jitter: repeats at the same moment would conflict again.
        wait = random.uniform(0, pause)  # noqa: S311 - spreads load, hides nothing
        ends = otherwise if budget.ends == inf else budget.ends  # others may have joined, who have more time
        if now() + wait >= ends:
            _log_failure(last)
            if isinstance(last, EngineUnavailable):
                raise DeadlineExceeded(f"the request's time was used up; last: {last}") from last
            raise last
        await asyncio.sleep(wait)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _log_failure(failure: DynamoError) -> None:
    reason, now = f"{type(failure).__name__}: {failure}", time.monotonic()
    if now - _logged.get(reason, -_LOG_SECONDS) >= _LOG_SECONDS:
        _logged[reason] = now
        _log.warning("the table cannot be used: %s", reason)
