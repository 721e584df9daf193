"""How many members have how many points: enough to know any member's rank without reading a million items.

A histogram is packed into parts of some hundred kilobytes. Parts never change: a new histogram is a new revision, and
another record (`Season.published`, `Event.scored`) says which revision counts.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

import orjson

from datastore.dynamo import Table
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key

_PART_BYTES = 300_000


@dataclass(frozen=True, slots=True)
class Histogram:
    """Scores, lowest first, and how many members have at most each of them."""

    scores: tuple[int, ...] = ()
    up_to: tuple[int, ...] = ()

    @classmethod
    def of(cls, counts: Mapping[int, int]) -> Histogram:
        scores = tuple(sorted(counts))
        return cls(scores, tuple(accumulate(counts[score] for score in scores)))

    @property
    def total(self) -> int:
        return self.up_to[-1] if self.up_to else 0

    def rank(self, score: int) -> int:
        """One more than the number of members with a higher score."""
        index = bisect_left(self.scores, score + 1)
        return 1 + self.total - (self.up_to[index - 1] if index else 0)

    def pack(self) -> bytes:
        """Differences are small numbers, which compress well."""
        return zlib.compress(orjson.dumps([_differences(self.scores), _differences(self.up_to)]))

    @classmethod
    def unpack(cls, packed: bytes) -> Histogram:
        scores, up_to = orjson.loads(zlib.decompress(packed))
        return cls(tuple(accumulate(scores)), tuple(accumulate(up_to)))


def _differences(numbers: tuple[int, ...]) -> list[int]:
    return [*numbers[:1], *(later - earlier for earlier, later in pairwise(numbers))]


@dataclass(frozen=True, slots=True)
class HistogramPart:
    """A piece of one revision of a histogram."""

    scope: str
    revision: int
    number: int
    part_count: int
    data: bytes


HISTOGRAM_PART = Entity(HistogramPart, Key("HISTOGRAM#{scope}", "{revision:010d}#{number:03d}"))


def event_scope(event: str) -> str:
    """The histograms of an event's predictions. Their revisions are generations of its results."""
    return f"EVENT:{event}"


def season_scope(season: str) -> str:
    """The histograms of a season's standings."""
    return f"STANDINGS:{season}"


async def store_histogram(table: Table, scope: str, revision: int, histogram: Histogram) -> None:
    packed = histogram.pack()
    pieces = [packed[start : start + _PART_BYTES] for start in range(0, len(packed), _PART_BYTES)]
    for number, piece in enumerate(pieces):
        await table.write(HISTOGRAM_PART.put(HistogramPart(scope, revision, number, len(pieces), piece)))


async def read_histogram(table: Table, scope: str, revision: int) -> Histogram | None:
    """A revision, or None if it was deleted after a newer one was published."""
    parts = [part async for part in table.iterate(HISTOGRAM_PART.on(scope=scope, revision=revision), consistent=True)]
    if not parts or len(parts) != parts[0].part_count:
        return None
    return Histogram.unpack(b"".join(part.data for part in parts))


async def delete_older_histograms(table: Table, scope: str, revision: int) -> None:
    """Delete the revisions before this one."""
    old = [
        part
        async for part in table.iterate(HISTOGRAM_PART.on(scope=scope), consistent=True)
        if part.revision < revision
    ]
    await table.write_many(HISTOGRAM_PART.delete(HISTOGRAM_PART.item_key(part)) for part in old)
