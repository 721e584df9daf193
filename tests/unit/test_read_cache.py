"""Records remembered for some seconds: read in batches, never twice at a time, own writes seen at once."""

import asyncio
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import pytest

from datastore.dynamo import (
    DeadlineExceeded,
    EngineUnavailable,
    ReadCache,
    Reads,
    TooCostly,
    deadline,
    read_each,
    request_budget,
)
from datastore.dynamo.budgets import current
from tests.waiting import turns


class Store:
    """Records and a batch read of them that counts, and can be held up or fail."""

    def __init__(self, *keys: str) -> None:
        self.records = {key: key.upper() for key in keys}
        self.broken = set[str]()
        self.reads: list[list[str]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.held = asyncio.Event()
        self.held.set()
        self.gone = False

    async def read(self, keys: Sequence[str]) -> Mapping[str, str | Exception]:
        self.reads.append(list(keys))
        await self.go.wait()
        if self.gone:
            raise EngineUnavailable
        return await read_each(keys, self._read_one)

    async def _read_one(self, key: str) -> str | None:
        await self.held.wait()
        if key in self.broken:
            raise ValueError(key)
        return self.records.get(key)


def kept(store: Store, **kind: Any) -> Reads[str, str]:
    """Reads whose answers are used for a minute."""
    return ReadCache().batches("letters", store.read, **{"age": 60.0, **kind})


async def test_keys_asked_for_at_once_are_one_read() -> None:
    """For every caller, one key or many at a time."""
    store = Store("a", "b")
    reads = kept(store)
    loads = [reads.load(key) for key in ["a", "b", "nobody"] * 7]
    *found, many = await asyncio.gather(*loads, reads.load_many(["nobody", "b", "b", "c"]))
    assert found == ["A", "B", None] * 7
    assert many == [None, "B", "B", None]
    assert store.reads == [["a", "b", "nobody", "c"]]


async def test_a_record_that_is_prefetched_is_read_once() -> None:
    """A second request for it joins the read; what is cached is not read again."""
    store = Store("a")
    reads = kept(store)
    reads.prefetch("a")
    await turns()
    assert await reads.load("a") == "A"
    reads.prefetch("a")
    await turns()
    assert store.reads == [["a"]]


async def test_many_keys_are_answered_in_their_order() -> None:
    """From memory, from a read under way and from one that is begun for them."""
    store = Store("a", "b", "c")
    reads = kept(store)
    await reads.load("b")
    store.go.clear()
    other = asyncio.create_task(reads.load("c"))
    await turns()
    many = asyncio.create_task(reads.load_many(["c", "b", "a"]))
    await turns()
    store.go.set()
    assert await many == ["C", "B", "A"]
    assert await other == "C"
    assert store.reads == [["b"], ["c"], ["a"]]
    assert await reads.load_many(["a", "b", "c"]) == ["A", "B", "C"]
    assert reads.counts == {"hit": 4, "miss": 3, "wait": 1}


async def test_a_key_being_read_is_waited_for() -> None:
    """A second request does not cause a second read, nor does the cancelling of the first one end it."""
    store = Store("a")
    store.go.clear()
    reads = kept(store)
    first = asyncio.create_task(reads.load("a"))
    await turns()
    second = asyncio.create_task(reads.load("a"))
    await turns()
    first.cancel()
    store.go.set()
    assert await second == "A"
    assert store.reads == [["a"]]


async def test_each_request_waits_until_its_own_deadline() -> None:
    """Also the one that began the read, which goes on for those who have more time, and is remembered."""
    store = Store("a")
    store.go.clear()
    reads = kept(store)
    patient = asyncio.create_task(reads.load("a"))
    with deadline(0.01), pytest.raises(DeadlineExceeded):
        await reads.load("a")
    store.go.set()
    assert await patient == "A"
    assert store.reads == [["a"]]


async def test_a_read_within_a_read_has_the_time_of_all_who_wait() -> None:
    """Not only that of the request that began both."""
    store, cache = Store("a"), ReadCache()
    inner = cache.each("inner", store._read_one)
    outer = cache.each("outer", inner.load)
    store.held = asyncio.Event()
    with deadline(0.05):
        first = asyncio.create_task(outer.load("a"))
    await turns()
    with deadline(60.0):
        second = asyncio.create_task(outer.load("a"))
    with pytest.raises(DeadlineExceeded):
        await first
    store.held.set()
    assert await second == "A"


async def test_a_read_from_before_a_change_is_joined_by_nobody_after_it() -> None:
    """Not even if the read that was to follow it is given up."""
    store = Store("a")
    reads = kept(store)
    store.go.clear()
    before = asyncio.create_task(reads.load("a"))
    await turns()
    following = asyncio.create_task(reads.load("a", 0))
    await turns()
    reads.forget("a")
    following.cancel()
    await turns()
    after = asyncio.create_task(reads.load("a"))
    await turns()
    store.go.set()
    assert [await before, await after] == ["A", "A"]
    assert store.reads == [["a"], ["a"]]


async def test_several_reads_end_when_their_request_leaves() -> None:
    store = Store("a", "b", "c")
    reads = ReadCache().each("letters", store._read_one)
    store.held = asyncio.Event()
    waiting = asyncio.create_task(reads.load_many("abc"))
    await turns()
    waiting.cancel()
    await turns()
    assert not reads._latest


async def test_a_read_ends_when_nobody_waits_for_it() -> None:
    """The next request reads anew, also one that comes while the read is being ended."""
    store = Store("a")
    store.go.clear()
    for age in (60.0, 0.0):
        reads = kept(store, age=age)
        store.reads.clear()
        store.go.clear()
        first = asyncio.create_task(reads.load("a"))
        await turns()
        first.cancel()
        await asyncio.sleep(0)
        second = asyncio.create_task(reads.load("a"))
        await turns()
        store.go.set()
        assert await second == "A"
        assert store.reads == [["a"], ["a"]]
        assert not reads._latest


async def test_a_batch_has_as_many_keys_as_one_call_reads() -> None:
    """Further keys are read beside it; with `each`, every key by itself, so that nobody waits for those of others."""
    keys = [str(number) for number in range(250)]
    store = Store(*keys)
    reads = kept(store)
    assert await reads.load_many(keys) == keys
    assert [len(read) for read in store.reads] == [100, 100, 50]
    held, free = asyncio.Event(), ReadCache().each("letters", store._read_one, age=60.0)

    async def read_one(key: str) -> str:
        if key == "slow":
            await held.wait()
        return key

    single = ReadCache().each("letters", read_one)
    slow = asyncio.create_task(single.load_many(["slow", "other"]))
    assert await single.load("quick") == "quick"
    held.set()
    assert await slow == ["slow", "other"]
    assert await free.load_many(["1", "none"]) == ["1", None]


async def test_an_own_write_is_seen_at_once_even_during_a_read() -> None:
    """The read that was under way does not bring the old value back."""
    store = Store("a")
    store.go.clear()
    reads = kept(store)
    asked = asyncio.create_task(reads.load("a"))
    await turns()
    reads.put("a", "written")
    store.go.set()
    assert await asked == "written"
    assert await reads.load("a") == "written"


async def test_a_read_from_before_a_write_is_not_remembered_even_when_the_write_is_forgotten_first() -> None:
    """The write was remembered for less time than the read took."""
    store = Store("a")
    store.go.clear()
    reads = kept(store, age=0.02)
    asked = asyncio.create_task(reads.load("a"))
    await turns()
    reads.put("a", "written")
    await asyncio.sleep(0.03)
    store.go.set()
    await asked
    assert reads.known("a") is None


async def test_a_failed_read_is_tried_again_by_the_next() -> None:
    """No error is remembered."""
    store = Store("a")
    store.gone = True
    reads = kept(store)
    outcomes = await asyncio.gather(reads.load("a"), reads.load("b"), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [EngineUnavailable] * 2
    store.gone = False
    assert await reads.load("a") == "A"


async def test_the_failure_of_one_key_fails_those_who_wait_for_it_alone() -> None:
    """The other keys of the batch are answered and remembered."""
    store = Store("a", "b")
    store.broken.add("b")
    reads = kept(store)
    outcomes = await asyncio.gather(
        reads.load("a"), reads.load("b"), reads.load_many(["a", "b"]), return_exceptions=True
    )
    assert outcomes[0] == "A"
    assert [type(outcome) for outcome in outcomes[1:]] == [ValueError] * 2
    assert (reads.known("a"), reads.known("b")) == ("A", None)
    store.broken.clear()
    assert await reads.load("b") == "B"
    assert store.reads == [["a", "b"], ["b"]]


async def test_that_a_record_was_not_there_is_not_remembered() -> None:
    """It may have been written by another process since, or missed by a stale read."""
    store = Store()
    reads = kept(store)
    assert await reads.load("new") is None
    store.records["new"] = "NEW"
    assert await reads.load("new") == "NEW"
    assert await reads.load_many(["newer"]) == [None]
    store.records["newer"] = "NEWER"
    assert await reads.load_many(["newer"]) == ["NEWER"]


async def test_old_records_are_dropped() -> None:
    """By number and by age."""
    store, now = Store("a", "b", "c"), 0.0
    cache = ReadCache(lambda: now)
    reads = cache.batches("letters", store.read, age=60.0, most=2)
    for key in ("a", "b", "c"):
        await reads.load(key)
    assert (reads.known("a"), reads.known("c")) == (None, "C")
    now = 59.9
    assert reads.known("c") == "C"
    now = 60.0
    assert reads.known("c") is None
    await reads.load("a")
    assert list(reads._entries) == ["a"]


async def test_a_read_from_before_a_change_is_not_remembered() -> None:
    """After `forget` a load reads anew; the earlier read answers those who waited for it."""
    store = Store("a")
    reads = kept(store)
    store.go.clear()
    early = asyncio.create_task(reads.load("a"))
    await turns()
    reads.forget("a")
    late = asyncio.create_task(reads.load("a"))
    await turns()
    store.go.set()
    assert list(await asyncio.gather(early, late)) == ["A", "A"]
    assert store.reads == [["a"], ["a"]]
    reads.forget("a")
    asked = asyncio.create_task(reads.load("a"))
    await asyncio.sleep(0)
    reads.forget("a")  # asked for, not begun: it will be read after the change
    assert await asked == "A"
    assert store.reads == [["a"], ["a"], ["a"]]


async def test_each_caller_says_how_old_an_answer_may_be() -> None:
    """Of the same entry: what one finds too old, another one is given; and all are given what the first one reads."""
    store, now = Store("a"), 0.0
    cache = ReadCache(lambda: now)
    reads = cache.batches("letters", store.read, age=0.25, kept=5.0)
    await reads.load("a")
    now = 3.0
    store.records["a"] = "NEW"
    assert (reads.known("a"), reads.known("a", 5.0)) == (None, "A")
    assert await reads.load("a", 5.0) == "A"
    assert await reads.load("a") == "NEW"
    assert reads.known("a", 5.0) == "NEW"
    assert await reads.load("a", 0) == "NEW"
    assert store.reads == [["a"], ["a"], ["a"]]
    del store.records["a"]
    assert await reads.load("a", 0) is None
    assert reads.known("a", 5.0) is None, "what is no longer there is known no longer"


async def test_an_outdated_answer_is_for_those_who_accept_an_older_one() -> None:
    """For as long as they would have; and a read that is under way is not kept."""
    store, now = Store("a"), 0.0
    reads = ReadCache(lambda: now).batches("letters", store.read, age=0.25, kept=5.0)
    await reads.load("a")
    store.go.clear()
    early = asyncio.create_task(reads.load("a", 0))
    await turns()
    reads.outdate("a")
    store.records["a"] = "NEW"
    store.go.set()
    assert await early == "NEW"
    assert await reads.load("a", 5.0) == "A"
    now = 4.5
    assert reads.known("a", 5.0) == "A"
    assert await reads.load("a") == "NEW"
    assert store.reads == [["a"], ["a"], ["a"]]


async def test_a_record_that_is_amended_is_no_younger_for_that() -> None:
    """What others have changed in it shows when it would have; one that is not known is not kept."""
    store, now = Store("a"), 0.0
    reads = ReadCache(lambda: now).batches("letters", store.read, age=1.0)
    await reads.load("a")
    now = 0.9
    reads.amend("a", "USED")
    reads.amend("b", "USED")
    assert (reads.known("a"), reads.known("b")) == ("USED", None)
    now = 1.1
    assert await reads.load("a") == "A"


async def test_an_answer_is_as_old_as_the_beginning_of_its_read() -> None:
    """Who comes too late for the read under way shares the next one, which begins after it."""
    store, now = Store("a"), 0.0
    reads = ReadCache(lambda: now).batches("letters", store.read, age=1.0)
    store.go.clear()
    first = asyncio.create_task(reads.load("a"))
    await turns()
    now = 0.9
    second = asyncio.create_task(reads.load("a"))
    await turns()
    now = 2.0
    late = [asyncio.create_task(reads.load("a")) for _ in range(3)]
    await turns()
    assert store.reads == [["a"]]
    store.go.set()
    assert await asyncio.gather(first, second, *late) == ["A"] * 5
    assert store.reads == [["a"], ["a"]]
    assert reads.known("a") == "A"
    now = 3.0
    assert reads.known("a") is None


async def test_a_thousand_requests_for_a_key_are_one_read() -> None:
    """All but the last of them may leave, one by one; when that one leaves too, the read ends."""
    store, ended = Store("a"), asyncio.Event()

    async def read(key: str) -> str:
        try:
            await store.read([key])
        finally:
            ended.set()
        return key

    store.go.clear()
    reads = ReadCache().each("letters", read, age=60.0)
    crowd = [asyncio.create_task(reads.load("a")) for _ in range(1000)]
    await turns()
    for request in crowd[:-1]:
        request.cancel()
    await turns()
    assert not ended.is_set()
    crowd[-1].cancel()
    await turns()
    assert ended.is_set()
    assert store.reads == [["a"]]
    store.go.set()
    assert await asyncio.gather(*(reads.load("a") for _ in range(1000))) == ["a"] * 1000
    assert store.reads == [["a"], ["a"]]


async def test_who_can_pay_is_answered_also_when_who_asked_first_cannot() -> None:
    """In one batch, which those may join who can pay no more."""
    store = Store("a", "b")
    reads = kept(store)

    async def ask(calls: int, key: str) -> str | None:
        with request_budget(10.0, calls=calls, read_units=1000.0, client=str(calls)):
            return await reads.load(key)

    outcomes = await asyncio.gather(ask(0, "a"), ask(9, "a"), ask(0, "b"), ask(9, "b"), return_exceptions=True)
    assert [outcome if isinstance(outcome, str) else type(outcome) for outcome in outcomes] == [
        TooCostly, "A", "B", "B",
    ]  # fmt: skip
    assert store.reads == [["a", "b"]]


async def test_what_is_built_goes_on_when_nobody_waits() -> None:
    """It has no deadline, and is built again only after twenty times as long as building it took."""
    now, built, go = 0.0, list[str](), asyncio.Event()

    async def build(key: str) -> int:
        built.append(key)
        assert current().ends == inf
        await go.wait()
        return len(built)

    reads = ReadCache(lambda: now).each("buildings", build, kept=inf, built=True)
    with deadline(0.01), pytest.raises(DeadlineExceeded):
        await reads.load("a")
    joined = asyncio.create_task(reads.load("a"))
    await turns()
    now = 2.0
    go.set()
    assert await joined == 1
    now = 41.9
    assert await reads.load("a") == 1
    now = 42.0
    assert await reads.load("a") == 2
    assert built == ["a", "a"]


async def test_what_is_built_waits_for_its_turns_as_whoever_began_it() -> None:
    """Nobody pays for it; but a stranger who has much built must not stand before the service's own calls."""
    turns_of: list[object] = []

    async def build(key: str) -> str:
        turns_of.extend(caller.client for caller in current().callers.all)
        assert current().payer is None
        return key

    with request_budget(10.0, 5, 10.0, "stranger"):
        await ReadCache().each("buildings", build, built=True).load("a")
    assert turns_of == ["stranger"]


async def test_forgetting_all_keeps_nothing_of_what_is_being_read() -> None:
    """What is asked for and not begun yet is read once."""
    store = Store("a", "b")
    reads = kept(store)
    await reads.load("b")
    store.go.clear()
    early = asyncio.create_task(reads.load("a"))
    await turns()
    reads.forget_all()
    late = asyncio.create_task(reads.load_many(["a", "b"]))
    await asyncio.sleep(0)
    reads.forget_all()
    await turns()
    store.go.set()
    assert (await early, await late) == ("A", ["A", "B"])
    assert store.reads == [["b"], ["a"], ["a", "b"]]


async def test_loads_are_counted_by_kind_until_the_process_ends() -> None:
    """And then what is under way ends, with all who wait for it."""
    cache, store = ReadCache(), Store("a")
    letters = cache.batches("letters", store.read, age=60.0)
    cache.batches("digits", store.read)
    await letters.load("a")
    await letters.load("a")
    store.go.clear()
    waiting = [asyncio.create_task(letters.load(key)) for key in ("b", "b")]
    await turns()
    loads = cache.loads()
    assert [loads["letters", result] for result in ("hit", "miss", "wait")] == [1, 2, 1]
    assert loads["digits", "miss"] == 0
    await cache.close()
    assert [type(outcome) for outcome in await asyncio.gather(*waiting, return_exceptions=True)] == [
        asyncio.CancelledError
    ] * 2
