"""How many comments there are: per product, language and rating; and which products have the most of five stars.

| wanted                        | read or write                                          | requests        |
|-------------------------------|--------------------------------------------------------|-----------------|
| a product's counts            | PRODUCT#<p> STATISTICS#…, consistent, all shards       | 1               |
| a comment's counts            | ADD to STATISTICS#<lang>#<shard>, in its transaction   | 0 more          |
| products by five stars        | gsi1 LEADERS, ascending                                | 1 a page        |
| products not settled yet      | gsi1 UNSETTLED                                         | 1               |
| settle one product            | LEADER, STATISTICS#…, LEADER, each unsettled shard     | 3 and more      |

Counts are spread over shards by the comment's id, so that posts on one product seldom meet in one item. A change of
five stars marks its shard as unsettled in the same write: so whoever looks next, after a crash too, finds every
product whose LEADER item may be behind. The mark goes when LEADER holds the sum with that shard as it is.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from datastore.comments.planner import RATINGS, CommentCounts
from datastore.dynamo import ConditionFailed, Page, PageRequest
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key

if TYPE_CHECKING:
    from datastore.dynamo import Table, Window
    from datastore.dynamo.writes import Update

SHARDS = 4
_ATTEMPTS = 20


class Countable(Protocol):
    """What a comment must tell to be counted."""

    @property
    def product(self) -> str: ...
    @property
    def ulid(self) -> str: ...
    @property
    def language(self) -> str: ...
    @property
    def rating(self) -> int: ...
    @property
    def held(self) -> str | None: ...
    @property
    def size(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Tally:
    """One shard of the counts of one product and language. Its numbers may be negative; the sums are not."""

    product: str
    language: str
    shard: int
    r1: int = 0
    r2: int = 0
    r3: int = 0
    r4: int = 0
    r5: int = 0
    bytes: int = 0
    unsettled: bool | None = None


TALLY = Entity(
    Tally,
    Key("PRODUCT#{product}", "STATISTICS#{language}#{shard:02d}"),
    gsi1=Key("UNSETTLED", "{product}#{language}#{shard:02d}", when="unsettled"),
)


@dataclass(frozen=True, slots=True)
class Leader:
    """A product's number of five-star comments, at most two seconds behind; listed when there are any."""

    product: str
    five_stars: int = 0
    revision: int = 1


LEADER = Entity(
    Leader,
    Key("PRODUCT#{product}", "LEADER"),
    gsi1=Key("LEADERS", "{five_stars:best_first}#{product}", when="five_stars"),
)


# ── counting ──


def counted(old: Countable | None, new: Countable | None) -> list[Update]:
    """What one comment's change from a state to another does to the counts. Held comments are in none."""
    return recounted([(-1, one) for one in (old,) if one is not None] + [(1, one) for one in (new,) if one is not None])


def recounted(changes: Iterable[tuple[int, Countable]], *, shard: int | None = None) -> list[Update]:
    """One update for each shard that comments leave (-1) or join (+1); all in one shard if it is given."""
    deltas: dict[tuple[str, str, int], Counter[str]] = {}
    for sign, one in changes:
        if one.held is None:
            place = one.product, one.language, shard_of(one.ulid) if shard is None else shard
            delta = deltas.setdefault(place, Counter())
            delta[f"r{one.rating}"] += sign
            delta["bytes"] += sign * one.size
    return [
        _added(Tally(*place, unsettled=True), numbers)
        for place, delta in deltas.items()
        if (numbers := {name: number for name, number in delta.items() if number})
    ]


def shard_of(ulid: str) -> int:
    return zlib.crc32(ulid.encode()) % SHARDS


def _added(tally: Tally, numbers: dict[str, int]) -> Update:
    if "r5" in numbers:
        return TALLY.shift(tally, "unsettled", add=numbers)
    return TALLY.change(TALLY.place_of(tally), add=numbers)


async def census(table: Table, product: str, *, consistent: bool = True) -> CommentCounts:
    """A product's counts, summed over their shards."""
    return summed([tally async for tally in table.iterate(TALLY.on(product=product), consistent=consistent)])


def summed(tallies: Sequence[Tally]) -> CommentCounts:
    counts: dict[str, tuple[int, ...]] = {}
    sizes: dict[str, int] = {}
    for tally in tallies:
        row = counts.get(tally.language, (0,) * len(RATINGS))
        counts[tally.language] = tuple(
            number + more for number, more in zip(row, (tally.r1, tally.r2, tally.r3, tally.r4, tally.r5), strict=True)
        )
        sizes[tally.language] = sizes.get(tally.language, 0) + tally.bytes
    return CommentCounts(counts, sizes)


# ── leaders ──


def leaders_request(window: Window) -> PageRequest:
    return window.open("topProducts")


async def leaders(table: Table, request: PageRequest) -> Page[Leader]:
    """Products by five-star comments, best first; equal ones in the order of their ids."""
    return await table.page([LEADER.on("gsi1")], request)


async def unsettled(table: Table) -> list[str]:
    """Products whose LEADER item may be behind."""
    return list(dict.fromkeys([tally.product async for tally in table.iterate(TALLY.on("gsi1"))]))


async def settle(table: Table, product: str) -> None:
    """Brings LEADER up to the counts. Any number of these at once end with the right sum.

    LEADER is read before the counts and written only if nobody wrote it since, and always when a shard is marked: so
    one who read older counts cannot write after one who read newer ones and took the mark away.
    """
    for _ in range(_ATTEMPTS):
        leader = await table.get(LEADER.at(product=product), consistent=True)
        tallies = [tally async for tally in table.iterate(TALLY.on(product=product), consistent=True)]
        marked = [tally for tally in tallies if tally.unsettled]
        five_stars = max(0, sum(tally.r5 for tally in tallies))
        if not marked and five_stars == (leader.five_stars if leader else 0):
            return
        try:
            await _lead(table, product, leader, five_stars)
            for tally in marked:
                unmarked = replace(tally, unsettled=None)
                await table.write(TALLY.shift(unmarked, "unsettled", when=present() & where(r5=tally.r5)))
        except ConditionFailed:
            continue
        return


async def _lead(table: Table, product: str, known: Leader | None, five_stars: int) -> None:
    if known is None:
        await table.write(LEADER.put(Leader(product, five_stars), when=absent()))
    else:
        raised = Leader(product, five_stars, known.revision + 1)
        await table.write(LEADER.put(raised, when=present() & where(revision=known.revision)))
