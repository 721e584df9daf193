"""Records as they are now, for any number of requests: one read of a key at a time, none older than its question."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from datastore.dynamo import EngineUnavailable, ReadCache, metered
from datastore.dynamo.budgets import current
from tests.waiting import turns


class Counter:
    """A batch read of numbers that rise with every read, each of which is held up until told."""

    def __init__(self) -> None:
        self.reads: list[list[str]] = []
        self.under_way = 0
        self.go = asyncio.Event()
        self.go.set()
        self.broken = False

    async def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        self.reads.append(list(keys))
        number = len(self.reads)
        current().spent.read_units += 1.0
        await self.go.wait()
        await asyncio.sleep(0)
        if self.broken:
            raise EngineUnavailable
        return {key: number for key in keys if key != "nobody"}


async def test_keys_asked_for_at_once_are_one_read() -> None:
    """For every caller; a missing record is None."""
    counter = Counter()
    reads = ReadCache().batches("numbers", counter.read)
    found = await asyncio.gather(*(reads.load(key) for key in ["a", "nobody", "a"]))
    assert found == [1, None, 1]
    assert counter.reads == [["a", "nobody"]]


async def test_requests_during_a_read_share_the_next_one() -> None:
    """A hundred of them wait for one more read, which has what was written before they came."""
    counter = Counter()
    counter.go.clear()
    reads = ReadCache().batches("numbers", counter.read)
    first = asyncio.create_task(reads.load("a"))
    await turns()
    crowd = [asyncio.create_task(reads.load("a")) for _ in range(100)]
    other = asyncio.create_task(reads.load("b"))
    await turns()
    assert counter.reads == [["a"], ["b"]]
    counter.go.set()
    assert await first == 1
    assert await other == 2
    assert set(await asyncio.gather(*crowd)) == {3}
    assert counter.reads == [["a"], ["b"], ["a"]]


async def test_nothing_is_remembered() -> None:
    """A request after the answer reads anew."""
    reads = ReadCache().batches("numbers", Counter().read)
    assert [await reads.load("a"), await reads.load("a")] == [1, 2]


async def test_a_failed_read_fails_those_who_waited_for_it_alone() -> None:
    """Those that came during it are answered by the next."""
    counter = Counter()
    counter.go.clear()
    reads = ReadCache().batches("numbers", counter.read)
    first = asyncio.create_task(reads.load("a"))
    await turns()
    second = asyncio.create_task(reads.load("a"))
    await turns()
    counter.broken = True
    counter.go.set()
    with pytest.raises(EngineUnavailable):
        await first
    counter.broken = False
    assert await second == 2


async def test_a_request_that_is_cancelled_harms_no_other() -> None:
    """The read goes on for the others, and the next one begins after it."""
    counter = Counter()
    counter.go.clear()
    reads = ReadCache().batches("numbers", counter.read)
    first, second = (asyncio.create_task(reads.load("a")) for _ in range(2))
    await turns()
    third = asyncio.create_task(reads.load("a"))
    await turns()
    first.cancel()
    counter.go.set()
    assert (await second, await third) == (1, 2)


async def test_each_read_is_charged_to_the_first_request_that_waits_for_it() -> None:
    """So the figures of operations have every read once."""
    counter = Counter()
    counter.go.clear()
    reads = ReadCache().batches("numbers", counter.read)

    async def ask() -> float:
        with metered() as spent:
            await reads.load("a")
        return spent.read_units

    first = asyncio.create_task(ask())
    await turns()
    others = [asyncio.create_task(ask()) for _ in range(3)]
    await turns()
    counter.go.set()
    assert await first == 1.0
    assert sorted(await asyncio.gather(*others)) == [0.0, 0.0, 1.0]
