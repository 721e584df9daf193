"""The numbers of comments by product, language and rating, and the products with the most five-star comments.

| wanted                        | read or write                                          | requests        |
|-------------------------------|--------------------------------------------------------|-----------------|
| a product's counts            | PRODUCT#<p> STATISTICS#…, consistent, all shards       | 1               |
| a comment's counts            | ADD to STATISTICS#<lang>#<shard>, in its transaction   | 0 more          |
| products by five stars        | gsi1 LEADERS, ascending                                | 1 a page        |
| products not settled yet      | gsi1 UNSETTLED                                         | 1               |
| settle one product            | LEADER, STATISTICS#…, LEADER, each unsettled shard     | 3 and more      |

Counts are spread over shards by the comment's id, so that posts on one product seldom write to the same item. A change
of five-star comments marks its shard as unsettled in the same write. So the index lists every product whose LEADER item
may be out of date, also after a crash. The mark is removed once LEADER includes that shard's number.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datastore.comments.planner import RATINGS, CommentCounts
from datastore.dynamo import ConditionFailed, Page, PageRequest
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key

if TYPE_CHECKING:
    from datastore.comments.records import Comment
    from datastore.dynamo import Table, Window
    from datastore.dynamo.writes import Update

SHARDS = 4
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Tally:
    """One shard of the counts of one product and language. One shard's numbers may be negative, the sums are not."""

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
    """A product's number of five-star comments, at most two seconds old. The index lists products that have any."""

    product: str
    five_stars: int = 0
    revision: int = 1


LEADER = Entity(
    Leader,
    Key("PRODUCT#{product}", "LEADER"),
    gsi1=Key("LEADERS", "{five_stars:best_first}#{product}", when="five_stars"),
)


# ── counting ──


def change_updates(old: Comment | None, new: Comment | None) -> list[Update]:
    """The updates of the counts when one comment changes. Held comments are not counted."""
    changes = [(-1, old), (1, new)]
    return count_updates((sign, comment) for sign, comment in changes if comment is not None)


def count_updates(changes: Iterable[tuple[int, Comment]], *, shard: int | None = None) -> list[Update]:
    """One update for each shard that comments leave (-1) or join (+1); all of them in `shard` if it is given."""
    deltas: dict[tuple[str, str, int], Counter[str]] = {}
    for sign, comment in changes:
        if comment.held is None:
            own_shard = comment_shard(comment.ulid) if shard is None else shard
            delta = deltas.setdefault((comment.product, comment.language, own_shard), Counter())
            delta[f"r{comment.rating}"] += sign
            delta["bytes"] += sign * comment.size
    return [
        _addition(Tally(*tally_key, unsettled=True), numbers)
        for tally_key, delta in deltas.items()
        if (numbers := {name: number for name, number in delta.items() if number})
    ]


def comment_shard(ulid: str) -> int:
    return zlib.crc32(ulid.encode()) % SHARDS


def _addition(tally: Tally, numbers: dict[str, int]) -> Update:
    if "r5" in numbers:
        return TALLY.shift(tally, "unsettled", add=numbers)
    return TALLY.change(TALLY.item_key(tally), add=numbers)


async def read_counts(table: Table, product: str, *, consistent: bool = True) -> CommentCounts:
    """A product's counts, summed over their shards."""
    return sum_counts([tally async for tally in table.iterate(TALLY.on(product=product), consistent=consistent)])


def sum_counts(tallies: Sequence[Tally]) -> CommentCounts:
    counts: dict[str, tuple[int, ...]] = {}
    sizes: dict[str, int] = {}
    for tally in tallies:
        row = counts.get(tally.language, (0,) * len(RATINGS))
        counts[tally.language] = tuple(
            number + own for number, own in zip(row, (tally.r1, tally.r2, tally.r3, tally.r4, tally.r5), strict=True)
        )
        sizes[tally.language] = sizes.get(tally.language, 0) + tally.bytes
    return CommentCounts(counts, sizes)


# ── leaders ──


def leaders_request(window: Window) -> PageRequest:
    return window.open("topProducts")


async def read_leaders_page(table: Table, request: PageRequest) -> Page[Leader]:
    """Products by five-star comments, best first; equal ones in the order of their ids."""
    return await table.page([LEADER.on("gsi1")], request)


async def read_unsettled_products(table: Table) -> list[str]:
    """Products whose LEADER item may be out of date."""
    return list(dict.fromkeys([tally.product async for tally in table.iterate(TALLY.on("gsi1"))]))


async def settle_product(table: Table, product: str) -> None:
    """Bring LEADER up to date with the counts. Several processes may do so at once and end with the right sum.

    LEADER is read before the counts. It is written only if its revision has not changed since, and always if a shard is
    marked. So a process with older counts cannot write after one that read newer counts and removed the mark.
    """
    for _ in range(_ATTEMPTS):
        leader = await table.get(LEADER.at(product=product), consistent=True)
        tallies = [tally async for tally in table.iterate(TALLY.on(product=product), consistent=True)]
        marked = [tally for tally in tallies if tally.unsettled]
        five_stars = max(0, sum(tally.r5 for tally in tallies))
        if not marked and five_stars == (leader.five_stars if leader else 0):
            return
        try:
            await _write_leader(table, product, leader, five_stars)
            for tally in marked:
                unmarked = replace(tally, unsettled=None)
                await table.write(TALLY.shift(unmarked, "unsettled", when=present() & where(r5=tally.r5)))
        except ConditionFailed:
            continue
        return


async def _write_leader(table: Table, product: str, current: Leader | None, five_stars: int) -> None:
    if current is None:
        await table.write(LEADER.put(Leader(product, five_stars), when=absent()))
    else:
        raised = Leader(product, five_stars, current.revision + 1)
        await table.write(LEADER.put(raised, when=present() & where(revision=current.revision)))
