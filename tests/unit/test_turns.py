"""Turns: work that must not stop the event loop, one piece after the other."""

import asyncio
import gc
import threading
from functools import partial

import pytest

from server.execution.documents import Turns


async def test_the_event_loop_goes_on_during_a_turn() -> None:
    """The turn waits for the loop here; on the loop's own thread neither would ever end."""
    turns, ticks = Turns(), 0

    def work() -> None:
        seen = ticks
        while ticks < seen + 100:
            pass

    turn = asyncio.create_task(turns.take("work", work))
    while not turn.done():
        await asyncio.sleep(0)
        ticks += 1
    await turn


async def test_turns_follow_each_other() -> None:
    """However many are asked for at once, one runs at a time."""
    turns, running, most = Turns(), 0, 0
    counted = threading.Lock()

    def work() -> None:
        nonlocal running, most
        with counted:
            running += 1
            most = max(most, running)
        sum(range(20_000))
        with counted:
            running -= 1

    await asyncio.gather(*(turns.take(number, work) for number in range(20)))
    assert most == 1
    assert turns.waiting == 0


async def test_clients_take_turns() -> None:
    """A client who asks for one thing does not wait for all that another has asked for."""
    turns, done = Turns(), list[str]()
    clients = ["many"] * 20 + ["one"] * 2
    await asyncio.gather(*(turns.take(n, partial(done.append, client), client) for n, client in enumerate(clients)))
    assert sorted(done[:5]) == ["many", "many", "many", "one", "one"]
    assert (turns.waiting, turns.waiting_of) == (0, {})


async def test_those_who_want_the_same_share_a_turn_and_its_error() -> None:
    """The work is done once, whatever comes of it."""
    turns = Turns()
    done: list[int] = []

    def work() -> None:
        done.append(1)
        raise LookupError("no such document")

    asked = [turns.take("same", work) for _ in range(3)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(answer) for answer in answers] == [LookupError] * 3
    assert len(done) == 1
    with pytest.raises(LookupError):
        await turns.take("same", work)
    assert len(done) == 2


async def test_the_garbage_collector_rests_during_a_turn_only() -> None:
    """It would move what a document's check uses to the objects that it looks at least often."""
    turns = Turns()

    def fail() -> None:
        assert not gc.isenabled()
        raise LookupError

    assert not await turns.take("work", gc.isenabled)
    with pytest.raises(LookupError):
        await turns.take("failing work", fail)
    assert gc.isenabled()
