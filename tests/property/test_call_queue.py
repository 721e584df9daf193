"""The order of calls under random schedules of clients, requests, shared work and cancellations."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from datastore.dynamo.transport.connections import SERVICE, Caller, Callers, CallQueue, QueueFull
from tests.examples import examples
from tests.waiting import turns

MOST, MOST_OF_REQUEST = 4, 2


@dataclass(frozen=True)
class Step:
    """A call that begins at a turn of the loop and takes some; it may be cancelled, and another may join it."""

    at: int
    client: str
    request: int
    takes: int
    leaves_after: int | None
    joined_by: str | None


STEPS = some.lists(
    some.builds(
        Step,
        at=some.integers(0, 10),
        client=some.sampled_from("aaab"),
        request=some.integers(0, 2),
        takes=some.integers(0, 6),
        leaves_after=some.none() | some.integers(0, 12),
        joined_by=some.none() | some.sampled_from("abc"),
    ),
    max_size=40,
)


def new_queue(waiting: int = 1000, of_client: int = 1000) -> CallQueue:
    return CallQueue(MOST, most_of_request=MOST_OF_REQUEST, most_waiting=waiting, most_waiting_of_client=of_client)


@given(STEPS)
@settings(max_examples=examples(300))
def test_every_call_gets_its_turn_and_never_too_many_are_under_way(steps: list[Step]) -> None:
    """Also if callers leave or join; nothing is left behind when all have ended."""

    async def run() -> None:
        queue, under_way = new_queue(), Counter[Caller]()

        async def call(step: Step) -> None:
            await turns(step.at)
            callers = Callers(Caller(step.client, (step.client, step.request)))
            if step.joined_by is not None:
                asyncio.get_running_loop().call_soon(callers.add, Caller(step.joined_by, step.joined_by))
            caller = await queue.take_turn(callers)
            under_way[caller] += 1
            assert under_way.total() <= MOST
            assert under_way[caller] <= MOST_OF_REQUEST
            try:
                await turns(step.takes)
            finally:
                under_way[caller] -= 1
                queue.end_turn(caller)

        async def leave(step: Step, task: asyncio.Task[None]) -> None:
            await turns(step.at + (step.leaves_after or 0))
            task.cancel()

        tasks = [asyncio.create_task(call(step)) for step in steps]
        left = [leave(*pair) for pair in zip(steps, tasks, strict=True) if pair[0].leaves_after is not None]
        outcomes, _ = await asyncio.gather(asyncio.gather(*tasks, return_exceptions=True), asyncio.gather(*left))
        for step, outcome in zip(steps, outcomes, strict=True):
            assert outcome is None or (step.leaves_after is not None and isinstance(outcome, asyncio.CancelledError))
        await turns(3)
        assert (queue._under_way, queue._entries, queue._waiting) == (0, 0, {})
        assert not queue._of_client
        assert not queue._of_request

    asyncio.run(run())


async def order_of(queue: CallQueue, callers: Sequence[Callers]) -> list[Caller]:
    """The callers in the order in which their calls were sent."""
    sent: list[Caller] = []

    async def call(one: Callers) -> None:
        caller = await queue.take_turn(one)
        sent.append(caller)
        await asyncio.sleep(0)
        queue.end_turn(caller)

    await asyncio.gather(*map(call, callers))
    return sent


async def test_a_client_waits_for_few_calls_however_many_another_has_begun() -> None:
    """Forty requests with fifty calls each are one client, which shares with the other one by one."""
    attack = [Callers(Caller("attacker", f"request {number % 40}")) for number in range(2000)]
    honest = [Callers(Caller("honest", "page")) for _ in range(3)]
    sent = await order_of(new_queue(5000, 5000), attack + honest)
    places = [place for place, caller in enumerate(sent) if caller.client == "honest"]
    assert len(sent) == 2003
    assert max(places) <= MOST + 2 * len(honest)


async def test_what_several_wait_for_is_sent_at_the_first_of_their_turns() -> None:
    """A popular read that an attacker began is not behind the rest of the attack for those who join it."""
    queue = new_queue(5000, 5000)
    popular = Callers(Caller("attacker", "first"))
    attack = [Callers(Caller("attacker", "first")) for _ in range(500)]
    asyncio.get_running_loop().call_soon(popular.add, Caller("honest", "page"))
    sent = await order_of(queue, [*attack, popular])
    place = sent.index(Caller("honest", "page"))
    assert place <= MOST + 2
    assert len(sent) == 501


async def test_so_many_calls_wait_and_no_more() -> None:
    """Of one client, and of all; what the service does beside requests is never refused."""
    queue = new_queue(waiting=12, of_client=8)
    ada, bob = Caller("ada", 1), Caller("bob", 1)
    under_way = [await queue.take_turn(Callers(SERVICE)) for _ in range(MOST)]
    waiting = [asyncio.create_task(queue.take_turn(Callers(ada))) for _ in range(8)]
    await turns(2)
    with pytest.raises(QueueFull):
        await queue.take_turn(Callers(ada))
    waiting += [asyncio.create_task(queue.take_turn(Callers(bob))) for _ in range(4)]
    await turns(2)
    with pytest.raises(QueueFull):
        await queue.take_turn(Callers(bob))
    own = asyncio.create_task(queue.take_turn(Callers(SERVICE)))
    await turns(2)
    assert not own.done()
    for task in (*waiting, own):
        task.cancel()
    await asyncio.gather(*waiting, own, return_exceptions=True)
    for caller in under_way:
        queue.end_turn(caller)
    assert queue._under_way == 0
