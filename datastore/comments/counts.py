"""The numbers of comments by product, language and rating, and the ranking of products by their five-star comments.

| wanted                    | read or write                                                   | requests          |
|---------------------------|-----------------------------------------------------------------|-------------------|
| a product's counts        | STATISTICS#<p> COUNTS#…                                         | 1                 |
| a comment's counts        | ADD to STATISTICS#<p> COUNTS#<lang>#<shard>, in its transaction | 0 more            |
| products by five stars    | gsi1 LEADERS#<shard>, 8 shards merged                           | 8 at once a page  |
| products not settled yet  | gsi1 UNSETTLED#<shard>                                          | 8 at once         |
| settle one product        | LEADER, counts, LEADER, and at once each unsettled shard        | 4 in a row        |
| drop shards of nothing    | Delete STATISTICS#<p> COUNTS#<lang>#<shard>, if it counts none  | 1 each            |

Counts have partition keys of their own: a key takes 1,000 write units a second, and at 300 comments a second on one
product the comments take 600 and their counts 600. They are spread over shards by the comment's id, so that posts on
one product seldom write to the same item: with 16 shards, one in seven of 300 a second meets another transaction.

A change of five-star comments marks its shard as unsettled in the same write. So the index lists every product whose
LEADER item may be out of date, also after a crash. The mark is removed once LEADER includes that shard's number. An
entry that the index shows late is settled late; one that it shows after it was settled costs two reads. The marks have
eight index keys: 2,000 five-star comments a second, each on another product, write and remove 2,000 marks a second,
500 a key. When these products are settled, 2,000 entries of the ranking move, 500 write units for each of its keys.

Every page with statistics reads all shards of its product. So shards that count nothing any more are removed: else one
comment that its author puts into one language after the other would leave thousands of them.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import add

from datastore.comments.planner import NO_COUNTS, CommentCounts
from datastore.comments.records import Comment
from datastore.dynamo import Page, PageRequest, Table, gather_or_cancel, optimistic
from datastore.dynamo.entity import Entity, Key, shard_of
from datastore.dynamo.paging import shard_limit
from datastore.dynamo.writes import Update, absent, present, where

# ── counts ──

SHARDS = 16
MARK_SHARDS = 8
_AT_ONCE = 1000
_MARK_BITS = 40
_NONE = (0,) * 6
_NUMBERS = (*(f"r{rating}" for rating in range(6)), *(f"v{rating}" for rating in range(6)), "bytes", "replies")


@dataclass(frozen=True, slots=True)
class ProductTally:
    """One shard of the counts of one product and language. One shard's numbers may be negative, the sums are not."""

    product: str
    language: str
    shard: int
    r0: int = 0
    """Comments without a rating."""
    r1: int = 0
    r2: int = 0
    r3: int = 0
    r4: int = 0
    r5: int = 0
    bytes: int = 0
    replies: int = 0
    v0: int = 0
    """Verified comments without a rating, which r0 counts too."""
    v1: int = 0
    v2: int = 0
    v3: int = 0
    v4: int = 0
    v5: int = 0
    unsettled: bool | None = None
    marks: int | None = None
    """A random number is added whenever it is marked as unsettled. So what changed and changed back does not look
    unchanged, nor does a shard that was removed and made again."""

    @property
    def mark_shard(self) -> int:
        return self.shard % MARK_SHARDS

    @property
    def is_empty(self) -> bool:
        return not any(getattr(self, name) for name in _NUMBERS)


PRODUCT_TALLY = Entity(
    ProductTally,
    Key("STATISTICS#{product}", "COUNTS#{language}#{shard:02d}"),
    gsi1=Key("UNSETTLED#{mark_shard}", "{product}#{language}#{shard:02d}", when="unsettled"),
)


def change_updates(old: Comment | None, new: Comment | None) -> Iterator[Update]:
    """The updates of the counts when one comment changes. Held comments are not counted."""
    changes = [(-1, old), (1, new)]
    return count_updates((sign, comment) for sign, comment in changes if comment is not None)


def count_updates(changes: Iterable[tuple[int, Comment]], *, shard: int | None = None) -> Iterator[Update]:
    """One update for each shard that comments leave (-1) or join (+1); all of them in `shard` if it is given."""
    deltas: dict[tuple[str, str, int], Counter[str]] = {}
    for sign, comment in changes:
        if comment.held is None:
            own_shard = shard_of(comment.ulid, SHARDS) if shard is None else shard
            delta = deltas.setdefault((comment.product, comment.language, own_shard), Counter())
            if comment.root is not None:
                delta["replies"] += sign
            else:
                delta[f"r{comment.rating or 0}"] += sign
                delta["bytes"] += sign * comment.size
                if comment.verified_at is not None:
                    delta[f"v{comment.rating or 0}"] += sign
    for tally_key, delta in deltas.items():
        tally = ProductTally(*tally_key, unsettled=True)
        numbers = {name: number for name, number in delta.items() if number}
        if "r5" in numbers:
            step = 1 + secrets.randbits(_MARK_BITS)
            yield PRODUCT_TALLY.update_with_indexes(tally, "unsettled", add={**numbers, "marks": step})
        elif numbers:
            yield PRODUCT_TALLY.update(PRODUCT_TALLY.item_key(tally), add=numbers)


async def read_counts(table: Table, product: str) -> CommentCounts:
    """A product's counts, summed over their shards."""
    counts: dict[str, tuple[int, ...]] = {}
    verified: dict[str, tuple[int, ...]] = {}
    sizes: Counter[str] = Counter()
    replies: Counter[str] = Counter()
    for tally in await read_tallies(table, product):
        numbers = (tally.r0, tally.r1, tally.r2, tally.r3, tally.r4, tally.r5)
        of_verified = (tally.v0, tally.v1, tally.v2, tally.v3, tally.v4, tally.v5)
        counts[tally.language] = tuple(map(add, counts.get(tally.language, _NONE), numbers))
        verified[tally.language] = tuple(map(add, verified.get(tally.language, _NONE), of_verified))
        sizes[tally.language] += tally.bytes
        replies[tally.language] += tally.replies
    return CommentCounts(counts, sizes, replies, verified) if counts else NO_COUNTS


async def read_tallies(table: Table, product: str) -> list[ProductTally]:
    """All shards of a product's counts, by a consistent read."""
    shards = table.iterate(PRODUCT_TALLY.on(product=product), consistent=True, at_once=_AT_ONCE)
    return [tally async for tally in shards]


# ── leaders ──

LEADER_SHARDS = 8
_MARKS_AT_ONCE = 100
_MOST_DROPPED, _DROPPED_AT_ONCE = 500, 16
"""What is left is dropped when the product is settled next, as after each further change."""


@dataclass(frozen=True, slots=True)
class Leader:
    """A product's number of five-star comments, at most two seconds old. The index lists products that have any."""

    product: str
    five_stars: int = 0
    revision: int = 1

    @property
    def shard(self) -> int:
        return shard_of(self.product, LEADER_SHARDS)


LEADER = Entity(
    Leader,
    Key("STATISTICS#{product}", "LEADER"),
    gsi1=Key("LEADERS#{shard}", "{five_stars:best_first}#{product}", when="five_stars"),
)


async def read_leaders_page(table: Table, request: PageRequest) -> Page[Leader]:
    """Products by five-star comments, best first; equal ones in the order of their ids."""
    partitions = [LEADER.on("gsi1", shard=shard) for shard in range(LEADER_SHARDS)]
    return await table.page(partitions, request, limit=shard_limit(request.wanted, LEADER_SHARDS))


async def read_unsettled_products(table: Table) -> list[str]:
    """Products whose LEADER item may be out of date. Of very many only some: once they are settled, the next ones."""
    marks = await asyncio.gather(
        *(table.query(PRODUCT_TALLY.on("gsi1", mark_shard=shard), limit=_MARKS_AT_ONCE) for shard in range(MARK_SHARDS))
    )
    return list(dict.fromkeys(tally.product for part in marks for tally in part.records))


async def settle_product(table: Table, product: str) -> None:
    """Bring LEADER up to date with the counts, and drop the shards that count nothing.

    Several processes may do so at once and end with the right sum.

    LEADER is read before the counts. It is written only if its revision has not changed since, and always if a shard is
    marked. So a process with older counts cannot write after one that read newer counts and removed the mark. A shard
    that changed meanwhile keeps its mark.
    """
    key = LEADER.at(product=product)

    async def settle(leader: Leader | None) -> None:
        tallies = await read_tallies(table, product)
        marked = [tally for tally in tallies if tally.unsettled]
        five_stars = max(0, sum(tally.r5 for tally in tallies))
        if marked or five_stars != (leader.five_stars if leader else 0):
            raised = Leader(product, five_stars, leader.revision + 1 if leader else 1)
            await table.write(LEADER.put(raised, when=where(revision=leader.revision) if leader else absent()))
            await gather_or_cancel(_unmark(table, tally) for tally in marked)
        empty = [tally for tally in tallies if tally.is_empty]
        await gather_or_cancel((_drop(table, tally) for tally in empty[:_MOST_DROPPED]), _DROPPED_AT_ONCE)

    await optimistic(lambda: table.get(key, consistent=True), settle, idempotent=True)


async def _unmark(table: Table, tally: ProductTally) -> None:
    """Remove a mark unless the shard was marked again: then its writer, or a sweep, settles the product again."""
    unmarked = replace(tally, unsettled=None)
    await table.try_write(
        PRODUCT_TALLY.update_with_indexes(unmarked, "unsettled", when=present() & where(marks=tally.marks))
    )


async def _drop(table: Table, tally: ProductTally) -> None:
    """Remove a shard that counted nothing, unless it does by now or is marked."""
    still = where(unsettled=None, marks=tally.marks)
    for name in _NUMBERS:
        still &= absent(name) | where(**{name: 0})
    await table.try_write(PRODUCT_TALLY.delete(PRODUCT_TALLY.item_key(tally), when=present() & still))
