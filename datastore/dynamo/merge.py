"""One order out of several partitions: the k-way merge of sorted slices, in at most two rounds.

Every source is read in parallel up to its own limit. A source that has more to give blocks the merge at its frontier,
the last key it showed: a record beyond a frontier may still be preceded by one that was not read. When fewer than the
wanted records lie before the nearest frontier, every blocking source is asked for exactly what is missing before its
own frontier. After that each has shown enough by itself, so a third round happens only when records were dropped by
`keep` (an index that lags, a filter).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datastore.dynamo.entity import Partition
    from datastore.dynamo.table import Slice, Table

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Source(Generic[R]):
    """A partition and how many records to read from it in the first round."""

    partition: Partition[R]
    limit: int


@dataclass(slots=True)
class Merged(Generic[R]):
    """The first records of the common order, and what it took to know them.

    `frontier` is the sort key up to which every source has been read; None when nothing was left unread.
    """

    records: list[R]
    more: bool
    rounds: int
    queries: int
    read: int
    frontier: str | None = None


@dataclass(slots=True)
class _Run(Generic[R]):
    """How far one source has been read."""

    partition: Partition[R]
    records: list[R]
    frontier: str | None  # None: nothing further


async def merge(
    table: Table,
    sources: Sequence[Source[R]],
    wanted: int,
    *,
    keep: Callable[[R], bool] = lambda _: True,
    rounds: int | None = None,
    consistent: bool = False,
) -> Merged[R]:
    """The first `wanted` distinct records of all sources, which must share one direction and one kind of sort key.

    After so many `rounds`, if a number is given, it may be fewer: those in front of the frontier.
    Two records with the same sort key are the same record, seen in two partitions while an edit moves it: the one
    that `keep` accepts is shown.
    """
    runs = [_Run(source.partition, [], source.partition.low or "") for source in sources]
    demands = [source.limit for source in sources]
    outcome: Merged[R] = Merged([], more=False, rounds=0, queries=0, read=0)
    while True:
        await _advance(table, runs, demands, outcome, consistent=consistent)
        ordered = _ordered(runs, keep)
        edge = _nearest_frontier(runs)
        settled = sum(1 for sort, _ in ordered if edge is None or not _beyond(runs, sort, edge))
        if settled >= wanted or edge is None or outcome.rounds == rounds:
            known = ordered[: min(settled, wanted)]
            outcome.records = [record for _, record in known]
            outcome.more = settled > wanted or edge is not None
            outcome.frontier = edge
            return outcome
        demands = [_missing(run, runs, ordered, wanted) for run in runs]


async def _advance(
    table: Table, runs: Sequence[_Run[R]], demands: Sequence[int], outcome: Merged[R], *, consistent: bool
) -> None:
    asked = [(run, demand) for run, demand in zip(runs, demands, strict=True) if demand and run.frontier is not None]
    first = outcome.rounds == 0
    slices: list[Slice[R]] = await asyncio.gather(
        *(
            table.slice(run.partition if first else run.partition.past(run.frontier), demand, consistent=consistent)
            for run, demand in asked
        )
    )
    outcome.rounds += 1
    outcome.queries += len(slices)
    for (run, _), found in zip(asked, slices, strict=True):
        run.records += found.records
        run.frontier = found.last if found.more else None
        outcome.read += found.read


def _beyond(runs: Sequence[_Run[R]], sort: str, edge: str) -> bool:
    return sort < edge if runs[0].partition.descending else sort > edge


def _nearest_frontier(runs: Sequence[_Run[R]]) -> str | None:
    frontiers = [run.frontier for run in runs if run.frontier is not None]
    if not frontiers:
        return None
    return max(frontiers) if runs[0].partition.descending else min(frontiers)


def _ordered(runs: Sequence[_Run[R]], keep: Callable[[R], bool]) -> list[tuple[str, R]]:
    seen: dict[str, R] = {}
    for run in runs:
        for record in run.records:
            if keep(record):
                seen[run.partition.sort_of(record)] = record
    return sorted(seen.items(), key=lambda pair: pair[0], reverse=runs[0].partition.descending)


def _missing(run: _Run[R], runs: Sequence[_Run[R]], ordered: Sequence[tuple[str, R]], wanted: int) -> int:
    """What a source must still show so that its frontier lies behind the wanted record."""
    frontier = run.frontier
    if frontier is None:
        return 0
    before = sum(1 for sort, _ in ordered if not _beyond(runs, sort, frontier))
    return max(0, wanted - before)
