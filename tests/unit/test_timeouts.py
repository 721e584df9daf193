"""Timeouts that share their timers end what they are about, and only that; on both event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from datastore.dynamo.transport.timeouts import GRAIN, Alarm, _waiting, timeout_at

LONG = 30.0


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=request.param) as one:
        yield one


def now() -> float:
    return asyncio.get_running_loop().time()


def test_what_is_late_is_ended_and_never_early(runner: asyncio.Runner) -> None:
    """TimeoutError comes out of the block, after its moment; the task goes on unharmed."""

    async def body() -> None:
        ends = now() + 0.03
        with pytest.raises(TimeoutError), timeout_at(ends):
            await asyncio.sleep(LONG)
        assert now() >= ends
        await asyncio.sleep(0)

    runner.run(body())


def test_what_is_in_time_is_left_alone(runner: asyncio.Runner) -> None:
    """Also when the moment comes after the block."""

    async def body() -> None:
        with timeout_at(now() + 0.02):
            pass
        await asyncio.sleep(0.02 + 2 * GRAIN)
        assert not _waiting

    runner.run(body())


def test_a_moment_that_is_over_ends_what_waits(runner: asyncio.Runner) -> None:
    """As soon as the loop comes round."""

    async def body() -> None:
        with pytest.raises(TimeoutError), timeout_at(now() - 1):
            await asyncio.sleep(LONG)

    runner.run(body())


def test_the_block_that_is_late_is_the_one_that_ends(runner: asyncio.Runner) -> None:
    """Not the one around it, and not the one within."""

    async def body() -> None:
        with timeout_at(now() + LONG), pytest.raises(TimeoutError), timeout_at(now()):
            await asyncio.sleep(LONG)
        with pytest.raises(TimeoutError), timeout_at(now()), timeout_at(now() + LONG):
            await asyncio.sleep(LONG)

    runner.run(body())


def test_a_cancellation_from_elsewhere_stays_one(runner: asyncio.Runner) -> None:
    """Whoever cancels hears of a cancellation; also when the time was up at the same moment."""

    async def waiting(ends: float) -> None:
        with timeout_at(ends):
            await asyncio.sleep(LONG)

    async def body() -> None:
        for ends in (now() + LONG, now()):
            task = asyncio.create_task(waiting(ends))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        both = asyncio.create_task(waiting(now()))
        await asyncio.sleep(0)
        alarm = Alarm(asyncio.get_running_loop(), now(), both.cancel)
        with pytest.raises(asyncio.CancelledError):
            await both
        alarm.cancel()

    runner.run(body())


def test_an_alarm_calls_once_unless_it_is_cancelled(runner: asyncio.Runner) -> None:
    """One that goes off may cancel another of the same moment."""

    async def body() -> None:
        loop, called = asyncio.get_running_loop(), []
        when = now() + 0.01
        Alarm(loop, when, lambda: called.append("a"))
        Alarm(loop, when, lambda: called.append("b")).cancel()
        pair: list[Alarm] = []
        pair.append(Alarm(loop, when, lambda: (called.append("c"), pair[1].cancel())))  # type: ignore[arg-type,return-value]
        pair.append(Alarm(loop, when, lambda: (called.append("c"), pair[0].cancel())))  # type: ignore[arg-type,return-value]
        await asyncio.sleep(3 * GRAIN)
        assert sorted(called) == ["a", "c"]

    runner.run(body())


def test_timers_are_shared_and_those_of_closed_loops_forgotten() -> None:
    """A thousand requests of one moment have one timer."""

    async def body() -> None:
        when = now() + LONG
        for _ in range(1000):
            Alarm(asyncio.get_running_loop(), when, lambda: None)
        assert len(_waiting) == 1

    for _ in range(3):
        asyncio.run(body())
    assert len(_waiting) == 1


@given(st.lists(st.tuples(st.floats(-0.01, 0.06), st.floats(0, 0.06)), min_size=1, max_size=20))
def test_who_is_late_and_who_is_not_is_told_apart(pairs: list[tuple[float, float]]) -> None:
    """Of many at once: who was given more than what it takes and the grain ends well, who was given less does not."""

    async def one(given_: float, takes: float) -> bool:
        try:
            with timeout_at(began + given_):
                await asyncio.sleep(takes)
        except TimeoutError:
            assert now() >= began + given_
            return False
        return True

    async def body() -> None:
        nonlocal began
        began = now()
        ended = await asyncio.gather(*(one(*pair) for pair in pairs))
        for (given_, takes), well in zip(pairs, ended, strict=True):
            if given_ > takes and not well:
                # Only a loop that was itself late may have missed it.
                assert now() - began > given_

    began = 0.0
    asyncio.run(body())
