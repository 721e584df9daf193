"""Which partitions to read for a filtered page of comments, and how many comments from each.

A comment lies in four places, and each fixes a part of a filter:

| path                | partitions read           | left to a filter expression |
|---------------------|---------------------------|-----------------------------|
| product             | 1, the table itself       | languages, ratings          |
| language            | 1 a language              | ratings                     |
| rating              | 1 a rating                | languages                   |
| language and rating | 1 a pair, at most 25      | nothing                     |

Law: every plan reads, for every language and rating that its filter takes, exactly one partition in which such a
comment stands, whatever the counts say. Counts decide what a page costs and never what is on it: so no partition is
left out for being empty by a count that may be a minute old; it is asked for as little as is read for one unit.

The cost of a plan is the sum over its queries of the read units of what they read, in steps of 4 KB and eventually
consistent, and a twentieth of a unit for each query. Measured over all 31 sets of ratings, see
bench/results/comments.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from math import ceil, sqrt
from typing import Any

from datastore.dynamo.conditions import ALWAYS, Condition, among

RATINGS = (1, 2, 3, 4, 5)
MOST_SOURCES = 25
LARGEST_READ = 1000

_STEP = 4096
_FILLED = 0.97
"""How far a step of 4 KB is filled with comments of the mean size, so that those a little longer still fit."""
_EACH_QUERY = 0.05
_LIKELY_SIZE = 600
_SMALL = 1024


class Path(StrEnum):
    """Where a plan reads."""

    PRODUCT = "product"
    LANGUAGE = "language"
    RATING = "rating"
    BOTH = "language and rating"


@dataclass(frozen=True, slots=True)
class Filter:
    """What a reader wants to see of a product's comments; None takes every language, or every rating."""

    product: str
    languages: tuple[str, ...] | None = None
    ratings: tuple[int, ...] | None = None

    @classmethod
    def of(cls, product: str, languages: Any = None, ratings: Any = None) -> Filter:
        """In its one spelling: sorted, nothing twice, and no ratings where all five are asked for."""
        chosen = tuple(sorted(set(ratings or ())))
        return cls(product, tuple(sorted(set(languages or ()))) or None, None if chosen in ((), RATINGS) else chosen)

    def takes(self, language: str, rating: int) -> bool:
        return (self.languages is None or language in self.languages) and (
            self.ratings is None or rating in self.ratings
        )

    @property
    def scope(self) -> str:
        """The text that cursors of this filter are bound to. No part of it can contain a line break."""
        languages = "*" if self.languages is None else ",".join(self.languages)
        ratings = "*" if self.ratings is None else ",".join(map(str, self.ratings))
        return f"comments\n{self.product}\n{languages}\n{ratings}"


@dataclass(frozen=True, slots=True)
class CommentCounts:
    """How many comments a product has, by language and rating (1 first), and the bytes they take."""

    counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((frozenset(self.counts.items()), frozenset(self.sizes.items())))

    def count(self, languages: tuple[str, ...] | None = None, ratings: tuple[int, ...] | None = None) -> int:
        rows = self.counts.values() if languages is None else (self.counts.get(tag, ()) for tag in languages)
        return sum(
            number for row in rows for rating, number in enumerate(row, 1) if ratings is None or rating in ratings
        )

    @property
    def mean_size(self) -> float:
        total = sum(max(0, self.count((language,))) for language in self.counts)
        size = sum(max(0, size) for size in self.sizes.values())
        return max(100.0, size / total) if total and size else _LIKELY_SIZE


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """One partition, and how many comments are read from it at first. None: not fixed by this partition."""

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
    """One way to read a page. An `exact` one reads nothing but what the filter takes."""

    path: Path
    readings: tuple[PartitionRead, ...]
    residual: Condition
    exact: bool
    cost: float

    def widened(self, factor: int) -> Plan:
        """The same partitions, with more read from each."""
        readings = tuple(
            PartitionRead(one.language, one.rating, min(LARGEST_READ, one.limit * factor)) for one in self.readings
        )
        return Plan(self.path, readings, self.residual, self.exact, self.cost)


NO_CENSUS = CommentCounts()


@lru_cache(maxsize=1024)  # planning takes 16-190 µs, and a hot filter is asked for while its counts stay the same
def plans(wanted: Filter, census: CommentCounts, number: int) -> tuple[Plan, ...]:
    """Every way to read `number` comments, the cheapest first."""
    languages = wanted.languages or (None,)
    ratings = wanted.ratings or (None,)
    possible = [_plan(Path.PRODUCT, [(None, None)], wanted, census, number)]
    if wanted.languages is not None:
        possible.append(_plan(Path.LANGUAGE, [(tag, None) for tag in languages], wanted, census, number))
    if wanted.ratings is not None:
        possible.append(_plan(Path.RATING, [(None, rating) for rating in ratings], wanted, census, number))
    if wanted.languages is not None and wanted.ratings is not None and len(languages) * len(ratings) <= MOST_SOURCES:
        cells = [(tag, rating) for tag in languages for rating in ratings]
        possible.append(_plan(Path.BOTH, cells, wanted, census, number))
    return tuple(sorted(possible, key=lambda plan: (plan.cost, not plan.exact, len(plan.readings))))


def _plan(
    path: Path, cells: list[tuple[str | None, int | None]], wanted: Filter, census: CommentCounts, number: int
) -> Plan:
    residual, exact = ALWAYS, True
    if wanted.languages is not None and path in (Path.PRODUCT, Path.RATING):
        residual, exact = residual & among("language", *wanted.languages), False
    if wanted.ratings is not None and path in (Path.PRODUCT, Path.LANGUAGE):
        residual, exact = residual & among("rating", *wanted.ratings), False

    # A half more than was counted everywhere: what was never counted must still have a share to be asked for.
    found = [_matching(census, wanted, *cell) + 0.5 for cell in cells]
    held = [max(number, _held(census, *cell)) + 0.5 for cell, number in zip(cells, found, strict=True)]
    mean = census.mean_size
    readings, cost = [], 0.0
    for cell, matching, standing in zip(cells, found, held, strict=True):
        limit = _limit(number, matching / sum(found), matching / standing, mean)
        readings.append(PartitionRead(*cell, limit))
        cost += max(1, ceil(min(limit, standing) * mean / _STEP)) / 2 + _EACH_QUERY
    return Plan(path, tuple(readings), residual, exact, cost)


def _matching(census: CommentCounts, wanted: Filter, language: str | None, rating: int | None) -> int:
    languages = wanted.languages if language is None else (language,)
    ratings = wanted.ratings if rating is None else (rating,)
    return max(0, census.count(languages, ratings))


def _held(census: CommentCounts, language: str | None, rating: int | None) -> int:
    return max(0, census.count(None if language is None else (language,), None if rating is None else (rating,)))


def _limit(number: int, share: float, selectivity: float, mean: float) -> int:
    """What to read of a source with a share of the wanted comments, of whose own a part is wanted.

    The expected number and z standard deviations, then as many as the last 4 KB hold anyway. z = 1.5 while a second
    round costs more than the surplus, 1 for comments above 1 KB.
    """
    z = 1.5 if mean <= _SMALL else 1.0
    own = min(number, ceil(number * share + z * sqrt(number * share * (1 - share))))
    read = ceil((own + z * sqrt(own * (1 - selectivity))) / selectivity) if selectivity < 1 else own
    most = number if selectivity >= 1 else LARGEST_READ
    filled = int(ceil(read * mean / _STEP) * _STEP * _FILLED / mean)
    return max(1, min(LARGEST_READ, max(read, min(most, filled))))
