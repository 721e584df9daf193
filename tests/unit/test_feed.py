"""The invariant of arrivals, with a list in the table's place: once each, in order, none missed."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from datastore.dynamo import EngineUnavailable
from datastore.values.ids import CLOCK_SKEW, Ids
from resolvers.live import feed as arrivals
from resolvers.live.feed import MOST_NAMED, Arrival, Feed, ResumePoint, Source
from resolvers.live.topics import Live

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
LONGEST_WRITE = timedelta(seconds=60)
DEFAULT_LONGEST_WRITE = timedelta(seconds=10)


class Shelf:
    """What has been committed, under a clock that moves only when told."""

    def __init__(self) -> None:
        self.now = BEGAN
        self.ids = Ids()
        self.committed: list[str] = []
        self.gone = False
        self.looks = 0
        self.shown: int | None = None
        """How many of the committed records a look finds; all of them by default."""

    def id(self) -> str:
        return self.ids.next(self.now)

    def commit(self, id_: str | None = None) -> str:
        self.committed.append(id_ or self.id())
        return self.committed[-1]

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @property
    def source(self) -> Source:
        return Source(self.look, lambda: self.now, LONGEST_WRITE, 0.005)

    async def look(self, past: str, up_to: str) -> tuple[list[Arrival[str]], str]:
        self.looks += 1
        if self.gone:
            message = "gone"
            raise EngineUnavailable(message)
        shown = self.committed[: self.shown]
        found = sorted(id_ for id_ in shown if past < id_ <= up_to)[:3]
        return [Arrival(id_, id_) for id_ in found], found[-1] if len(found) == 3 else up_to


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


async def next_of(stream: AsyncGenerator[Arrival[str], None], number: int) -> list[str]:
    async with asyncio.timeout(120):
        return [(await anext(stream)).record for _ in range(number)]


async def looked(shelf: Shelf, times: int = 2) -> None:
    """Once that many more looks were begun."""
    until = shelf.looks + times
    async with asyncio.timeout(120):
        while shelf.looks < until:
            await asyncio.sleep(0.001)


async def test_a_listener_gets_what_comes_after_its_start(shelf: Shelf) -> None:
    """Also what was committed before somebody looked; nothing from before; nothing before it is half a second old."""
    topic: Feed[str] = Feed(shelf.source)
    shelf.commit()
    stream = topic.listen(ResumePoint(shelf.id()), resumed=False)
    waiting = asyncio.create_task(next_of(stream, 2))
    await looked(shelf)
    ids = [shelf.commit(), shelf.commit()]
    await looked(shelf)
    assert not waiting.done()
    shelf.pass_by(1)
    assert await waiting == ids
    await stream.aclose()
    assert topic.poller.idle


async def test_an_item_that_is_committed_late_arrives_late(shelf: Shelf) -> None:
    """Each listener gets it once."""
    topic: Feed[str] = Feed(shelf.source)
    stream = topic.listen(ResumePoint(shelf.id()), resumed=False)
    waiting = asyncio.create_task(next_of(stream, 1))
    await looked(shelf)
    late, prompt = shelf.id(), shelf.commit()
    shelf.pass_by(5)
    assert await waiting == [prompt]
    shelf.commit(late)
    shelf.pass_by(59)
    arrival = await asyncio.wait_for(anext(stream), 120)
    assert arrival.record == late
    last = shelf.commit()
    shelf.pass_by(1)
    assert await next_of(stream, 1) == [last]
    await stream.aclose()


async def test_a_returning_listener_gets_what_it_missed(shelf: Shelf) -> None:
    """However many, page by page, and then what comes; another listener's poll serves it."""
    topic: Feed[str] = Feed(shelf.source)
    mark = shelf.commit()
    missed = [shelf.commit() for _ in range(10)]
    shelf.pass_by(60)
    missed += [shelf.commit() for _ in range(10)]
    shelf.pass_by(1)
    stream = topic.listen(ResumePoint.after(mark), resumed=True)
    assert await next_of(stream, 20) == missed
    more = shelf.commit()
    shelf.pass_by(1)
    assert await next_of(stream, 1) == [more]
    await stream.aclose()


async def test_a_slow_listener_continues_from_the_table(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has dropped what it has not read yet: it misses nothing all the same."""
    monkeypatch.setattr(arrivals, "MOST_LOGGED", 4)
    topic: Feed[str] = Feed(shelf.source)
    slow, quick = (
        topic.listen(ResumePoint(shelf.id()), resumed=False),
        topic.listen(ResumePoint(shelf.id()), resumed=False),
    )
    first = [asyncio.create_task(next_of(stream, 1)) for stream in (slow, quick)]
    await looked(shelf)
    ids = [shelf.commit()]
    shelf.pass_by(1)
    await asyncio.gather(*first)
    for _ in range(20):
        ids.append(shelf.commit())
        shelf.pass_by(1)
        assert await next_of(quick, 1) == ids[-1:]
    assert await next_of(slow, 20) == ids[1:]
    await slow.aclose()
    await quick.aclose()


async def test_a_read_that_goes_back_in_time_repeats_nothing(shelf: Shelf) -> None:
    """A comment that is seen, hidden by an older state, and seen again is told once."""
    topic: Feed[str] = Feed(shelf.source)
    stream = topic.listen(ResumePoint(shelf.id()), resumed=False)
    waiting = asyncio.create_task(next_of(stream, 1))
    await looked(shelf)
    first = shelf.commit()
    shelf.pass_by(1)
    assert await waiting == [first]
    for shown in (0, None, 0, None):
        shelf.shown = shown
        await looked(shelf, 4)
    last = shelf.commit()
    shelf.pass_by(1)
    assert await next_of(stream, 1) == [last]
    await stream.aclose()


async def test_a_listener_that_returns_misses_and_repeats_nothing(shelf: Shelf) -> None:
    """The poll has seen what it missed already, or sees what it was told elsewhere only later."""
    polled: Feed[str] = Feed(shelf.source)
    other = polled.listen(ResumePoint(shelf.id()), resumed=False)
    waiting = asyncio.create_task(next_of(other, 2))
    await looked(shelf)
    first, told = shelf.id(), shelf.id()
    shelf.pass_by(1)
    await looked(shelf)
    for late in (told, first):  # both are committed late; a listener who returns now heard of them from another process
        shelf.commit(late)
    stream = polled.listen(ResumePoint.after(told), resumed=True)
    waiting_for_more = asyncio.create_task(next_of(stream, 1))
    await looked(shelf, 6)
    assert sorted(await waiting) == [first, told]
    more = shelf.commit()
    shelf.pass_by(1)
    assert await waiting_for_more == [more]
    await stream.aclose()
    await other.aclose()


async def test_a_listener_is_told_what_was_committed_late_while_it_was_away(shelf: Shelf) -> None:
    """Its text names what it was told after the last settled position, so it is told the rest, and nothing again."""
    topic: Feed[str] = Feed(shelf.source)
    stream = topic.listen(ResumePoint(shelf.id()), resumed=False)
    waiting = asyncio.create_task(anext(stream))
    await looked(shelf)
    late, told = shelf.id(), shelf.commit()
    shelf.pass_by(5)
    text = (await asyncio.wait_for(waiting, 120)).resume_after
    await stream.aclose()
    shelf.commit(late)
    shelf.pass_by(30)
    more = shelf.commit()
    shelf.pass_by(1)
    again = Feed[str](shelf.source).listen(ResumePoint.parse(text), resumed=True)
    arrivals = [await asyncio.wait_for(anext(again), 120) for _ in range(2)]
    assert [arrival.record for arrival in arrivals] == [late, more]
    assert told not in {late, more}
    await again.aclose()


async def test_at_16_records_a_second_a_text_takes_nothing_for_told_that_is_still_being_written(shelf: Shelf) -> None:
    """For a minute, with requests of 10 seconds, whenever the listener leaves. docs/decisions/comments.md says 16."""
    topic: Feed[str] = Feed(replace(shelf.source, longest_write=DEFAULT_LONGEST_WRITE))
    stream = topic.listen(ResumePoint(shelf.id()), resumed=False)
    waiting = asyncio.create_task(anext(stream))
    await looked(shelf)
    late, arrival = deque[tuple[datetime, str]](), None
    for second in range(60):
        late.append((shelf.now, shelf.id()))
        ids = [shelf.commit() for _ in range(16)]
        shelf.pass_by(1)
        while arrival is None or arrival.record != ids[-1]:
            arrival = await asyncio.wait_for(waiting, 120)
            waiting = asyncio.create_task(anext(stream))
        while late[0][0] < shelf.now - CLOCK_SKEW - DEFAULT_LONGEST_WRITE:
            late.popleft()
        point = ResumePoint.parse(arrival.resume_after)
        assert not [id_ for _, id_ in late if point.includes(id_)], second
    waiting.cancel()
    await asyncio.wait({waiting})
    await stream.aclose()


async def test_with_a_record_s_own_position_a_stream_resumes_in_order_of_time(shelf: Shelf) -> None:
    """What has an older position counts as told, unless it is committed after the return; what is newer does not."""
    late, later, told = shelf.id(), shelf.id(), shelf.commit()
    shelf.pass_by(1)
    newer = shelf.commit()
    shelf.pass_by(1)
    shelf.commit(late)
    stream = Feed[str](shelf.source).listen(ResumePoint.after(told), resumed=True)
    assert await next_of(stream, 1) == [newer]
    shelf.commit(later)
    shelf.pass_by(10)
    assert await next_of(stream, 1) == [later]
    await stream.aclose()
    again = Feed[str](shelf.source).listen(ResumePoint.after(late), resumed=True)
    assert await next_of(again, 3) == [later, told, newer]
    await again.aclose()


async def test_a_returning_listener_waits_for_what_is_not_settled(shelf: Shelf) -> None:
    """What is younger than half a second comes in its turn, after older positions that are being written."""
    start, first, second = shelf.id(), shelf.id(), shelf.commit()
    stream = Feed[str](shelf.source).listen(ResumePoint(start), resumed=True)
    waiting = asyncio.create_task(next_of(stream, 2))
    await looked(shelf)
    shelf.commit(first)
    shelf.pass_by(1)
    assert await waiting == [first, second]
    await stream.aclose()


def test_a_text_is_bounded_and_says_what_was_told(shelf: Shelf) -> None:
    """Among more than it can name, the oldest count as settled."""
    start = shelf.id()
    point, positions = ResumePoint(start), [shelf.id() for _ in range(3 * MOST_NAMED)]
    for position in positions[1::2]:
        point.add(position, start)
    again, between = ResumePoint.parse(point.text), positions[::2]
    assert len(point.text) <= 1_400
    assert all(again.includes(position) for position in positions[1::2])
    assert [again.includes(position) for position in between[-MOST_NAMED:]] == [False] * MOST_NAMED
    assert all(again.includes(position) for position in between[:-MOST_NAMED])
    assert ResumePoint.parse(again.text) == again


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ("?", "non-base64|Only base64|not in"),
        ("é", "ASCII"),
        ("AAA", "incomplete"),
        ("AA" * 684, "too many"),
    ],
    ids=["a foreign character", "a foreign letter", "half a name", "too many names"],
)
def test_a_text_that_was_changed_is_refused(shelf: Shelf, names: str, reason: str) -> None:
    """Names have four bytes each, in base64url, and are not too many."""
    with pytest.raises(ValueError, match=reason):
        ResumePoint.parse(f"{shelf.id()}.{names}")
    with pytest.raises(ValueError, match="position"):
        ResumePoint.parse(f"nonsense.{names}")


async def test_a_write_may_take_as_long_as_a_request(shelf: Shelf) -> None:
    """A comment that is committed just before its request would time out, and seen five seconds later, arrives."""
    topic: Feed[str] = Feed(shelf.source)
    stream = topic.listen(ResumePoint(shelf.id()), resumed=False)
    waiting = asyncio.create_task(next_of(stream, 1))
    await looked(shelf)
    late = shelf.id()
    for _ in range(13):
        shelf.pass_by(5)
        await looked(shelf)
    shelf.commit(late)
    for _ in range(2):
        shelf.pass_by(5)
        await looked(shelf)
    assert await waiting == [late]
    await stream.aclose()


@pytest.mark.parametrize("seed", range(6))
async def test_whoever_comes_and_goes_is_told_everything_once(shelf: Shelf, seed: int) -> None:
    """Two processes, listened to in turn: nothing lost, nothing twice."""
    chance = Random(seed)
    feeds = [Feed[str](shelf.source) for _ in range(2)]
    start = shelf.id()
    steady, told, position = feeds[0].listen(ResumePoint(start), resumed=False), list[str](), f"{start}."
    everything = asyncio.create_task(next_of(steady, 40))
    await looked(shelf)
    for _ in range(40):
        shelf.commit()
        for _ in range(chance.randrange(3)):
            shelf.pass_by(chance.uniform(0, 1))
            await looked(shelf, 1)
        if chance.random() < 0.3:
            stream = chance.choice(feeds).listen(ResumePoint.parse(position), resumed=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.03):
                    async for arrival in stream:
                        told.append(arrival.record)
                        position = arrival.resume_after
            await stream.aclose()
    for _ in range(8):
        shelf.pass_by(5)
        await looked(shelf, 2)
    last = feeds[1].listen(ResumePoint.parse(position), resumed=True)
    told += await next_of(last, 40 - len(told)) if len(told) < 40 else []
    assert told == shelf.committed
    assert sorted(await everything) == shelf.committed
    await steady.aclose()
    await last.aclose()


async def test_a_clock_that_is_corrected_repeats_nothing_and_misses_nothing(shelf: Shelf) -> None:
    """By an hour, for a listener from before, who may return, for a new one, and for who came when it was ahead."""
    topic: Feed[str] = Feed(shelf.source)
    shelf.pass_by(3600)
    stream = topic.listen(ResumePoint(shelf.id()), resumed=False)
    told = []
    for _ in range(3):
        waiting = asyncio.create_task(anext(stream))
        await looked(shelf)
        written = shelf.commit()
        shelf.pass_by(60)  # none of the usual looks goes back so far
        arrival = await asyncio.wait_for(waiting, 120)
        told.append(arrival.record)
        assert arrival.record == written
    waiting = asyncio.create_task(anext(stream))
    await looked(shelf)
    unseen = shelf.commit()
    shelf.pass_by(-3600)
    assert (await asyncio.wait_for(waiting, 120)).record == unseen
    waiting = asyncio.create_task(anext(stream))
    resumed = topic.listen(ResumePoint.parse(arrival.resume_after), resumed=True)
    new = topic.listen(ResumePoint(shelf.id()), resumed=False)
    others = [asyncio.create_task(anext(one)) for one in (resumed, new)]
    await looked(shelf)
    before = shelf.looks
    written = shelf.commit()
    shelf.pass_by(1)
    first = await asyncio.wait_for(waiting, 120)
    assert [(await asyncio.wait_for(one, 120)).record for one in others] == [written, written]
    assert first.record == written
    again = topic.listen(ResumePoint.parse(first.resume_after), resumed=True)
    waiting = asyncio.create_task(anext(again))
    await looked(shelf)
    last = shelf.commit()
    shelf.pass_by(1)
    assert (await asyncio.wait_for(waiting, 120)).record == last
    assert await next_of(stream, 1) == [last]
    assert shelf.looks - before < 30, "each look reads what is new, not the whole hour"
    for one in (stream, resumed, new, again):
        await one.aclose()


async def test_nothing_is_missed_while_the_engine_is_unreachable(shelf: Shelf) -> None:
    """Gone for longer than a look goes back: what was committed meanwhile arrives."""
    topic: Feed[str] = Feed(shelf.source)
    stream = topic.listen(ResumePoint(shelf.id()), resumed=False)
    waiting = asyncio.create_task(next_of(stream, 2))
    await looked(shelf)
    shelf.gone = True
    ids = []
    for _ in range(2):
        ids.append(shelf.commit())
        shelf.pass_by(40)
        await looked(shelf)
    shelf.gone = False
    assert await waiting == ids
    await stream.aclose()


async def test_the_last_listener_ends_the_poll(shelf: Shelf) -> None:
    """The poll ends with its last listener; closing ends those that are left."""
    live = Live()

    def listening() -> AsyncGenerator[Arrival[Any], None]:
        return live.arrivals("shelf", shelf.source, ResumePoint(shelf.id()), "192.0.2.1", resumed=False)

    streams = [listening(), listening()]
    waiting = [asyncio.create_task(anext(stream)) for stream in streams]
    await looked(shelf)
    shelf.commit()
    shelf.pass_by(1)
    await asyncio.gather(*waiting)
    assert len(live._feeds.by_name) == 1
    for stream in streams:
        await stream.aclose()
    assert not live._feeds.by_name
    looks = shelf.looks
    await asyncio.sleep(0.05)
    assert shelf.looks == looks
    left = listening()
    waiting = [asyncio.create_task(anext(left))]
    await looked(shelf)
    await live.close()
    with pytest.raises(StopAsyncIteration):
        await waiting[0]
