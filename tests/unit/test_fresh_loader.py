"""Records as they are now, for any number who ask: one read of a key at a time, none older than the asking."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from datastore.dynamo import EngineUnavailable, metered
from datastore.dynamo.capacity import record_read
from resolvers.loading.fresh import Together


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
        record_read({"ConsumedCapacity": {"CapacityUnits": 1.0}})
        await self.go.wait()
        await asyncio.sleep(0)
        if self.broken:
            raise EngineUnavailable
        return {key: number for key in keys if key != "nobody"}


async def test_what_is_asked_at_once_is_read_once() -> None:
    """Whoever asks; what is not there is None."""
    counter = Counter()
    together = Together(counter.read)
    found = await asyncio.gather(*(together.load(key) for key in ["a", "nobody", "a"]))
    assert found == [1, None, 1]
    assert counter.reads == [["a", "nobody"]]


async def test_who_asks_during_a_read_gets_one_that_began_later() -> None:
    """A hundred who come meanwhile wait for one more read, and it has what was written before they came."""
    counter = Counter()
    counter.go.clear()
    together = Together(counter.read)
    first = asyncio.create_task(together.load("a"))
    await asyncio.sleep(0.01)
    crowd = [asyncio.create_task(together.load("a")) for _ in range(100)]
    other = asyncio.create_task(together.load("b"))
    await asyncio.sleep(0.01)
    assert counter.reads == [["a"], ["b"]]
    counter.go.set()
    assert await first == 1
    assert await other == 2
    assert set(await asyncio.gather(*crowd)) == {3}
    assert counter.reads == [["a"], ["b"], ["a"]]


async def test_nothing_is_remembered() -> None:
    """Who asks after the answer reads anew."""
    together = Together(Counter().read)
    assert [await together.load("a"), await together.load("a")] == [1, 2]


async def test_a_failed_read_fails_for_those_who_waited_for_it_alone() -> None:
    """Who came during it reads again."""
    counter = Counter()
    counter.go.clear()
    together = Together(counter.read)
    first = asyncio.create_task(together.load("a"))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(together.load("a"))
    await asyncio.sleep(0.01)
    counter.broken = True
    counter.go.set()
    with pytest.raises(EngineUnavailable):
        await first
    counter.broken = False
    assert await second == 2


async def test_who_leaves_takes_nobody_along() -> None:
    """The read goes on for the others, and for the next."""
    counter = Counter()
    counter.go.clear()
    together = Together(counter.read)
    first, second = (asyncio.create_task(together.load("a")) for _ in range(2))
    await asyncio.sleep(0.01)
    third = asyncio.create_task(together.load("a"))
    await asyncio.sleep(0.01)
    first.cancel()
    counter.go.set()
    assert (await second, await third) == (1, 2)


async def test_each_read_is_paid_for_by_the_first_who_waited_for_it() -> None:
    """So that an operation's figures have every read once."""
    counter = Counter()
    counter.go.clear()
    together = Together(counter.read)

    async def ask() -> float:
        with metered() as spent:
            await together.load("a")
        return spent.read_units

    first = asyncio.create_task(ask())
    await asyncio.sleep(0.01)
    others = [asyncio.create_task(ask()) for _ in range(3)]
    await asyncio.sleep(0.01)
    counter.go.set()
    assert await first == 1.0
    assert sorted(await asyncio.gather(*others)) == [0.0, 0.0, 1.0]
