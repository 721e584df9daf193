"""Shared work under random schedules: callers come, are cancelled, and make others begin anew."""

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from datastore.dynamo import deadline, metered
from datastore.dynamo.budgets import current, join_work, shared_context
from datastore.dynamo.read_cache import SingleFlight
from tests.examples import examples
from tests.waiting import turns


class Act(Enum):
    RUN = "waits for the result"
    BEGIN = "begins the work and does not wait"
    FORGET = "makes the next caller begin anew"


@dataclass(frozen=True)
class Step:
    """What happens at one turn of the loop. Work takes some turns; a caller may be cancelled after some."""

    at: int
    act: Act
    key: str
    takes: int
    fails: bool
    leaves_after: int | None


STEPS = some.lists(
    some.builds(
        Step,
        at=some.integers(0, 12),
        act=some.sampled_from([Act.RUN, Act.RUN, Act.RUN, Act.BEGIN, Act.FORGET]),
        key=some.sampled_from("ab"),
        takes=some.integers(0, 6),
        fails=some.booleans(),
        leaves_after=some.none() | some.integers(0, 8),
    ),
    max_size=25,
)


class Failed(Exception):
    """One piece of work, by its number."""


class Works:
    """Numbers its pieces of work, which rise, and counts those of a key that are under way."""

    def __init__(self, *, abandons: bool = False) -> None:
        self.flights: SingleFlight[str, int] = SingleFlight(shared_context, join=join_work if abandons else None)
        self.begun = 0
        self.ended = set[int]()
        self.abandoned = set[int]()
        self.forgotten = Counter[str]()
        self.under_way = Counter[tuple[str, int]]()
        self.deadlines = set[float]()

    def factory(self, step: Step) -> Callable[[], Awaitable[int]]:
        return partial(self._work, step, (step.key, self.forgotten[step.key]))

    async def _work(self, step: Step, place: tuple[str, int]) -> int:
        self.begun += 1
        number = self.begun
        self.under_way[place] += 1
        assert self.under_way[place] == 1, "two pieces of work for one key, and nothing was forgotten"
        self.deadlines.add(current().ends)
        try:
            await turns(step.takes)
        except asyncio.CancelledError:
            self.abandoned.add(number)
            raise
        finally:
            self.under_way[place] -= 1
        self.ended.add(number)
        if step.fails:
            raise Failed(number)
        return number


async def played(steps: Sequence[Step], *, abandons: bool = False) -> Works:
    works = Works(abandons=abandons)
    last_forgotten = Counter[str]()

    async def act(step: Step) -> None:
        await turns(step.at)
        if step.act is Act.FORGET:
            works.flights.forget(step.key)
            works.forgotten[step.key] += 1
            last_forgotten[step.key] = works.begun
        elif step.act is Act.BEGIN:
            works.flights.begin(step.key, works.factory(step))
        else:
            oldest, already = last_forgotten[step.key], set(works.ended)
            with deadline(60):
                try:
                    number = await works.flights.run(step.key, works.factory(step))
                except Failed as error:
                    number = error.args[0]
            assert number > oldest, "the work began before it was forgotten"
            assert number not in already, "the work had ended before the caller came"

    async def leave(step: Step, task: asyncio.Task[None]) -> None:
        await turns(step.at + (step.leaves_after or 0))
        task.cancel()

    tasks = [asyncio.create_task(act(step)) for step in steps]
    left = [leave(*pair) for pair in zip(steps, tasks, strict=True) if pair[0].leaves_after is not None]
    outcomes, _ = await asyncio.gather(asyncio.gather(*tasks, return_exceptions=True), asyncio.gather(*left))
    for step, outcome in zip(steps, outcomes, strict=True):
        cancelled = step.leaves_after is not None and isinstance(outcome, asyncio.CancelledError)
        assert outcome is None or cancelled, outcome
    await turns(10)
    assert works.begun == len(works.ended | works.abandoned)
    assert abandons or not works.abandoned, "work ended with a caller"
    assert not list(works.flights)
    assert not works.flights._all
    assert works.deadlines <= {inf}
    return works


@given(STEPS)
@settings(max_examples=examples(300))
def test_each_caller_gets_work_that_ends_after_its_call_and_began_after_what_was_forgotten(steps: list[Step]) -> None:
    """One piece of work at a time for a key, in a context without a deadline; it outlives callers who are cancelled."""
    asyncio.run(played(steps))


@given(STEPS)
@settings(max_examples=examples(300))
def test_work_that_ends_with_the_last_who_waits_fails_nobody(steps: list[Step]) -> None:
    """Who comes at the moment when it is abandoned begins anew; nobody else is cancelled."""
    waiting = [replace(step, act=Act.RUN) if step.act is Act.BEGIN else step for step in steps]
    asyncio.run(played(waiting, abandons=True))


async def test_work_is_abandoned_when_the_last_who_waits_gives_up() -> None:
    """Also if it was forgotten, or has not run a step yet; not as long as one of them waits."""
    flights: SingleFlight[str, None] = SingleFlight(shared_context, join=join_work)
    begun, ended = list[str](), list[str]()

    async def work(name: str) -> None:
        begun.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    first, second = (flights.run("a", partial(work, "shared")) for _ in range(2))
    await turns(2)
    first.cancel()
    await turns(2)
    assert ended == []
    flights.forget("a")
    other = flights.run("a", partial(work, "anew"))
    await turns(2)
    second.cancel()
    assert "a" in flights
    other.cancel()
    assert "a" not in flights
    flights.run("a", partial(work, "never begun")).cancel()
    await turns(3)
    assert (begun, ended) == (["shared", "anew"], ["shared", "anew"])
    assert not flights._all


async def test_work_is_charged_to_the_request_that_began_it() -> None:
    """Its meter goes on; its deadline does not."""
    flights: SingleFlight[str, object] = SingleFlight(shared_context)

    async def meter() -> object:
        return current().spent

    with metered() as spent, deadline(60):
        assert await flights.run("a", meter) is spent


async def test_an_error_that_nobody_waited_for_is_reported() -> None:
    """By the event loop, as that of any task; one that somebody waited for is theirs alone, also if they gave up."""
    flights: SingleFlight[str, None] = SingleFlight(shared_context)
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))

    async def work() -> None:
        await turns(2)
        raise Failed(0)

    flights.begin("unheard", work)
    flights.run("given up", work).cancel()
    with pytest.raises(Failed):
        await flights.run("heard", work)
    await turns(2)
    gc.collect()
    assert [type(error) for error in reported] == [Failed]


@pytest.mark.parametrize("abandons", [False, True])
async def test_closing_ends_all_work_and_those_who_wait_for_it(*, abandons: bool) -> None:
    """Also work that was forgotten, or that has not run a step yet."""
    flights: SingleFlight[str, None] = SingleFlight(shared_context, join=join_work if abandons else None)
    forever = asyncio.Event()

    async def work() -> None:
        await forever.wait()

    waiting = [flights.run("a", work)]
    await turns(2)
    flights.forget("a")
    flights.begin("a", work)
    flights.begin("b", work)
    waiting.append(flights.run("a", work))
    await turns(1)
    await flights.close()
    for waiter in waiting:
        with pytest.raises(asyncio.CancelledError):
            await waiter
    assert not list(flights)
