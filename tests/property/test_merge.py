"""The invariant of the merge: whatever the sources and their first limits, the result is the sorted whole, cut."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from datastore.dynamo import Slice
from datastore.dynamo.entity import Entity, Key, Partition
from datastore.dynamo.paging import merge


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

    async def query(self, partition: Partition[Any], *, limit: int, consistent: bool = False) -> Slice[Any]:
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
def test_a_merge_is_a_slice_of_the_sorted_records(
    shelves: list[set[int]], limits: list[int], wanted: int, *, newest_first: bool
) -> None:
    """Equal sort keys are one record; two rounds are enough."""
    table = Shelves({str(place): sorted(numbers) for place, numbers in enumerate(shelves)})
    partitions = [NOTE.on(shelf=str(place)) for place in range(len(shelves))]
    directed = [partition.newest_first() if newest_first else partition for partition in partitions]
    merged = asyncio.run(merge(table, directed, limits[: len(directed)], wanted))
    whole = sorted(set().union(*shelves), reverse=newest_first)
    assert [note.number for _, note in merged.items] == whole[:wanted]
    if merged.frontier is None:
        assert len(merged.items) == min(len(whole), wanted)
    distinct = sum(len(numbers) for numbers in shelves) == len(whole)
    assert merged.rounds <= 2 or not distinct


@given(
    shelves=some.lists(some.sets(some.integers(0, 200), max_size=40), min_size=1, max_size=6),
    limit=some.integers(1, 12),
    wanted=some.integers(1, 30),
    newest_first=some.booleans(),
)
def test_records_with_one_sort_key_are_combined_from_all_partitions(
    shelves: list[set[int]], limit: int, wanted: int, *, newest_first: bool
) -> None:
    """No share is missing from a combined record, and what is left out is made up for by reading on."""

    def shared(notes: Sequence[Note]) -> Note | None:
        return Note(",".join(sorted(note.shelf for note in notes)), notes[0].number) if len(notes) > 1 else None

    table = Shelves({str(place): sorted(numbers) for place, numbers in enumerate(shelves)})
    partitions = [NOTE.on(shelf=str(place)) for place in range(len(shelves))]
    directed = [partition.newest_first() if newest_first else partition for partition in partitions]
    limits = [limit] * len(directed)
    merged = asyncio.run(merge(table, directed, limits, wanted, combine=shared))
    holders = {number: [str(place) for place, held in enumerate(shelves) if number in held] for number in range(201)}
    expected = [Note(",".join(places), number) for number, places in holders.items() if len(places) > 1]
    assert [note for _, note in merged.items] == (expected[::-1] if newest_first else expected)[:wanted]


@pytest.mark.slow
def test_many_records_that_are_left_out_take_few_rounds() -> None:
    """From the third round on, each reads twice as much as the one before."""
    table = Shelves({"0": list(range(20_000))})

    def last(notes: Sequence[Note]) -> Note | None:
        return notes[0] if notes[0].number == 19_999 else None

    merged = asyncio.run(merge(table, [NOTE.on(shelf="0")], [21], 21, combine=last))
    assert [note.number for _, note in merged.items] == [19_999]
    assert merged.rounds < 30
