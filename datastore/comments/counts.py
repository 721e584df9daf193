"""The numbers of comments by product, language and rating.

| wanted                  | read or write                                                   | requests      |
|-------------------------|-----------------------------------------------------------------|---------------|
| a product's counts      | STATISTICS#<p> COUNTS#…                                         | 1             |
| a comment's counts      | ADD to STATISTICS#<p> COUNTS#<lang>#<shard>, in its transaction | 0 more        |

Counts have partition keys of their own: a key takes 1,000 write units a second, and at 300 comments a second on one
product the comments take 600 and their counts 600. They are spread over shards by the comment's id, so that posts on
one product seldom write to the same item: with 16 shards, one in seven of 300 a second meets another transaction.

A change of five-star comments marks its shard as unsettled in the same write: `leaders` finds the mark. The marks have
eight index keys: 2,000 five-star comments a second, each on another product, write and remove 2,000 marks a second,
500 a key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from operator import add

from datastore.comments.planner import RATINGS, CommentCounts
from datastore.comments.records import Comment
from datastore.dynamo import Table
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.dynamo.writes import Update
from datastore.values.shards import shard_of

SHARDS = 16
MARK_SHARDS = 8
_AT_ONCE = 1000


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
    marks: int | None = None
    """How often it was marked as unsettled: tells a number that has changed and changed back from one that has not."""

    @property
    def mark_shard(self) -> int:
        return self.shard % MARK_SHARDS


TALLY = Entity(
    Tally,
    Key("STATISTICS#{product}", "COUNTS#{language}#{shard:02d}"),
    gsi1=Key("UNSETTLED#{mark_shard}", "{product}#{language}#{shard:02d}", when="unsettled"),
)


def change_updates(old: Comment | None, new: Comment | None) -> list[Update]:
    """The updates of the counts when one comment changes. Held comments are not counted."""
    changes = [(-1, old), (1, new)]
    return count_updates((sign, comment) for sign, comment in changes if comment is not None)


def count_updates(changes: Iterable[tuple[int, Comment]], *, shard: int | None = None) -> list[Update]:
    """One update for each shard that comments leave (-1) or join (+1); all of them in `shard` if it is given."""
    deltas: dict[tuple[str, str, int], Counter[str]] = {}
    for sign, comment in changes:
        if comment.held is None:
            own_shard = shard_of(comment.ulid, SHARDS) if shard is None else shard
            delta = deltas.setdefault((comment.product, comment.language, own_shard), Counter())
            delta[f"r{comment.rating}"] += sign
            delta["bytes"] += sign * comment.size
    return [
        _addition(Tally(*tally_key, unsettled=True), numbers)
        for tally_key, delta in deltas.items()
        if (numbers := {name: number for name, number in delta.items() if number})
    ]


def _addition(tally: Tally, numbers: dict[str, int]) -> Update:
    if "r5" in numbers:
        return TALLY.update_with_indexes(tally, "unsettled", add={**numbers, "marks": 1})
    return TALLY.update(TALLY.item_key(tally), add=numbers)


async def read_counts(table: Table, product: str) -> CommentCounts:
    """A product's counts, summed over their shards."""
    counts: dict[str, tuple[int, ...]] = {}
    sizes: Counter[str] = Counter()
    for tally in await read_tallies(table, product):
        numbers = (tally.r1, tally.r2, tally.r3, tally.r4, tally.r5)
        counts[tally.language] = tuple(map(add, counts.get(tally.language, (0,) * len(RATINGS)), numbers))
        sizes[tally.language] += tally.bytes
    return CommentCounts(counts, sizes)


async def read_tallies(table: Table, product: str) -> list[Tally]:
    """All shards of a product's counts, by a consistent read."""
    shards = table.iterate(TALLY.on(product=product), consistent=True, at_once=_AT_ONCE)
    return [tally async for tally in shards]
