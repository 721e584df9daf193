"""Tallies: the counters that votes add to, spread over shards (see `shards`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Annotated

from datastore.dynamo import Page
from datastore.dynamo.attributes import StoredAs
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.dynamo.table import BATCH_READ

if TYPE_CHECKING:
    from datastore.dynamo import PageRequest, Table, Window
    from datastore.voting.boards import Board


_BATCHES_AT_ONCE = 8
"""Batch reads for one contender's records, so that many shards do not make many steps."""


# The stored names are short because a large board has two million of these items.
@dataclass(frozen=True, slots=True)
class Tally:
    """One contender's votes in one shard."""

    board: str
    shard: int
    ordinal: int
    wins: Annotated[int, StoredAs("w")] = 0
    losses: Annotated[int, StoredAs("l")] = 0
    ties: Annotated[int, StoredAs("t")] = 0


@dataclass(frozen=True, slots=True)
class PairTally:
    """The votes on one pair, in one shard or in all of them."""

    board: str
    shard: int
    low: int
    high: int
    low_wins: Annotated[int, StoredAs("lo")] = 0
    high_wins: Annotated[int, StoredAs("hi")] = 0
    ties: Annotated[int, StoredAs("t")] = 0

    @property
    def votes(self) -> int:
        return self.low_wins + self.high_wins + self.ties


TALLY = Entity(Tally, Key("TALLY#{board}#{shard}", "CONTENDER#{ordinal:06d}"))
PAIR = Entity(PairTally, Key("TALLY#{board}#{shard}", "PAIR#{low:06d}#{high:06d}"))


async def read_contender_sums(table: Table, board: Board) -> Mapping[int, tuple[int, int, int]]:
    """Wins, losses and ties of every contender with votes, by ordinal."""
    sums: dict[int, tuple[int, int, int]] = {}

    async def add(shard: int) -> None:
        tallies = TALLY.on(board=board.slug, shard=shard)
        async for tally in table.iterate(tallies, consistent=True, at_once=1000):
            wins, losses, ties = sums.get(tally.ordinal, (0, 0, 0))
            sums[tally.ordinal] = (wins + tally.wins, losses + tally.losses, ties + tally.ties)

    await asyncio.gather(*(add(shard) for shard in range(board.read_shards)))
    return sums


async def read_pair_records(
    table: Table, board: Board, pairs: Sequence[tuple[int, int]], *, consistent: bool = False
) -> list[PairTally]:
    """The head-to-head record of each pair, given with its lower ordinal first."""
    keys = [
        PAIR.at(board=board.slug, shard=shard, low=low, high=high)
        for low, high in pairs
        for shard in range(board.read_shards)
    ]
    records = {pair: PairTally(board.slug, 0, *pair) for pair in pairs}
    for tally in await table.get_many(keys, consistent=consistent):
        if tally is not None:
            records[tally.low, tally.high] = _sum(records[tally.low, tally.high], tally)
    return [records[pair] for pair in pairs]


def pairs_request(board: str, window: Window) -> PageRequest:
    return window.open(f"matchups {board}")


async def read_pairs_page(table: Table, board: Board, request: PageRequest) -> Page[PairTally]:
    """The records of pairs that were voted on, in the order of their ordinals."""
    shards = [PAIR.on(board=board.slug, shard=shard) for shard in range(board.read_shards)]
    return await table.page(shards, request, combine=_record)


def _record(tallies: Sequence[PairTally]) -> PairTally | None:
    """The sum of a pair's tallies; None if all of its votes were voided."""
    record = reduce(_sum, tallies)
    return record if record.votes else None


def contender_pairs_request(board: str, ordinal: int, window: Window) -> PageRequest:
    return window.open(f"matchups {board}/{ordinal}")


async def read_contender_pairs_page(table: Table, board: Board, ordinal: int, request: PageRequest) -> Page[PairTally]:
    """The records of one contender's pairs that were voted on, in the opponents' joining order."""
    first = 0 if request.position is None else int(request.position) + 1
    opponents = [opponent for opponent in range(first, board.size) if opponent != ordinal]
    positions_and_records: list[tuple[str, PairTally]] = []
    # Each step is as many as one batch read takes; the records of most opponents are in the first one or two.
    step = max(1, BATCH_READ // board.read_shards)
    for start in range(0, len(opponents), step * _BATCHES_AT_ONCE):
        end = min(start + step * _BATCHES_AT_ONCE, len(opponents))
        batches = [opponents[first : min(first + step, end)] for first in range(start, end, step)]
        read = await asyncio.gather(*(_read_records_of(table, board, ordinal, batch) for batch in batches))
        positions_and_records += [found for records in read for found in records]
        if len(positions_and_records) >= request.wanted:
            break
    return Page.cut(positions_and_records, request)


async def _read_records_of(
    table: Table, board: Board, ordinal: int, opponents: Sequence[int]
) -> list[tuple[str, PairTally]]:
    """The records of a contender's pairs with these opponents that were voted on, and their positions."""
    pairs = [(min(opponent, ordinal), max(opponent, ordinal)) for opponent in opponents]
    records = await read_pair_records(table, board, pairs)
    return [(str(opponent), record) for opponent, record in zip(opponents, records, strict=True) if record.votes]


async def read_pair_tallies(table: Table, board: Board) -> list[PairTally]:
    """Every pair's tally in every shard."""

    async def read_shard(shard: int) -> list[PairTally]:
        return [tally async for tally in table.iterate(PAIR.on(board=board.slug, shard=shard), at_once=1000)]

    shards = await asyncio.gather(*(read_shard(shard) for shard in range(board.read_shards)))
    return [tally for shard in shards for tally in shard]


def _sum(left: PairTally, right: PairTally) -> PairTally:
    return PairTally(
        board=left.board,
        shard=0,
        low=left.low,
        high=left.high,
        low_wins=left.low_wins + right.low_wins,
        high_wins=left.high_wins + right.high_wins,
        ties=left.ties + right.ties,
    )
