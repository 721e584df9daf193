"""Which partitions to read for a filtered page of comments, and how many comments from each.

A comment is stored in four places, one without a rating in two, and the key of each fixes a part of a filter:

| path                | partitions read           | filtered by an expression   |
|---------------------|---------------------------|-----------------------------|
| product             | 1, the table itself       | languages, ratings          |
| language            | 1 a language              | ratings                     |
| rating              | 1 a rating                | languages                   |
| language and rating | 1 a pair, at most 125     | nothing                     |

Invariant: for every language and rating that its filter matches, a plan reads exactly one partition with such comments,
whatever the counts say. Counts decide what a page costs and never what is on it. So a partition that was empty by the
last count is still read, with a limit that costs one unit.

Verified comments have a second entry, with partitions of their own for every path (`verified`). Of the others there is
no index: each plan for them is filtered, so a page may be short where nearly all are verified.

So for all but these there is an exact plan, and what it costs does not depend on the size of the product. A filtering
plan that falls short is continued by the exact one; if that has more than 25 partitions, only when reading on with a
filter would cost more.

The cost of a plan is the sum over its queries of the read units of eventually consistent reads, in steps of 4 KB, and a
twentieth of a unit for each query. bench/results/comments.md has the means over all 31 sets of ratings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from math import ceil, sqrt
from typing import Any

from datastore.dynamo.paging import LARGEST_READ
from datastore.dynamo.writes import ALWAYS, Condition, absent, among

RATINGS = (1, 2, 3, 4, 5)
MAX_VALUES = 25
"""The languages that a filter may name: at most 125 pairs."""

_FEW_PARTITIONS = 25
_STEP = 4096
_FILLED = 0.8
"""The share of a 4 KB step to fill with comments of the mean size, so that longer ones still fit."""
_EACH_QUERY = 0.05
_DEVIATIONS = 1.5
_LIKELY_SIZE = 1500
_LIKELY_COUNTS = (0, 1000, 500, 1000, 2000, 5500)
_OTHERS = "other languages"


class Path(StrEnum):
    """The index that a plan reads."""

    PRODUCT = "product"
    LANGUAGE = "language"
    RATING = "rating"
    BOTH = "language and rating"


@dataclass(frozen=True, slots=True)
class Filter:
    """The comments of a product that a reader wants. None matches all: for ratings also comments without one."""

    product: str
    languages: tuple[str, ...] | None = None
    ratings: tuple[int, ...] | None = None
    verified: bool | None = None

    @classmethod
    def of(cls, product: str, languages: Any = None, ratings: Any = None, *, verified: bool | None = None) -> Filter:
        """The canonical filter: sorted and without repetitions. All five ratings leave out comments without one."""
        sorted_languages, sorted_ratings = tuple(sorted(set(languages or ()))), tuple(sorted(set(ratings or ())))
        return cls(product, sorted_languages or None, sorted_ratings or None, verified)

    def matches(self, language: str, rating: int | None, *, verified: bool) -> bool:
        return (
            (self.languages is None or language in self.languages)
            and (self.ratings is None or rating in self.ratings)
            and self.verified in (None, verified)
        )

    @property
    def scope(self) -> str:
        """The scope of this filter's cursors. No part of it can contain a line break."""
        languages = "*" if self.languages is None else ",".join(self.languages)
        ratings = "*" if self.ratings is None else ",".join(map(str, self.ratings))
        scope = f"comments\n{self.product}\n{languages}\n{ratings}"
        return scope if self.verified is None else f"{scope}\n{self.verified}"


@dataclass(frozen=True, slots=True)
class CommentCounts:
    """The number of a product's comments by language and rating, their bytes by language, and the replies to them.

    The first number of a language is of comments without a rating, the second of those with one star.
    """

    counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    replies: Mapping[str, int] = field(default_factory=dict, compare=False)
    verified: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Those of the numbers that are of verified comments."""

    def __hash__(self) -> int:
        return hash(tuple(frozenset(some.items()) for some in (self.counts, self.sizes, self.verified)))

    def of_verified(self) -> CommentCounts:
        """The same numbers of verified comments alone."""
        mean = self.mean_size
        return CommentCounts(self.verified, {tag: round(sum(row) * mean) for tag, row in self.verified.items()})

    def matching(self, wanted: Filter) -> int:
        """How many comments a filter matches."""
        some = (wanted.languages, wanted.ratings)
        if wanted.verified is None:
            return self.count(*some)
        verified = self.of_verified().count(*some)
        return verified if wanted.verified else self.count(*some) - verified

    def count(self, languages: tuple[str, ...] | None = None, ratings: tuple[int, ...] | None = None) -> int:
        rows = self.counts.values() if languages is None else (self.counts.get(tag, ()) for tag in languages)
        if ratings is None:
            return sum(map(sum, rows))
        return sum(row[rating] for row in rows if row for rating in ratings)

    @property
    def mean_size(self) -> float:
        total = sum(max(0, self.count((language,))) for language in self.counts)
        size = sum(max(0, size) for size in self.sizes.values())
        return max(100.0, size / total) if total and size else _LIKELY_SIZE


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """One partition, and how many comments are read from it at first. Its key does not fix what is None."""

    language: str | None
    rating: int | None
    limit: int

    @property
    def index(self) -> str | None:
        if self.language is None:
            return None if self.rating is None else "gsi2"
        return "gsi1" if self.rating is None else "gsi3"


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to read a page. An `exact` plan reads only comments that the filter matches."""

    path: Path
    reads: tuple[PartitionRead, ...]
    residual: Condition
    exact: bool
    cost: float

    def widened(self, factor: int) -> Plan:
        """The same partitions with larger limits, at a cost that grows with them whatever the partitions hold."""
        reads = tuple(replace(read, limit=min(LARGEST_READ, read.limit * factor)) for read in self.reads)
        return replace(self, reads=reads, cost=self.cost * factor)


NO_COUNTS = CommentCounts()


@lru_cache(maxsize=1024)  # planning takes 16-190 µs, 2 ms with 100 pairs; popular filters and counts come again
def plans(wanted: Filter, counts: CommentCounts, number: int) -> tuple[Plan, ...]:
    """Every way to read `number` comments, the cheapest first. Verified ones have partitions of their own."""
    counts = counts.of_verified() if wanted.verified else counts
    counts = counts if counts.count() > 0 else _likely_counts(wanted.languages)
    languages, ratings = wanted.languages or (), wanted.ratings or ()
    cells: Mapping[Path, list[tuple[str | None, int | None]]] = {
        Path.PRODUCT: [(None, None)],
        Path.LANGUAGE: [(tag, None) for tag in languages],
        Path.RATING: [(None, rating) for rating in ratings],
        Path.BOTH: [(tag, rating) for tag in languages for rating in ratings],
    }
    possible = [_plan(path, some, wanted, counts, number) for path, some in cells.items() if some]
    return tuple(sorted(possible, key=lambda plan: (plan.cost, not plan.exact, len(plan.reads))))


def continuation(wanted: Filter, counts: CommentCounts, missing: int, rounds: int) -> Plan:
    """The plan after a filtering plan fell short: the exact one, or a cheaper one with twice as much in each round."""
    possible = plans(wanted, counts, missing)
    exact = next((plan for plan in possible if plan.exact), None)
    widened = possible[0].widened(2**rounds)
    if exact is None:
        return widened
    return widened if len(exact.reads) > _FEW_PARTITIONS and widened.cost < exact.cost else exact


def _likely_counts(languages: tuple[str, ...] | None) -> CommentCounts:
    """What to assume as long as nothing is known: many comments, rated as in most shops, in these languages equally."""
    return CommentCounts(dict.fromkeys((*(languages or ()), _OTHERS), _LIKELY_COUNTS))


def _plan(
    path: Path, cells: list[tuple[str | None, int | None]], wanted: Filter, counts: CommentCounts, number: int
) -> Plan:
    residual, exact = ALWAYS, True
    if wanted.languages is not None and path in (Path.PRODUCT, Path.RATING):
        residual, exact = residual & among("language", *wanted.languages), False
    if wanted.ratings is not None and path in (Path.PRODUCT, Path.LANGUAGE):
        residual, exact = residual & among("rating", *wanted.ratings), False

    if wanted.verified is False:
        residual, exact = residual & absent("verified_at") & absent("removed"), False

    # Half a comment more than was counted: a partition whose count is 0 must still get a share of the reads.
    matching = [_matching_count(counts, wanted, *cell) + 0.5 for cell in cells]
    sizes = [max(count, _partition_count(counts, *cell) + 0.5) for cell, count in zip(cells, matching, strict=True)]
    mean, all_matching = counts.mean_size, sum(matching)
    reads, cost = [], 0.0
    for cell, count, size in zip(cells, matching, sizes, strict=True):
        limit = _limit(number, count / all_matching, count / size, mean)
        reads.append(PartitionRead(*cell, limit))
        cost += max(1, ceil(min(limit, size) * mean / _STEP)) / 2 + _EACH_QUERY
    return Plan(path, tuple(reads), residual, exact, cost)


def _matching_count(counts: CommentCounts, wanted: Filter, language: str | None, rating: int | None) -> int:
    languages = wanted.languages if language is None else (language,)
    ratings = wanted.ratings if rating is None else (rating,)
    verified = None if wanted.verified else wanted.verified  # those of verified comments alone have been taken already
    return max(0, counts.matching(Filter(wanted.product, languages, ratings, verified)))


def _partition_count(counts: CommentCounts, language: str | None, rating: int | None) -> int:
    return max(0, counts.count(None if language is None else (language,), None if rating is None else (rating,)))


def _limit(number: int, share: float, selectivity: float, mean: float) -> int:
    """How many comments to read from a partition.

    The partition holds `share` of the wanted comments, and `selectivity` is the matching part of its own. The limit is
    the expected number plus 1.5 standard deviations, then as many as fit into the last 4 KB: over all sets of ratings
    a second round is needed for one page in twenty.
    """
    own = min(number, ceil(number * share + _DEVIATIONS * sqrt(number * share * (1 - share))))
    surplus = _DEVIATIONS * sqrt(own * (1 - selectivity))
    read = ceil((own + surplus) / selectivity) if selectivity < 1 else own
    most = number if selectivity >= 1 else LARGEST_READ
    filled = int(ceil(read * mean / _STEP) * _STEP * _FILLED / mean)
    return max(1, min(LARGEST_READ, max(read, min(most, filled))))
