"""Records kept for some seconds: loaded together, never twice at a time, own writes seen at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from datastore.dynamo import EngineUnavailable
from resolvers.loading.loader import Kept


class Shelf:
    """A batch read that counts, and can be held up or fail."""

    def __init__(self) -> None:
        self.reads: list[list[str]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.broken = False

    async def read(self, keys: Sequence[str]) -> Mapping[str, str]:
        self.reads.append(list(keys))
        await self.go.wait()
        if self.broken:
            raise EngineUnavailable
        return {key: key.upper() for key in keys if key != "nobody"}


async def test_what_is_asked_at_once_is_read_once() -> None:
    """Twenty askers, three keys, one read."""
    shelf = Shelf()
    kept = Kept(shelf.read, seconds=60)
    found = await asyncio.gather(*(kept.load(key) for key in ["a", "b", "nobody"] * 7))
    assert found[:3] == ["A", "B", None]
    assert shelf.reads == [["a", "b", "nobody"]]


async def test_a_key_being_read_is_waited_for() -> None:
    """A second asker does not cause a second read, nor does the first one's leaving end it."""
    shelf = Shelf()
    shelf.go.clear()
    kept = Kept(shelf.read, seconds=60)
    first = asyncio.create_task(kept.load("a"))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(kept.load("a"))
    await asyncio.sleep(0.01)
    first.cancel()
    shelf.go.set()
    assert await second == "A"
    assert shelf.reads == [["a"]]


async def test_an_own_write_is_seen_at_once_even_during_a_read() -> None:
    """The read that was under way does not bring the old value back."""
    shelf = Shelf()
    shelf.go.clear()
    kept = Kept(shelf.read, seconds=60)
    asked = asyncio.create_task(kept.load("a"))
    await asyncio.sleep(0.01)
    kept.put("a", "written")
    shelf.go.set()
    assert await asked == "written"
    assert await kept.load("a") == "written"


async def test_a_failed_read_is_tried_again_by_the_next() -> None:
    """Nobody is answered from a failure that is over."""
    shelf = Shelf()
    shelf.broken = True
    kept = Kept(shelf.read, seconds=60)
    with pytest.raises(EngineUnavailable):
        await kept.load("a")
    shelf.broken = False
    assert await kept.load("a") == "A"


async def test_old_entries_leave() -> None:
    """By number and by age."""
    shelf = Shelf()
    kept = Kept(shelf.read, seconds=60, most=2)
    for key in ("a", "b", "c"):
        await kept.load(key)
    assert (kept.at_hand("a"), kept.at_hand("c")) == (None, ("C",))
    brief = Kept(shelf.read, seconds=-1)
    await brief.load("a")
    assert brief.at_hand("a") is None


async def test_a_read_from_before_a_change_is_not_kept() -> None:
    """Whoever asks after `forget` has a read begun after it; the earlier one answers those who waited for it."""
    shelf = Shelf()
    kept = Kept(shelf.read, seconds=60)
    shelf.go.clear()
    early = asyncio.create_task(kept.load("a"))
    await asyncio.sleep(0.01)
    kept.forget("a")
    late = asyncio.create_task(kept.load("a"))
    await asyncio.sleep(0.01)
    shelf.go.set()
    assert await asyncio.gather(early, late) == ["A", "A"]
    assert shelf.reads == [["a"], ["a"]]
    kept.forget("a")
    asked = asyncio.create_task(kept.load("a"))
    await asyncio.sleep(0)
    kept.forget("a")  # asked for, not begun: it will be read after the change
    assert await asked == "A"
    assert shelf.reads == [["a"], ["a"], ["a"]]


async def test_a_read_that_fails_in_any_way_leaves_nobody_waiting() -> None:
    """Whatever is raised reaches all who wait, and the next load reads again."""
    attempts = []

    async def read(keys: Sequence[str]) -> Mapping[str, str]:
        attempts.append(keys)
        if len(attempts) == 1:
            raise ValueError("not one of ours")
        return {key: key.upper() for key in keys}

    kept = Kept(read, seconds=1)
    failed = await asyncio.gather(kept.load("a"), kept.load("b"), return_exceptions=True)
    assert [type(one) for one in failed] == [ValueError, ValueError]
    assert await kept.load("a") == "A"
