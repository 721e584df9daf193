"""One order out of several partitions: the k-way merge of sorted slices, in at most two rounds.

Every partition is read in parallel up to its own limit. A partition that has more to give blocks the merge at its
frontier, the last key it showed: a record beyond a frontier may still be preceded by one that was not read. When fewer
than the wanted records lie before the nearest frontier, every blocking partition is asked for exactly what is missing
before its own frontier. After that each has shown enough by itself, so a third round happens only when records were
left out: by a filter of the partition, or by `combine`. From then on every round reads twice as much.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datastore.dynamo.entity import Partition
    from datastore.dynamo.table import Slice, Table

R = TypeVar("R")

LARGEST_READ = 1000
_DEVIATIONS = 4.0


def share_of(wanted: int, shards: int) -> int:
    """How many of the first `wanted` records one of so many even shards holds at most, but for four deviations."""
    part = 1 / shards
    return min(wanted, ceil(wanted * part + _DEVIATIONS * sqrt(wanted * part * (1 - part))))


def last_read(records: Sequence[R]) -> R | None:
    """Records with one sort key are one record, seen in several partitions while a write moves it."""
    return records[-1]


@dataclass(frozen=True, slots=True)
class Merged(Generic[R]):
    """The first sort keys and records of the common order, and what it took to know them.

    `frontier` is the sort key up to which every partition was read; None when nothing was left unread.
    """

    items: list[tuple[str, R]]
    frontier: str | None
    rounds: int
    queries: int
    read: int


@dataclass(slots=True)
class _Run(Generic[R]):
    """How far one partition was read."""

    rest: Partition[R]
    limit: int
    items: list[tuple[str, R]]
    read: int = 0
    queries: int = 0
    frontier: str | None = None
    """None: nothing is left."""


async def merge(
    table: Table,
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
    runs = [_Run(partition, limit, []) for partition, limit in zip(partitions, limits, strict=True)]
    unfinished, rounds = runs, 0
    while True:
        await _advance(table, unfinished, consistent=consistent)
        rounds += 1
        unfinished = [run for run in runs if run.frontier is not None]
        frontiers = [run.frontier for run in unfinished if run.frontier is not None]
        frontier = (max if descending else min)(frontiers, default=None)
        items = _combined(runs, combine, descending=descending)
        settled = _count_up_to(items, frontier, descending=descending)
        if settled >= wanted or frontier is None or rounds == most_rounds:
            queries, read = sum(run.queries for run in runs), sum(run.read for run in runs)
            return Merged(items[: min(settled, wanted)], frontier, rounds, queries, read)
        for run in unfinished:
            missing = max(0, wanted - _count_up_to(items, run.frontier, descending=descending))
            run.limit = min(LARGEST_READ, missing << (rounds - 1))
            run.rest = run.rest.past(run.frontier)


async def _advance(table: Table, runs: Sequence[_Run[R]], *, consistent: bool) -> None:
    asked = [run for run in runs if run.limit]
    reads = [table.query(run.rest, limit=run.limit, consistent=consistent) for run in asked]
    # A single read needs no task.
    slices: list[Slice[R]] = [await reads[0]] if len(reads) == 1 else await asyncio.gather(*reads)
    for run, found in zip(asked, slices, strict=True):
        run.items += found.items
        run.read += found.read
        run.queries += 1
        run.frontier = found.last


def _combined(
    runs: Sequence[_Run[R]], combine: Callable[[Sequence[R]], R | None], *, descending: bool
) -> list[tuple[str, R]]:
    by_sort: dict[str, list[R]] = {}
    for run in runs:
        for sort, record in run.items:
            by_sort.setdefault(sort, []).append(record)
    combined = ((sort, combine(by_sort[sort])) for sort in sorted(by_sort, reverse=descending))
    return [(sort, record) for sort, record in combined if record is not None]


def _count_up_to(items: Sequence[tuple[str, R]], edge: str | None, *, descending: bool) -> int:
    """How many items stand before an edge or at it; without an edge, all of them."""
    if edge is None:
        return len(items)
    return sum(1 for sort, _ in items if (sort >= edge if descending else sort <= edge))
