"""Pollers under random schedules of listeners that come, leave and are cancelled, and of looks that fail."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as some
from structlog.testing import capture_logs

from datastore.dynamo import EngineUnavailable, deadline
from datastore.dynamo.budgets import current
from resolvers.live.feed import Poller
from tests.examples import examples
from tests.waiting import turns


@dataclass(frozen=True)
class Listener:
    """Comes at a turn of the loop, and leaves after so many news, or is cancelled so many turns later."""

    at: int
    leaves_after: int
    cancelled_after: int | None


LISTENERS = some.lists(
    some.builds(
        Listener,
        at=some.integers(0, 20),
        leaves_after=some.integers(1, 4),
        cancelled_after=some.none() | some.integers(0, 20),
    ),
    min_size=1,
    max_size=8,
)
LOOKS_TAKE = some.lists(some.integers(0, 4), min_size=1, max_size=4)
FAILURES = some.lists(some.sampled_from([None, None, EngineUnavailable, ValueError]), min_size=1, max_size=6).filter(
    lambda failures: None in failures
)


class Source:
    """A number that is one more at each look that does not fail."""

    def __init__(self, takes: Sequence[int], failures: Sequence[type[Exception] | None]) -> None:
        self.poller = Poller(self.look, 0)
        self.takes, self.failures = takes, failures
        self.looks = self.number = self.under_way = 0

    async def look(self) -> bool:
        assert current().ends == inf, "a look has the deadline of a listener"
        self.looks += 1
        turn = self.looks
        self.under_way += 1
        assert self.under_way == 1, "two looks at a time"
        try:
            await turns(self.takes[turn % len(self.takes)])
        finally:
            self.under_way -= 1
        if (failure := self.failures[turn % len(self.failures)]) is not None:
            raise failure
        self.number += 1
        return True

    def is_past(self, number: int) -> bool:
        return self.number > number

    async def listen(self, listener: Listener) -> list[int]:
        await turns(listener.at)
        heard: list[int] = []
        with deadline(60):
            async with self.poller.listening():
                last = self.number
                while len(heard) < listener.leaves_after:
                    assert await self.poller.until(partial(self.is_past, last))
                    last = self.number
                    heard.append(last)
        return heard


async def cancel(listener: Listener, task: asyncio.Task[list[int]]) -> None:
    await turns(listener.at + (listener.cancelled_after or 0))
    task.cancel()


@given(LISTENERS, LOOKS_TAKE, FAILURES)
@settings(max_examples=examples(200))
def test_one_poll_serves_all_listeners_and_ends_with_the_last(
    listeners: list[Listener], takes: list[int], failures: list[type[Exception] | None]
) -> None:
    """Whichever listener is cancelled and whichever looks fail, the others hear each change once."""

    async def run() -> None:
        source = Source(takes, failures)
        tasks = [asyncio.create_task(source.listen(listener)) for listener in listeners]
        cancelled = [
            cancel(*pair) for pair in zip(listeners, tasks, strict=True) if pair[0].cancelled_after is not None
        ]
        outcomes, _ = await asyncio.gather(asyncio.gather(*tasks, return_exceptions=True), asyncio.gather(*cancelled))
        for listener, heard in zip(listeners, outcomes, strict=True):
            if isinstance(heard, BaseException):
                assert listener.cancelled_after is not None, heard
                assert isinstance(heard, asyncio.CancelledError)
            else:
                assert heard == sorted(set(heard))
        assert source.poller.idle
        looks = source.looks
        await turns(10)
        assert source.looks == looks, "a look without a listener"

    with capture_logs():
        asyncio.run(run())


async def test_closing_the_process_ends_the_poll_and_its_listeners() -> None:
    """A listener hears that nothing more will come."""
    source = Source([1], [None])

    async def listen() -> bool:
        async with source.poller.listening():
            return await source.poller.until(lambda: False)

    waiting = [asyncio.create_task(listen()) for _ in range(3)]
    await turns(5)
    await source.poller.close()
    assert await asyncio.gather(*waiting) == [False] * 3
    looks = source.looks
    await turns(10)
    assert source.looks == looks
