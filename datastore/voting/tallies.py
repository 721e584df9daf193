"""Tallies: the counters that votes add to, spread over shards so that votes at the same time seldom meet.

Two votes conflict when they write to the same item at the same time. With R votes a second, T seconds a transaction,
n contenders and S shards, one in about 4·R·T/(n·S) meets another; `shards_for` keeps that near one in ten. A voter's
votes all go to one shard. The number for writers follows the board's size; readers sum every shard that was ever
used (`Board.spread`), so it may change at any time.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil
from typing import TYPE_CHECKING

from datastore.dynamo import BATCH_READ, ConditionFailed, Entity, Key, Page, less, present
from datastore.refusals import NotFound
from datastore.voting.boards import BOARD

if TYPE_CHECKING:
    from datastore.dynamo import PageRequest, Table, Window
    from datastore.voting.boards import Board

_SECONDS = 0.008
_CONFLICTS = 0.1
MOST_SHARDS = 64


@dataclass(frozen=True, slots=True)
class Tally:
    """What one shard counted for one contender."""

    board: str
    shard: int
    ordinal: int
    w: int = 0
    l: int = 0  # noqa: E741 - stored two million times: one letter each
    t: int = 0


@dataclass(frozen=True, slots=True)
class PairTally:
    """What one shard, or all of them together, counted for two contenders: wins of the lower, of the higher, ties."""

    board: str
    shard: int
    low: int
    high: int
    lo: int = 0
    hi: int = 0
    t: int = 0

    @property
    def votes(self) -> int:
        return self.lo + self.hi + self.t


TALLY = Entity(Tally, Key("TALLY#{board}#{shard}", "CONTENDER#{ordinal:06d}"))
PAIR = Entity(PairTally, Key("TALLY#{board}#{shard}", "PAIR#{low:06d}#{high:06d}"))


def shards_for(contenders: int, rate: int) -> int:
    """How many shards writers use: S = ⌈4·R·T / (n · one in ten)⌉, 1 to 64."""
    return max(1, min(MOST_SHARDS, ceil(4 * rate * _SECONDS / (_CONFLICTS * max(2, contenders)))))


def shard_of(voter: str, shards: int) -> int:
    return zlib.crc32(voter.encode()) % shards


def shard_for(voter: str, board: Board) -> int:
    """The shard that a voter's votes go to."""
    return shard_of(voter, shards_for(board.contender_count, board.rate))


async def ensure_spread(table: Table, board: Board) -> bool:
    """Readers sum every shard that votes go to; whether more had to be added for that."""
    shards = shards_for(board.contender_count, board.rate)
    if shards > board.spread:
        await raise_spread(table, board.slug, shards)
    return shards > board.spread


async def reshard(table: Table, board: Board, rate: int) -> int:
    """Spreads a board's counters for a rate of votes; returns the number of shards. NotFound if the board is gone."""
    shards = shards_for(board.contender_count, rate)
    # Readers first: no vote may go to a shard that is not summed.
    await raise_spread(table, board.slug, shards)
    await set_rate(table, board.slug, rate)
    return shards


async def raise_spread(table: Table, slug: str, shards: int) -> None:
    """Readers sum so many shards from now on; to be done before the first vote goes to one of them."""
    try:
        await table.write(BOARD.change(BOARD.at(slug=slug), values={"spread": shards}, when=less("spread", shards)))
    except ConditionFailed:
        return


async def set_rate(table: Table, slug: str, rate: int) -> None:
    """The votes a second that the board's shards are reckoned for."""
    try:
        await table.write(BOARD.change(BOARD.at(slug=slug), values={"rate": rate}, when=present()))
    except ConditionFailed:
        raise NotFound(f"There is no board called {slug}.") from None


async def contender_sums(table: Table, board: Board) -> Mapping[int, tuple[int, int, int]]:
    """Wins, losses and ties of every contender that was ever voted on."""
    sums: dict[int, tuple[int, int, int]] = {}

    async def add(shard: int) -> None:
        place = TALLY.on(board=board.slug, shard=shard)
        async for tally in table.iterate(place, consistent=True, at_once=1000):
            wins, losses, ties = sums.get(tally.ordinal, (0, 0, 0))
            sums[tally.ordinal] = (wins + tally.w, losses + tally.l, ties + tally.t)

    await asyncio.gather(*(add(shard) for shard in range(board.spread)))
    return sums


async def pair_records(
    table: Table, board: Board, pairs: Sequence[tuple[int, int]], *, consistent: bool = False
) -> list[PairTally]:
    """The head-to-head record of each pair, its lower ordinal first."""
    keys = [
        PAIR.at(board=board.slug, shard=shard, low=low, high=high)
        for low, high in pairs
        for shard in range(board.spread)
    ]
    found = await table.get_many(keys, consistent=consistent)
    by_pair = {pair: PairTally(board.slug, 0, *pair) for pair in pairs}
    for tally in found:
        if tally is not None:
            by_pair[tally.low, tally.high] = _sum(by_pair[tally.low, tally.high], tally)
    return [by_pair[pair] for pair in pairs]


def pairs_request(board: str, window: Window) -> PageRequest:
    return window.open(f"matchups {board}")


async def pairs_page(table: Table, board: Board, request: PageRequest) -> Page[PairTally]:
    """The records of pairs that were voted on, in the order of their ordinals."""
    shards = [PAIR.on(board=board.slug, shard=shard) for shard in range(board.spread)]
    return await table.page(shards, request, combine=_voted)


def _voted(shares: Sequence[PairTally]) -> PairTally | None:
    """The record that shards hold together; None if all of its votes were voided."""
    record = reduce(_sum, shares)
    return record if record.votes else None


def pairs_of_contender_request(board: str, ordinal: int, window: Window) -> PageRequest:
    return window.open(f"matchups {board}/{ordinal}")


async def pairs_of_contender(table: Table, board: Board, ordinal: int, request: PageRequest) -> Page[PairTally]:
    """The records of one contender's pairs that were voted on, by the others' order of joining."""
    first = 0 if request.position is None else int(request.position) + 1
    others = [other for other in range(first, board.size) if other != ordinal]
    found: list[tuple[str, PairTally]] = []
    # As many as one batch read takes; the records of most opponents are in the first one or two.
    step = max(1, BATCH_READ // board.spread)
    for start in range(0, len(others), step):
        batch = others[start : start + step]
        records = await pair_records(table, board, [(min(other, ordinal), max(other, ordinal)) for other in batch])
        found += [(str(other), record) for other, record in zip(batch, records, strict=True) if record.votes]
        if len(found) >= request.wanted:
            break
    return Page.cut(found, request)


async def all_pairs(table: Table, board: Board) -> list[PairTally]:
    """Every shard's share of every record, for the strengths."""

    async def of(shard: int) -> list[PairTally]:
        return [tally async for tally in table.iterate(PAIR.on(board=board.slug, shard=shard), at_once=1000)]

    shares = await asyncio.gather(*(of(shard) for shard in range(board.spread)))
    return [tally for share in shares for tally in share]


def _sum(one: PairTally, other: PairTally) -> PairTally:
    return PairTally(one.board, 0, one.low, one.high, one.lo + other.lo, one.hi + other.hi, one.t + other.t)
