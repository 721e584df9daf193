"""Records remembered for some seconds: read in batches, never twice at a time, own writes seen at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from datastore.dynamo import DeadlineExceeded, EngineUnavailable, deadline
from resolvers.loading.loader import Loader, read_each
from resolvers.loading.registry import Loaders


class Store:
    """Records and a batch read of them that counts, and can be held up or fail."""

    def __init__(self, *keys: str) -> None:
        self.records = {key: key.upper() for key in keys}
        self.broken = set[str]()
        self.reads: list[list[str]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.gone = False

    async def read(self, keys: Sequence[str]) -> Mapping[str, str | Exception]:
        self.reads.append(list(keys))
        await self.go.wait()
        if self.gone:
            raise EngineUnavailable
        return await read_each(keys, self._read_one)

    async def _read_one(self, key: str) -> str | None:
        if key in self.broken:
            raise ValueError(key)
        return self.records.get(key)


async def soon() -> None:
    await asyncio.sleep(0.01)


async def test_keys_asked_for_at_once_are_one_read() -> None:
    """For every caller, one key or many at a time."""
    store = Store("a", "b")
    loader = Loader(store.read, ttl=60)
    loads = [loader.load(key) for key in ["a", "b", "nobody"] * 7]
    *found, many = await asyncio.gather(*loads, loader.load_many(["nobody", "b", "b", "c"]))
    assert found == ["A", "B", None] * 7
    assert many == [None, "B", "B", None]
    assert store.reads == [["a", "b", "nobody", "c"]]


async def test_a_record_that_is_prefetched_is_read_once() -> None:
    """A second request for it joins the read; what is cached is not read again."""
    store = Store("a")
    loader = Loader(store.read, ttl=60)
    loader.prefetch("a")
    await soon()
    assert await loader.load("a") == "A"
    loader.prefetch("a")
    await soon()
    assert store.reads == [["a"]]


async def test_many_keys_are_answered_in_their_order() -> None:
    """From memory, from a read under way and from one that is begun for them."""
    store = Store("a", "b", "c")
    loader = Loader(store.read, ttl=60)
    await loader.load("b")
    store.go.clear()
    other = asyncio.create_task(loader.load("c"))
    await soon()
    many = asyncio.create_task(loader.load_many(["c", "b", "a"]))
    await soon()
    store.go.set()
    assert await many == ["C", "B", "A"]
    assert await other == "C"
    assert store.reads == [["b"], ["c"], ["a"]]
    assert await loader.load_many(["a", "b", "c"]) == ["A", "B", "C"]
    counts = loader.counts
    assert (counts.hits, counts.misses, counts.waits) == (4, 3, 1)


async def test_a_key_being_read_is_waited_for() -> None:
    """A second request does not cause a second read, nor does the cancelling of the first one end it."""
    store = Store("a")
    store.go.clear()
    loader = Loader(store.read, ttl=60)
    first = asyncio.create_task(loader.load("a"))
    await soon()
    second = asyncio.create_task(loader.load("a"))
    await soon()
    first.cancel()
    store.go.set()
    assert await second == "A"
    assert store.reads == [["a"]]


async def test_each_request_waits_until_its_own_deadline() -> None:
    """Also the one that began the read, which goes on for those who have more time, and is remembered."""
    store = Store("a")
    store.go.clear()
    loader = Loader(store.read, ttl=60)
    patient = asyncio.create_task(loader.load("a"))
    with deadline(0.01), pytest.raises(DeadlineExceeded):
        await loader.load("a")
    store.go.set()
    assert await patient == "A"
    assert store.reads == [["a"]]


async def test_a_read_ends_when_nobody_waits_for_it() -> None:
    """The next request reads anew, also one that comes while the read is being ended."""
    store = Store("a")
    store.go.clear()
    for kind in ({"ttl": 60}, {"fresh": True}):
        loader: Loader[str, str] = Loader(store.read, **kind)
        store.reads.clear()
        store.go.clear()
        first = asyncio.create_task(loader.load("a"))
        await soon()
        first.cancel()
        await asyncio.sleep(0)
        second = asyncio.create_task(loader.load("a"))
        await soon()
        store.go.set()
        assert await second == "A"
        assert store.reads == [["a"], ["a"]]
        assert not loader._last_batch


async def test_a_batch_has_as_many_keys_as_one_call_reads() -> None:
    """Further keys are read beside it; with `each`, every key by itself, so that nobody waits for those of others."""
    keys = [str(number) for number in range(250)]
    store = Store(*keys)
    loader = Loader(store.read, ttl=60)
    assert await loader.load_many(keys) == keys
    assert [len(read) for read in store.reads] == [100, 100, 50]
    held, free = asyncio.Event(), Loader.each(store._read_one, ttl=60)

    async def read_one(key: str) -> str:
        if key == "slow":
            await held.wait()
        return key

    single: Loader[str, str] = Loader.each(read_one, fresh=True)
    slow = asyncio.create_task(single.load_many(["slow", "other"]))
    assert await single.load("quick") == "quick"
    held.set()
    assert await slow == ["slow", "other"]
    assert await free.load_many(["1", "none"]) == ["1", None]


async def test_an_own_write_is_seen_at_once_even_during_a_read() -> None:
    """The read that was under way does not bring the old value back."""
    store = Store("a")
    store.go.clear()
    loader = Loader(store.read, ttl=60)
    asked = asyncio.create_task(loader.load("a"))
    await soon()
    loader.put("a", "written")
    store.go.set()
    assert await asked == "written"
    assert await loader.load("a") == "written"


async def test_a_read_from_before_a_write_is_not_remembered_even_when_the_write_is_forgotten_first() -> None:
    """The write was remembered for less time than the read took."""
    store = Store("a")
    store.go.clear()
    loader = Loader(store.read, ttl=0.02)
    asked = asyncio.create_task(loader.load("a"))
    await soon()
    loader.put("a", "written")
    await asyncio.sleep(0.03)
    store.go.set()
    await asked
    assert loader.cached("a") is None


async def test_a_failed_read_is_tried_again_by_the_next() -> None:
    """No error is remembered."""
    store = Store("a")
    store.gone = True
    loader = Loader(store.read, ttl=60)
    outcomes = await asyncio.gather(loader.load("a"), loader.load("b"), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [EngineUnavailable] * 2
    store.gone = False
    assert await loader.load("a") == "A"


async def test_the_failure_of_one_key_fails_those_who_wait_for_it_alone() -> None:
    """The other keys of the batch are answered and remembered."""
    store = Store("a", "b")
    store.broken.add("b")
    loader = Loader(store.read, ttl=60)
    outcomes = await asyncio.gather(
        loader.load("a"), loader.load("b"), loader.load_many(["a", "b"]), return_exceptions=True
    )
    assert outcomes[0] == "A"
    assert [type(outcome) for outcome in outcomes[1:]] == [ValueError] * 2
    assert (loader.cached("a"), loader.cached("b")) == ("A", None)
    store.broken.clear()
    assert await loader.load("b") == "B"
    assert store.reads == [["a", "b"], ["b"]]


async def test_that_a_record_was_not_there_is_not_remembered() -> None:
    """It may have been written by another process since, or missed by a stale read."""
    store = Store()
    loader = Loader(store.read, ttl=600)
    assert await loader.load("new") is None
    store.records["new"] = "NEW"
    assert await loader.load("new") == "NEW"
    assert await loader.load_many(["newer"]) == [None]
    store.records["newer"] = "NEWER"
    assert await loader.load_many(["newer"]) == ["NEWER"]


async def test_old_records_are_dropped() -> None:
    """By number and by age."""
    store = Store("a", "b", "c")
    loader = Loader(store.read, ttl=60, size=2)
    for key in ("a", "b", "c"):
        await loader.load(key)
    assert (loader.cached("a"), loader.cached("c")) == (None, "C")
    brief = Loader(store.read, ttl=-1)
    await brief.load("a")
    assert brief.cached("a") is None


async def test_a_read_from_before_a_change_is_not_remembered() -> None:
    """After `forget` a load reads anew; the earlier read answers those who waited for it."""
    store = Store("a")
    loader = Loader(store.read, ttl=60)
    store.go.clear()
    early = asyncio.create_task(loader.load("a"))
    await soon()
    loader.forget("a")
    late = asyncio.create_task(loader.load("a"))
    await soon()
    store.go.set()
    assert list(await asyncio.gather(early, late)) == ["A", "A"]
    assert store.reads == [["a"], ["a"]]
    loader.forget("a")
    asked = asyncio.create_task(loader.load("a"))
    await asyncio.sleep(0)
    loader.forget("a")  # asked for, not begun: it will be read after the change
    assert await asked == "A"
    assert store.reads == [["a"], ["a"], ["a"]]


async def test_loads_are_counted_by_loader_until_the_process_ends() -> None:
    """And then what is under way ends, with all who wait for it."""
    loaders, store = Loaders(), Store("a")
    letters = loaders.add("letters", Loader(store.read, ttl=60))
    loaders.add("digits", Loader(store.read, fresh=True))
    await letters.load("a")
    await letters.load("a")
    store.go.clear()
    waiting = [asyncio.create_task(letters.load(key)) for key in ("b", "b")]
    await soon()
    loads = loaders.loads()
    assert [loads["letters", result] for result in ("hit", "miss", "wait")] == [1, 2, 1]
    assert loads["digits", "miss"] == 0
    await loaders.close()
    assert [type(outcome) for outcome in await asyncio.gather(*waiting, return_exceptions=True)] == [
        asyncio.CancelledError
    ] * 2
