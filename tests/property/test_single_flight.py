"""The law of shared reads, under schedules nobody would think of.

An engine whose reads answer what was there when they arrived; writers and readers that come, go and lose patience.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as some

from datastore.dynamo import DeadlineExceeded, Throttled, deadline
from datastore.dynamo.transport.single_flight import Flights, Reach, written

KEYS = ("LEADERBOARD#cats", "LEADERBOARD#dogs", "BOARD#cats")


@dataclass(frozen=True)
class Step:
    """Somebody comes at a turn of the loop and asks or writes; it takes some turns, and perhaps they lose patience."""

    at: int
    key: str
    write: bool
    takes: int
    patience: int
    fails: bool


STEPS = some.lists(
    some.builds(
        Step,
        at=some.integers(0, 12),
        key=some.sampled_from([*KEYS, "VOTER#me"]),
        write=some.booleans(),
        takes=some.integers(1, 6),
        patience=some.integers(1, 20),
        fails=some.booleans(),
    ),
    max_size=25,
)


class Engine:
    """Versions by key; a read is answered late with what it found early."""

    def __init__(self) -> None:
        reach = Reach()
        reach.add("BOARD#{board}", "LEADERBOARD#{board}")
        reach.add("VOTER#{voter}")
        self.flights = Flights(reach)
        self.versions = Counter[str]()
        self.reading = Counter[str]()
        self.most = Counter[str]()

    async def read(self, step: Step) -> int:
        found = self.versions[step.key]
        self.reading[step.key] += 1
        self.most[step.key] = max(self.most[step.key], self.reading[step.key])
        try:
            await turns(step.takes)
        finally:
            self.reading[step.key] -= 1
        if step.fails:
            raise Throttled
        return found

    async def write(self, step: Step) -> None:
        """A board is written, and with it what its index keys lead to; a voter is written alone."""
        primary = "VOTER#me" if step.key == "VOTER#me" else "BOARD#cats"
        try:
            await turns(step.takes)
            self.versions.update(["VOTER#me"] if primary == "VOTER#me" else KEYS)
        finally:
            self.flights.closed(iter([primary]))


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def played(steps: Sequence[Step]) -> Engine:
    """Let everybody do their steps, and hold them to the law."""
    engine = Engine()

    async def act(step: Step) -> None:
        await turns(step.at)
        if step.write:
            await engine.write(step)
            return
        acknowledged = engine.versions[step.key]
        answer = await engine.flights.share(step.key, step.key, lambda: engine.read(step))
        assert answer >= acknowledged, "a write that was acknowledged before the reader came is missing"

    async def lose_patience(step: Step, task: asyncio.Task[None]) -> None:
        await turns(step.at + step.patience)
        task.cancel()

    tasks = [asyncio.create_task(act(step)) for step in steps]
    watches = [asyncio.create_task(lose_patience(*pair)) for pair in zip(steps, tasks, strict=True)]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.gather(*watches)
    for step, outcome in zip(steps, outcomes, strict=True):
        mine = isinstance(outcome, asyncio.CancelledError) or (step.fails and isinstance(outcome, Throttled))
        assert outcome is None or mine, "nobody fails for another's reasons"
    assert not engine.flights._under_way
    return engine


@given(STEPS)
@settings(max_examples=300)
def test_readers_see_what_was_acknowledged_and_fail_for_their_own_reasons_alone(steps: list[Step]) -> None:
    """Whoever else reads, writes, fails or goes away meanwhile."""
    asyncio.run(played(steps))


@given(STEPS)
@settings(max_examples=100)
def test_there_is_one_read_at_a_time(steps: list[Step]) -> None:
    """Of each key, as long as nobody writes; also when those who began reads go away."""
    engine = asyncio.run(played([step for step in steps if not step.write]))
    assert set(engine.most.values()) <= {1}


async def test_two_hundred_readers_make_one_read() -> None:
    """All are given its answer."""
    engine = Engine()
    step = Step(at=0, key=KEYS[0], write=False, takes=5, patience=0, fails=False)
    asked = (engine.flights.share(step.key, step.key, lambda: engine.read(step)) for _ in range(200))
    answers = await asyncio.gather(*asked)
    assert answers == [0] * 200
    assert engine.most == {KEYS[0]: 1}


async def test_who_waits_does_so_until_the_own_deadline() -> None:
    """The read goes on for the others."""
    engine = Engine()
    slow = Step(at=0, key=KEYS[0], write=False, takes=200, patience=0, fails=False)

    async def read() -> int:
        await asyncio.sleep(0.2)
        return await engine.read(slow)

    async def ask(seconds: float) -> int:
        with deadline(seconds):
            return await engine.flights.share(slow.key, slow.key, read)

    first, hurried, second = await asyncio.gather(ask(5), ask(0.02), ask(5), return_exceptions=True)
    assert (first, second) == (0, 0)
    assert isinstance(hurried, DeadlineExceeded)


async def test_a_write_nobody_declared_ends_all_sharing() -> None:
    """What it touches is not known, so it touches everything."""
    engine = Engine()
    step = Step(at=0, key="VOTER#me", write=False, takes=5, patience=0, fails=False)
    first = asyncio.create_task(engine.flights.share("a", step.key, lambda: engine.read(step)))
    await asyncio.sleep(0)
    engine.versions[step.key] += 1
    engine.flights.closed(iter(["FOREIGN#one"]))
    assert await engine.flights.share("a", step.key, lambda: engine.read(step)) == 1
    assert await first == 0


def test_a_key_that_may_begin_with_anything_touches_everything() -> None:
    """As does one that no entity declares; the others touch what shares their items."""
    reach = Reach()
    reach.add("BOARD#{board}", "BOARDS")
    reach.add("BOARD#{board}", "LEADERBOARD#{board}")
    reach.add("NOTE#{note}", "{shelf}#NOTES")
    assert reach.of("BOARD") == {"BOARD", "BOARDS", "LEADERBOARD"}
    assert reach.of("NOTE") is None
    assert reach.of("FOREIGN") is None


def test_a_call_tells_which_partitions_it_writes() -> None:
    """Of every kind of write; a check writes nothing."""
    key, item = {"pk": {"S": "A#1"}, "sk": {"S": "A"}}, {"pk": {"S": "B#1"}, "sk": {"S": "B"}, "n": {"N": "1"}}
    assert list(written({"TableName": "t", "Key": key})) == ["A#1"]
    assert list(written({"TableName": "t", "Item": item})) == ["B#1"]
    actions = [
        {"Put": {"Item": item}},
        {"Update": {"Key": key}},
        {"Delete": {"Key": key}},
        {"ConditionCheck": {"Key": key}},
    ]
    assert list(written({"TransactItems": actions})) == ["B#1", "A#1", "A#1"]
    requests = [{"PutRequest": {"Item": item}}, {"DeleteRequest": {"Key": key}}]
    assert list(written({"RequestItems": {"t": requests}})) == ["B#1", "A#1"]
