"""How many have how many points: enough to know anybody's rank among a million without reading them.

A histogram is packed into parts of some hundred kilobytes, none of which ever changes: a newer one is another revision
beside it, and whoever publishes says which one counts.
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
    """Scores, lowest first, and how many have at most each of them."""

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
        """One more than have a higher score."""
        place = bisect_left(self.scores, score + 1)
        return 1 + self.total - (self.up_to[place - 1] if place else 0)

    def pack(self) -> bytes:
        """Differences are small numbers, which compress well."""
        return zlib.compress(orjson.dumps([_steps(self.scores), _steps(self.up_to)]))

    @classmethod
    def unpack(cls, packed: bytes) -> Histogram:
        scores, up_to = orjson.loads(zlib.decompress(packed))
        return cls(tuple(accumulate(scores)), tuple(accumulate(up_to)))


def _steps(numbers: tuple[int, ...]) -> list[int]:
    return [*numbers[:1], *(later - earlier for earlier, later in pairwise(numbers))]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of one revision of a histogram."""

    scope: str
    revision: int
    number: int
    of: int
    data: bytes


PART = Entity(Part, Key("HISTOGRAM#{scope}", "{revision:010d}#{number:03d}"))


async def store(table: Table, scope: str, revision: int, histogram: Histogram) -> None:
    packed = histogram.pack()
    pieces = [packed[start : start + _PART_BYTES] for start in range(0, len(packed), _PART_BYTES)]
    for number, piece in enumerate(pieces):
        await table.write(PART.put(Part(scope, revision, number, len(pieces), piece)))


async def stored(table: Table, scope: str, revision: int) -> Histogram | None:
    """A revision, or None when it is gone: a newer one counts by now."""
    parts = [part async for part in table.iterate(PART.on(scope=scope, revision=revision), consistent=True)]
    if not parts or len(parts) != parts[0].of:
        return None
    return Histogram.unpack(b"".join(part.data for part in parts))


async def drop(table: Table, scope: str, below: int) -> None:
    """Removes the revisions below one."""
    old = [part async for part in table.iterate(PART.on(scope=scope), consistent=True) if part.revision < below]
    await table.write_many(PART.delete(PART.place_of(part)) for part in old)
