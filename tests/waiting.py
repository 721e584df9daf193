"""Waiting for what becomes true: nothing else may decide a test that depends on how fast the machine is."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from datastore.dynamo import DeadlineExceeded, deadline
from tests.lagging.engine import CATCH_UP

LONGEST = 300.0


async def until(
    holds: Callable[[], Any | Awaitable[Any]], promise: str, seconds: float = LONGEST, pause: float = 0.01
) -> Any:
    """Ask again and again until the answer is true, and return it; `promise` says what was waited for.

    `holds` may be a coroutine function. The seconds only end a test that would wait for ever.
    """
    try:
        async with asyncio.timeout(seconds):
            while not (answer := await _answer(holds)):
                await asyncio.sleep(pause)
    except TimeoutError:
        raise AssertionError(f"not after {seconds:g} s: {promise}") from None
    return answer


async def _answer(holds: Callable[[], Any]) -> Any:
    answer = holds()
    return await answer if inspect.isawaitable(answer) else answer


async def until_refused(refusal: type[Exception], call: Callable[[], Awaitable[object]]) -> Any:
    """Call until its deadline ends with this refusal: on a busy machine it may end the wait for an answer instead."""

    async def refused() -> Exception | None:
        try:
            with deadline(0.3):
                await call()
        except DeadlineExceeded:
            return None
        except refusal as it:
            return it
        raise AssertionError(f"not refused: {refusal.__name__} was expected")

    return await until(refused, f"a call is refused with {refusal.__name__}")


async def turns(number: int = 50) -> None:
    """Let the event loop run what is ready, and what that makes ready: for tests without a network or a thread."""
    for _ in range(number):
        await asyncio.sleep(0)


async def caught_up(engine_url: str, promise: str) -> None:
    """Wait until indexes and plain reads show everything written so far; `promise` says what that makes true.

    On DynamoDB they are behind for a moment. An engine that lags (tests/lagging) is told not to wait any longer; the
    other engines never lag.
    """
    assert promise
    async with aiohttp.ClientSession() as http:
        target = {"X-Amz-Target": f"DynamoDB_20120810.{CATCH_UP}", "Content-Type": "application/x-amz-json-1.0"}
        async with http.post(engine_url, data=b"{}", headers=target) as response:
            await response.read()
