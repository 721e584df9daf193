"""Merges several partitions into one order: a k-way merge of sorted slices, usually in at most two rounds.

All partitions are read in parallel, each up to its own limit. The last key read of an unfinished partition is its
frontier: records after it may have to come before records of other partitions. If fewer than the wanted records lie
before the nearest frontier, each unfinished partition is read for exactly the number missing before its own frontier.
After that, each has given enough by itself. So a third round happens only if records were left out, by a partition's
filter or by `combine`. From then on every round reads twice as much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from operator import itemgetter
from typing import Final, Generic, Protocol, TypeVar

from datastore.dynamo.entity import Partition, Slice

R = TypeVar("R")

LARGEST_READ = 1000
_DEVIATIONS = 4.0


class Queries(Protocol):
    """A table, as far as `merge` uses it."""

    async def query(self, partition: Partition[R], *, limit: int, consistent: bool) -> Slice[R]: ...


def shard_limit(wanted: int, shards: int) -> int:
    """How many of the first `wanted` records are read from one of several even shards: the mean and four deviations."""
    share = 1 / shards
    return min(wanted, ceil(wanted * share + _DEVIATIONS * sqrt(wanted * share * (1 - share))))


last_read: Final = itemgetter(-1)
"""Records with the same sort key are one record, found in several partitions while a write moves it."""


@dataclass(frozen=True, slots=True)
class Merged(Generic[R]):
    """The first sort keys and records of the common order, and how they were read.

    `frontier` is the sort key up to which every partition was read; None if all were read to the end.
    """

    items: list[tuple[str, R]]
    frontier: str | None
    rounds: int
    queries: int
    read: int


@dataclass(slots=True)
class _PartitionState(Generic[R]):
    """How far one partition was read."""

    rest: Partition[R]
    limit: int
    items: list[tuple[str, R]]
    read: int = 0
    queries: int = 0
    frontier: str | None = None
    """None: nothing is left."""


async def merge(
    table: Queries,
    partitions: Sequence[Partition[R]],
    limits: Sequence[int],
    wanted: int,
    *,
    combine: Callable[[Sequence[R]], R | None] = last_read,
    most_rounds: int | None = None,
    consistent: bool = False,
) -> Merged[R]:
    """The first `wanted` records of all partitions, which must share one direction and one kind of sort key.

    `combine` makes one record, or none, of those with the same sort key. After `most_rounds`, if given, there may be
    fewer records: those before the frontier.
    """
    descending = partitions[0].descending
    states = [_PartitionState(partition, limit, []) for partition, limit in zip(partitions, limits, strict=True)]
    unfinished, rounds = states, 0
    while True:
        await _advance(table, unfinished, consistent=consistent)
        rounds += 1
        unfinished = [state for state in states if state.frontier is not None]
        frontiers = [state.frontier for state in unfinished if state.frontier is not None]
        frontier = (max if descending else min)(frontiers, default=None)
        items = _combined(states, combine, descending=descending)
        certain = _count_up_to(items, frontier, descending=descending)
        if certain >= wanted or frontier is None or rounds == most_rounds:
            queries, read = sum(state.queries for state in states), sum(state.read for state in states)
            return Merged(items[: min(certain, wanted)], frontier, rounds, queries, read)
        for state in unfinished:
            missing = max(0, wanted - _count_up_to(items, state.frontier, descending=descending))
            state.limit = min(LARGEST_READ, missing << (rounds - 1))
            state.rest = state.rest.past(state.frontier)


async def _advance(table: Queries, states: Sequence[_PartitionState[R]], *, consistent: bool) -> None:
    reading = [state for state in states if state.limit]
    reads = [table.query(state.rest, limit=state.limit, consistent=consistent) for state in reading]
    # A single read needs no task.
    slices: list[Slice[R]] = [await reads[0]] if len(reads) == 1 else await asyncio.gather(*reads)
    for state, part in zip(reading, slices, strict=True):
        state.items += part.items
        state.read += part.read
        state.queries += 1
        state.frontier = part.last


def _combined(
    states: Sequence[_PartitionState[R]], combine: Callable[[Sequence[R]], R | None], *, descending: bool
) -> list[tuple[str, R]]:
    by_sort: dict[str, list[R]] = {}
    for state in states:
        for sort, record in state.items:
            by_sort.setdefault(sort, []).append(record)
    combined = ((sort, combine(by_sort[sort])) for sort in sorted(by_sort, reverse=descending))
    return [(sort, record) for sort, record in combined if record is not None]


def _count_up_to(items: Sequence[tuple[str, R]], edge: str | None, *, descending: bool) -> int:
    """The number of items before an edge or at it; without an edge, all of them."""
    if edge is None:
        return len(items)
    return sum(1 for sort, _ in items if (sort >= edge if descending else sort <= edge))
