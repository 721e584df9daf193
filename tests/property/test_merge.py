"""The law of the merge: whatever the sources and their first limits, the result is the sorted whole, cut."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as some

from datastore.dynamo import Entity, Key, Partition, Slice, merge


@dataclass(frozen=True, slots=True)
class Note:
    shelf: str
    number: int


NOTE = Entity(Note, Key("SHELF#{shelf}", "{number:06d}"))


class Shelves:
    """A table of sorted shelves in memory, cut short at random places, as the engine cuts at 1 MB."""

    def __init__(self, shelves: dict[str, list[int]]) -> None:
        self._shelves = shelves
        self.queries = 0

    async def query(self, partition: Partition[Note], *, limit: int, consistent: bool = False) -> Slice[Note]:
        del consistent
        self.queries += 1
        shelf = partition.pk.removeprefix("SHELF#")
        numbers = sorted(self._shelves[shelf], reverse=partition.descending)
        keys = [f"{number:06d}" for number in numbers]
        seen = [
            Note(shelf, number)
            for number, key in zip(numbers, keys, strict=True)
            if (partition.low is None or key >= partition.low) and (partition.high is None or key <= partition.high)
        ]
        found = tuple((f"{note.number:06d}", note) for note in seen[:limit])
        more = len(found) == limit  # like DynamoDB, which cannot know that the end is just there
        return Slice(found, found[-1][0] if more else None, len(found))


@given(
    shelves=some.lists(some.sets(some.integers(0, 200), max_size=40), min_size=1, max_size=6),
    limits=some.lists(some.integers(1, 12), min_size=6, max_size=6),
    wanted=some.integers(1, 30),
    newest_first=some.booleans(),
)
def test_the_merge_is_the_sorted_whole_cut(
    shelves: list[set[int]], limits: list[int], wanted: int, *, newest_first: bool
) -> None:
    """Equal sort keys are one record; two rounds are enough."""
    table = Shelves({str(place): sorted(numbers) for place, numbers in enumerate(shelves)})
    partitions = [NOTE.on(shelf=str(place)) for place in range(len(shelves))]
    directed = [partition.newest_first() if newest_first else partition for partition in partitions]
    merged = asyncio.run(merge(table, directed, limits[: len(directed)], wanted))  # type: ignore[arg-type]
    whole = sorted(set().union(*shelves), reverse=newest_first)
    assert [note.number for _, note in merged.items] == whole[:wanted]
    if merged.frontier is None:
        assert len(merged.items) == min(len(whole), wanted)
    distinct = sum(len(numbers) for numbers in shelves) == len(whole)
    assert merged.rounds <= 2 or not distinct
