"""Shared reads under random schedules of readers and writers that come, are cancelled, or meet a throttled engine."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from datastore.dynamo import DeadlineExceeded, Rejected, Throttled, deadline, metered, retries
from datastore.dynamo.budgets import current
from datastore.dynamo.entity import Invalidation, written_partitions
from datastore.dynamo.table import BURST, INTERVAL, SharedReads
from tests.examples import examples
from tests.waiting import turns

KEYS = ("LEADERBOARD#cats", "LEADERBOARD#dogs", "BOARD#cats")


@dataclass(frozen=True)
class Step:
    """At a turn of the loop somebody reads or writes; it takes some turns, and perhaps they are cancelled before."""

    at: int
    key: str
    write: bool
    takes: int
    patience: int
    leaves: bool
    fails: bool


STEPS = some.lists(
    some.builds(
        Step,
        at=some.integers(0, 12),
        key=some.sampled_from([*KEYS, "VOTER#me"]),
        write=some.booleans(),
        takes=some.integers(1, 6),
        patience=some.integers(1, 20),
        leaves=some.booleans(),
        fails=some.booleans(),
    ),
    max_size=25,
)


class Engine:
    """Versions by key; a read is answered late with what it found early."""

    def __init__(self, burst: int = BURST) -> None:
        invalidation = Invalidation()
        invalidation.add("BOARD#{board}", "LEADERBOARD#{board}")
        invalidation.add("VOTER#{voter}")
        self.reads = SharedReads(invalidation, burst=burst)
        self.versions = Counter[str]()
        self.reading = Counter[str]()
        self.most = Counter[str]()
        self.recovered = False

    async def read(self, step: Step) -> int:
        found = self.versions[step.key]
        self.reading[step.key] += 1
        self.most[step.key] = max(self.most[step.key], self.reading[step.key])
        try:
            await turns(step.takes)
        finally:
            self.reading[step.key] -= 1
        if step.fails and not self.recovered:
            raise Throttled
        return found

    async def write(self, step: Step) -> None:
        """A board is written, and with it what its index keys lead to; a voter is written alone."""
        primary = "VOTER#me" if step.key == "VOTER#me" else "BOARD#cats"
        try:
            await turns(step.takes)
            self.versions.update(["VOTER#me"] if primary == "VOTER#me" else KEYS)
        finally:
            self.reads.invalidate(iter([primary]))


async def played(steps: Sequence[Step], burst: int = BURST) -> Engine:
    """Let everybody do their steps, and hold them to the guarantee."""
    engine = Engine(burst)

    async def act(step: Step) -> None:
        await turns(step.at)
        if step.write:
            await engine.write(step)
            return
        acknowledged = engine.versions[step.key]
        answer = await engine.reads.read(step.key, step.key, lambda: engine.read(step))
        assert answer >= acknowledged, "a write that was acknowledged before the reader came is missing"

    async def cancel(step: Step, task: asyncio.Task[None]) -> None:
        await turns(step.at + step.patience)
        task.cancel()

    async def recover() -> None:
        await turns(15)
        engine.recovered = True

    tasks = [asyncio.create_task(act(step)) for step in steps]
    cancellations = [asyncio.create_task(cancel(*pair)) for pair in zip(steps, tasks, strict=True) if pair[0].leaves]
    outcomes = await asyncio.gather(recover(), *tasks, return_exceptions=True)
    await asyncio.gather(*cancellations)
    for step, outcome in zip(steps, outcomes[1:], strict=True):
        cancelled = step.leaves and isinstance(outcome, asyncio.CancelledError)
        assert outcome is None or cancelled, "a read failed because of another request"
    await turns(10)
    assert not any(kind._latest for kind in engine.reads._kinds.values())
    return engine


@pytest.fixture(autouse=True, scope="module")
def _no_pauses() -> Iterator[None]:
    """Failed attempts are repeated at the next turn of the loop."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retries, "_FIRST_PAUSE", 0.0)
        yield


@pytest.mark.parametrize("burst", [BURST, 1])
@given(STEPS)
@settings(max_examples=examples(300))
def test_readers_see_acknowledged_writes_and_never_fail_because_of_others(burst: int, steps: list[Step]) -> None:
    """Whatever else is read, written, throttled or cancelled meanwhile; also if every answer is kept for a moment."""
    asyncio.run(played(steps, burst))


@given(STEPS)
@settings(max_examples=examples(100))
def test_there_is_one_read_at_a_time(steps: list[Step]) -> None:
    """Of each key, as long as nobody writes; also when the requests that began reads are cancelled."""
    engine = asyncio.run(played([step for step in steps if not step.write]))
    assert set(engine.most.values()) <= {1}


async def test_two_hundred_readers_make_one_read() -> None:
    """All are given its answer."""
    engine = Engine()
    step = Step(at=0, key=KEYS[0], write=False, takes=5, patience=0, leaves=False, fails=False)
    asked = (engine.reads.read(step.key, step.key, lambda: engine.read(step)) for _ in range(200))
    answers = await asyncio.gather(*asked)
    assert answers == [0] * 200
    assert engine.most == {KEYS[0]: 1}


async def test_each_request_waits_until_its_own_deadline() -> None:
    """Also the one that began the read, which goes on for the others."""
    engine = Engine()
    slow = Step(at=0, key=KEYS[0], write=False, takes=200, patience=0, leaves=False, fails=False)

    answered = asyncio.Event()

    async def read() -> int:
        await answered.wait()
        return await engine.read(slow)

    async def ask(seconds: float) -> int:
        with deadline(seconds):
            return await engine.reads.read(slow.key, slow.key, read)

    first, second, third = (asyncio.create_task(ask(seconds)) for seconds in (0.02, 60, 0.02))
    for impatient in (first, third):
        with pytest.raises(DeadlineExceeded):
            await impatient
    answered.set()
    assert await second == 0
    assert engine.most == {KEYS[0]: 1}


async def test_a_read_that_nobody_waits_for_any_more_ends() -> None:
    """Else an engine that hangs would be asked, once it is back, for what all gave up before it serves anybody new."""
    reads, under_way = SharedReads(), Counter[str]()

    async def hang(key: str) -> None:
        under_way[key] += 1
        try:
            await asyncio.Event().wait()
        finally:
            under_way[key] -= 1

    async def ask(number: int) -> None:
        key = KEYS[number % 3]
        with deadline(0.05):
            await reads.read(key, key, lambda: hang(key))

    outcomes = await asyncio.gather(*map(ask, range(9)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {DeadlineExceeded}
    await turns(3)
    assert +under_way == Counter()


async def test_a_refused_read_is_refused_to_all_who_share_it() -> None:
    """And not repeated: the engine would refuse it again."""
    attempts = []

    async def refused() -> None:
        attempts.append(1)
        await turns(3)
        raise Rejected("no such index")

    reads = SharedReads()
    outcomes = await asyncio.gather(*(reads.read("a", KEYS[0], refused) for _ in range(5)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Rejected] * 5
    assert len(attempts) == 1


async def test_a_read_is_charged_to_the_request_that_began_it() -> None:
    """Once, however many share it."""
    reads = SharedReads()

    async def attempt() -> None:
        await turns(3)
        current().spent.read_units += 1.0

    async def ask() -> float:
        with metered() as spent:
            await reads.read("a", KEYS[0], attempt)
        return spent.read_units

    assert await asyncio.gather(*(ask() for _ in range(3))) == [1.0, 0.0, 0.0]


async def test_what_everybody_asks_for_is_read_four_times_a_second() -> None:
    """Further requests are given the last answer, and a new one once it is a quarter of a second old."""
    reads, begun, now = SharedReads(), [], asyncio.get_running_loop().time

    async def attempt() -> int:
        begun.append(now())
        return len(begun)

    start, answers = now(), []
    while len(begun) < BURST + 3:
        answers.append(await reads.read("a", KEYS[0], attempt))
        await turns(1)
    assert len(begun) <= BURST + 1 + (now() - start) / INTERVAL
    assert len(answers) > len(begun)
    assert answers == sorted(answers)


async def test_a_write_lets_one_read_begin_early() -> None:
    """And no further one before the next would be due without the write."""
    reads, begun, now = SharedReads(burst=1), [], asyncio.get_running_loop().time

    async def attempt() -> int:
        begun.append(now())
        return len(begun)

    async def read_until(number: int) -> None:
        while len(begun) < number:
            await reads.read("a", KEYS[0], attempt)

    await read_until(1)
    await asyncio.sleep(INTERVAL / 2)
    reads.invalidate(iter([KEYS[0]]))
    await read_until(3)
    assert begun[2] - begun[0] > INTERVAL * 0.9  # clocks are rounded


async def test_what_few_ask_for_is_read_each_time() -> None:
    """As many times as the burst, one after another; and other reads do not count."""
    engine, step = Engine(), Step(0, KEYS[0], write=False, takes=1, patience=0, leaves=False, fails=False)
    for number in range(BURST):
        engine.versions[step.key] = number  # written by another process
        assert await engine.reads.read(step.key, step.key, lambda: engine.read(step)) == number
        await engine.reads.read("another", step.key, lambda: engine.read(step))


async def test_an_answer_that_a_write_outdated_is_not_kept() -> None:
    """Also if an earlier write had come before its attempt began, so that nobody joins the attempt any more."""
    engine, step = Engine(burst=1), Step(0, KEYS[0], write=False, takes=5, patience=0, leaves=False, fails=False)
    first = asyncio.create_task(engine.reads.read(step.key, step.key, lambda: engine.read(step)))
    await turns(1)
    engine.reads.invalidate(iter(["BOARD#cats"]))
    assert not engine.reading
    await turns(2)
    assert engine.reading == {step.key: 1}
    engine.versions[step.key] += 1
    engine.reads.invalidate(iter(["BOARD#cats"]))
    assert await first == 0
    assert await engine.reads.read(step.key, step.key, lambda: engine.read(step)) == 1


async def test_an_absence_is_not_kept() -> None:
    """Another process may just have created what is asked for."""
    reads, found = SharedReads(burst=1), None

    async def attempt() -> str | None:
        return found

    assert await reads.read("a", KEYS[0], attempt) is None
    found = "created"
    assert await reads.read("a", KEYS[0], attempt) == "created"


async def test_answers_are_forgotten_in_time() -> None:
    """Clients choose the keys."""
    reads = SharedReads(burst=1, interval=0.01)

    async def attempt() -> str:
        return "answer"

    for number in range(100):
        await reads.read(number, KEYS[0], attempt)
    await asyncio.sleep(0.05)
    await reads.read("last", KEYS[0], attempt)
    (kind,) = reads._kinds.values()
    assert (len(kind._entries), len(kind._latest)) == (1, 0)


async def test_an_undeclared_write_ends_all_sharing() -> None:
    """What it touches is not known, so it touches everything."""
    engine = Engine()
    step = Step(at=0, key="VOTER#me", write=False, takes=5, patience=0, leaves=False, fails=False)
    first = asyncio.create_task(engine.reads.read("a", step.key, lambda: engine.read(step)))
    await turns(2)
    engine.versions[step.key] += 1
    engine.reads.invalidate(iter(["FOREIGN#one"]))
    assert await engine.reads.read("a", step.key, lambda: engine.read(step)) == 1
    assert await first == 0


def test_a_key_that_may_begin_with_anything_touches_everything() -> None:
    """As does one that no entity declares; the others touch what shares their items."""
    invalidation = Invalidation()
    invalidation.add("BOARD#{board}", "BOARDS")
    invalidation.add("BOARD#{board}", "LEADERBOARD#{board}")
    invalidation.add("NOTE#{note}", "{shelf}#NOTES")
    assert invalidation.words("BOARD") == {"BOARD", "BOARDS", "LEADERBOARD"}
    assert invalidation.words("NOTE") is None
    assert invalidation.words("FOREIGN") is None


def test_a_call_tells_which_partitions_it_writes() -> None:
    """Of every kind of write; a check writes nothing."""
    key, item = {"pk": {"S": "A#1"}, "sk": {"S": "A"}}, {"pk": {"S": "B#1"}, "sk": {"S": "B"}, "n": {"N": "1"}}
    assert list(written_partitions({"TableName": "t", "Key": key})) == ["A#1"]
    assert list(written_partitions({"TableName": "t", "Item": item})) == ["B#1"]
    actions = [
        {"Put": {"Item": item}},
        {"Update": {"Key": key}},
        {"Delete": {"Key": key}},
        {"ConditionCheck": {"Key": key}},
    ]
    assert list(written_partitions({"TransactItems": actions})) == ["B#1", "A#1", "A#1"]
    requests = [{"PutRequest": {"Item": item}}, {"DeleteRequest": {"Key": key}}]
    assert list(written_partitions({"RequestItems": {"t": requests}})) == ["B#1", "A#1"]


async def test_a_read_under_way_is_joined_however_long_it_takes() -> None:
    """A request that comes meanwhile gets the same answer; after a write, that of a read which begins then."""
    shared, begun, go_on = SharedReads(), Counter[str](), asyncio.Event()

    async def attempt() -> int:
        begun["reads"] += 1
        number = begun["reads"]
        await go_on.wait()
        return number

    async def ask() -> int:
        return await shared.read("page", KEYS[0], attempt)

    first = asyncio.create_task(ask())
    await turns(10)
    second = asyncio.create_task(ask())
    await turns(10)
    shared.invalidate(iter([KEYS[0]]))
    third = asyncio.create_task(ask())
    await turns(10)
    go_on.set()
    assert (await first, await second, await third) == (1, 1, 2)
    await shared.close()
