"""Feeds under random schedules of departures, returns, late commits and failures: each record is told exactly once."""

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as some
from structlog.testing import capture_logs

from datastore.dynamo import EngineUnavailable
from datastore.values.ids import Ids
from resolvers.live import feed
from resolvers.live.feed import Arrival, Feed, ResumePoint, Source
from tests.examples import examples
from tests.waiting import turns

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
LONGEST_WRITE = timedelta(seconds=10)
TURNS = 60
"""Turns of the loop after which all that was begun has ended: nothing here waits for a timer."""


@dataclass(frozen=True)
class Begin:
    """A write chooses its position on a process whose clock is fast or slow, and is committed when it ends."""

    skew: float = 0.0


@dataclass(frozen=True)
class End:
    """One of the open writes is committed."""

    which: int = 0


@dataclass(frozen=True)
class Delete:
    """One of the told records is deleted."""

    which: int


@dataclass(frozen=True)
class Pass:
    """Time passes; then both processes look, unless their engine is gone."""

    seconds: float
    gone: bool = False


@dataclass(frozen=True)
class Listen:
    """The listener comes back to a process. It leaves after so many events, or stays until the next `Listen`."""

    process: int
    events: int = 1_000


Action = Begin | End | Delete | Pass | Listen
SKEWS = some.sampled_from([-2.4, -0.3, 0.0, 0.7, 2.4])
ACTIONS = some.lists(
    some.builds(Begin, SKEWS)
    | some.builds(End, some.integers(0, 5))
    | some.builds(Delete, some.integers(0, 20))
    | some.builds(Pass, some.sampled_from([0.6, 1.0, 4.0, 9.0, 30.0]), some.sampled_from([False, False, True]))
    | some.builds(Listen, some.integers(0, 1), some.sampled_from([0, 1, 2, 1_000])),
    min_size=12,
    max_size=60,
)


@dataclass
class World:
    """A table, its clock, two processes; a listener that comes and goes, and one that stays with the first process."""

    now: datetime = BEGAN
    gone: bool = False
    open: dict[str, datetime] = field(default_factory=dict)
    """The positions of open writes, with the moment when each began."""
    committed: list[str] = field(default_factory=list)
    present: set[str] = field(default_factory=set)
    told: list[str] = field(default_factory=list)
    told_steady: list[str] = field(default_factory=list)
    listening: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.processes = [self.process(0), self.process(1)]
        self.start = self.new_id(0)
        self.text = ResumePoint(self.start).text
        self.now += timedelta(seconds=5)  # so that no position, of any clock, is before the start

    def new_id(self, skew: float) -> str:
        return Ids().next(self.now + timedelta(seconds=skew))

    def process(self, number: int) -> Feed[str]:
        """A feed on a process of its own, with a clock of its own."""
        skew = timedelta(seconds=(-2.4, 2.4)[number])
        return Feed(Source(self.look, lambda: self.now + skew, LONGEST_WRITE, 1e6))

    async def look(self, past: str, up_to: str) -> tuple[list[Arrival[str]], str]:
        await asyncio.sleep(0)
        if self.gone:
            raise EngineUnavailable("gone")
        found = sorted(id_ for id_ in self.present if past < id_ <= up_to)[:3]
        return [Arrival(id_, id_) for id_ in found], found[-1] if len(found) == 3 else up_to

    async def play(self, actions: list[Action]) -> None:
        steady = asyncio.create_task(self.listen_steadily())
        await turns(TURNS)
        ending: list[Action] = [*[Pass(5.0)] * 8, Listen(1), *[Pass(5.0)] * 8]
        for action in actions + ending:
            await self.act(action)
        await self.leave()
        await left(steady)

    async def act(self, action: Action) -> None:
        match action:
            case Begin(skew):
                self.open[self.new_id(skew)] = self.now
            case End(which) if self.open:
                self.commit([*self.open][which % len(self.open)])
            case Delete(which) if told_to_both := sorted({*self.told} & {*self.told_steady}):
                self.present.discard(told_to_both[which % len(told_to_both)])
            case Pass():
                await self.pass_by(action)
            case Listen():
                await self.leave()
                self.listening = asyncio.create_task(self.listen(action))
                await turns(TURNS)

    def commit(self, position: str) -> None:
        del self.open[position]
        self.committed.append(position)
        self.present.add(position)

    async def pass_by(self, action: Pass) -> None:
        """Time passes. A write is committed before its request's time ends."""
        self.now += timedelta(seconds=action.seconds)
        for position in [position for position, began in self.open.items() if began + LONGEST_WRITE < self.now]:
            self.commit(position)
        self.gone = action.gone
        for process in self.processes:
            process.poller.hurry()
        await turns(TURNS)
        self.gone = False

    async def leave(self) -> None:
        if self.listening is not None:
            await left(self.listening)

    async def listen_steadily(self) -> None:
        async with aclosing(self.processes[0].listen(ResumePoint(self.start), resumed=False)) as arrivals:
            async for arrival in arrivals:
                self.told_steady.append(arrival.record)

    async def listen(self, action: Listen) -> None:
        if self.processes[action.process].poller.idle:
            self.processes[action.process] = self.process(action.process)
        process = self.processes[action.process]
        async with aclosing(process.listen(ResumePoint.parse(self.text), resumed=True)) as arrivals:
            for _ in range(action.events):
                arrival = await anext(arrivals)
                self.told.append(arrival.record)
                self.text = arrival.resume_after


async def left(task: asyncio.Task[None]) -> None:
    """Ends a listener. One that failed before fails the test."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def play(actions: list[Action]) -> World:
    with capture_logs():
        world = World()
        asyncio.run(world.play(actions))
        return world


LEFT_EARLY = [Begin(), Begin(), Begin(), End(1), End(1), Pass(1.0), Listen(0, 1), End(), Listen(0)]
"""The listener returns, leaves after one event, and a record with an older position is committed then."""
FAST_THEN_SLOW = [Begin(2.4), End(), Listen(1), Pass(1.0), Listen(0)]
"""A process whose clock is fast told of a position that one whose clock is slow has yet to reach."""
SLOW_WRITER = [Begin(-2.4), Listen(1), Pass(9.0), Begin(), End(1), Pass(0.6), End(), Listen(1)]
"""A process whose clock is fast must not take for settled what one whose clock is slow may still commit."""


@settings(max_examples=examples(150))
@example(actions=LEFT_EARLY)
@example(actions=FAST_THEN_SLOW)
@example(actions=SLOW_WRITER)
@given(actions=ACTIONS)
def test_every_record_is_told_once(actions: list[Action]) -> None:
    """To a listener that stays, and to one that comes and goes between two processes."""
    world = play(actions)
    assert sorted(world.told) == sorted(world.committed)
    assert sorted(world.told_steady) == sorted(world.committed)


@settings(max_examples=examples(100))
@given(actions=ACTIONS)
def test_beyond_its_bound_a_text_repeats_nothing(actions: list[Action]) -> None:
    """A text that can name two positions: what it cannot name counts as told. A listener that stays misses nothing."""
    with patch.object(feed, "MOST_NAMED", 2):
        world = play(actions)
    assert len(set(world.told)) == len(world.told)
    assert {*world.told} <= {*world.committed}
    assert sorted(world.told_steady) == sorted(world.committed)
