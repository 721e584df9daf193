"""Cached and current reads under random schedules of loads, writes, failures and cancellations."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf

from hypothesis import example, given, settings
from hypothesis import strategies as some

from datastore.dynamo import ReadCache, Reads, deadline
from datastore.dynamo.budgets import current
from tests.examples import examples
from tests.waiting import turns

BROKEN = "broken"
"""A key that can never be read."""


class Act(Enum):
    LOAD = "one key, or several"
    WRITE = "by another process"
    PUT = "a write by this process, which knows the new record"
    FORGET = "a write by this process, which only knows that something changed"
    FAIL = "reads as a whole fail from now on, or no longer"


@dataclass(frozen=True)
class Step:
    """What happens at one turn of the loop. A load may be cancelled some turns later."""

    at: int
    act: Act
    keys: tuple[str, ...]
    leaves_after: int | None


KEYS = some.sampled_from(["a", "a", "b", BROKEN])
STEPS = some.lists(
    some.builds(
        Step,
        at=some.integers(0, 10),
        act=some.sampled_from([Act.LOAD, Act.LOAD, Act.LOAD, Act.WRITE, Act.PUT, Act.FORGET, Act.FAIL]),
        keys=some.lists(KEYS, min_size=1, max_size=3).map(tuple),
        leaves_after=some.none() | some.integers(0, 8),
    ),
    max_size=30,
)
READS_TAKE = some.lists(some.integers(0, 5), min_size=1, max_size=5)


class Broken(Exception):
    """This key cannot be read."""


class Gone(Exception):
    """Nothing can be read."""


class Store:
    """Versions by key, 0 for what is not there. A read answers with the versions of its beginning."""

    def __init__(self, takes: Sequence[int]) -> None:
        self.takes = takes
        self.versions = Counter[str]()
        self.noted = Counter[str]()
        self.changes = Counter[str]()
        """The versions that the reads was told of, and how often."""
        self.gone = self.was_gone = False
        self.reads = 0
        self.under_way = Counter[tuple[str, int]]()

    async def read(self, keys: Sequence[str]) -> Mapping[str, int | Exception]:
        assert current().ends < inf, "a read has no deadline although those who wait for it have"
        places = [(key, self.changes[key]) for key in keys]
        self.under_way.update(places)
        assert max(self.under_way.values()) == 1, "a key is read twice at a time, and was not changed"
        found: dict[str, int | Exception] = {key: self.versions[key] for key in keys if self.versions[key]}
        gone, takes = self.gone, self.takes[self.reads % len(self.takes)]
        self.reads += 1
        try:
            await turns(takes)
        finally:
            self.under_way.subtract(places)
        if gone:
            raise Gone
        return {**found, BROKEN: Broken()}

    def write(self, key: str) -> int:
        self.versions[key] += 1
        return self.versions[key]

    def note(self, key: str) -> None:
        self.noted[key] = self.versions[key]
        self.changes[key] += 1


@dataclass
class Schedule:
    """Steps that are played against a reads, and what must hold for each of them."""

    reads: Reads[str, int]
    store: Store
    fresh: bool

    async def play(self, steps: Sequence[Step]) -> None:
        tasks = [asyncio.create_task(self._act(step)) for step in steps]
        left = [_leave(*pair) for pair in zip(steps, tasks, strict=True) if pair[0].leaves_after is not None]
        outcomes, _ = await asyncio.gather(asyncio.gather(*tasks, return_exceptions=True), asyncio.gather(*left))
        for step, outcome in zip(steps, outcomes, strict=True):
            cancelled = step.leaves_after is not None and isinstance(outcome, asyncio.CancelledError)
            assert outcome is None or cancelled, outcome
        await turns(30)
        assert not self.reads._latest
        self.store.gone = False
        for key in ("a", "b"):
            with deadline(60):
                found = await self.reads.load(key)
            assert bool(found) is bool(self.store.versions[key]), "remembered that it was absent"

    async def _act(self, step: Step) -> None:
        await turns(step.at)
        key = step.keys[0]
        if step.act is Act.LOAD:
            with deadline(60):
                await self._load(step.keys)
        elif step.act is Act.FAIL:
            self.store.gone, self.store.was_gone = not self.store.gone, True
        else:
            version = self.store.write(key)
            if step.act is Act.WRITE or self.fresh:
                return
            if step.act is Act.PUT:
                self.reads.put(key, version)
            else:
                self.reads.forget(key)
            self.store.note(key)

    async def _load(self, keys: Sequence[str]) -> None:
        floor = Counter(self.store.versions if self.fresh else self.store.noted)
        try:
            answers = [await self.reads.load(keys[0])] if len(keys) == 1 else await self.reads.load_many(keys)
        except Broken:
            assert BROKEN in keys, "another key's failure"
        except Gone:
            assert self.store.was_gone
        else:
            assert BROKEN not in keys or self.store.changes[BROKEN]
            for key, answer in zip(keys, answers, strict=True):
                assert (answer or 0) >= floor[key], "older than what was known when it was asked for"


async def _leave(step: Step, task: asyncio.Task[None]) -> None:
    await turns(step.at + (step.leaves_after or 0))
    task.cancel()


READ_AGAIN = [
    Step(0, Act.LOAD, ("a",), None),
    Step(1, Act.FORGET, ("a",), None),
    Step(2, Act.LOAD, ("a", "b"), None),
    Step(3, Act.FORGET, ("a",), None),
    Step(4, Act.LOAD, ("a", "b"), None),
]
"""The last load waits for `b` with a batch whose answer to `a` is older than the change."""


@given(STEPS, READS_TAKE)
@example(READ_AGAIN, [2])
@settings(max_examples=examples(300))
def test_a_reads_with_a_ttl_never_answers_with_less_than_this_process_wrote(
    steps: list[Step], takes: list[int]
) -> None:
    """One read of a key at a time unless it changed meanwhile; errors reach those alone who wait for that key."""

    async def run() -> None:
        store = Store(takes)
        reads = ReadCache().batches("versions", store.read, age=3600.0)
        await Schedule(reads, store, fresh=False).play(steps)

    asyncio.run(run())


@given(STEPS, READS_TAKE)
@settings(max_examples=examples(300))
def test_a_fresh_reads_never_answers_with_less_than_there_was_when_it_was_asked(
    steps: list[Step], takes: list[int]
) -> None:
    """Also of what other processes wrote; and there is one read of a key at a time all the same."""

    async def run() -> None:
        store = Store(takes)
        reads = ReadCache().batches("versions", store.read)
        await Schedule(reads, store, fresh=True).play(steps)

    asyncio.run(run())
