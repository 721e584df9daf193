"""Changing the number of a board's shards while people vote.

Votes are written to `Board.write_shards` shards, a number that changes with the board's contenders and rate. Readers
sum `Board.read_shards`, which only grows. It must be raised before the first vote is written to a new shard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import less, present
from datastore.refusals import NotFound
from datastore.voting.boards import BOARD, Board
from datastore.voting.shards import shard_count

if TYPE_CHECKING:
    from datastore.dynamo import Table


async def ensure_shards_are_read(table: Table, board: Board) -> bool:
    """Make readers sum every shard that votes are written to. Return whether the board had to be changed."""
    if board.write_shards <= board.read_shards:
        return False
    await _raise_read_shards(table, board.slug, board.write_shards)
    return True


async def reshard(table: Table, board: Board, rate: int) -> int:
    """Spread a board's counters for a rate of votes. Return the number of shards; NotFound if the board is gone."""
    shards = shard_count(board.contender_count, rate)
    await _raise_read_shards(table, board.slug, shards)
    await _set_rate(table, board.slug, rate)
    return shards


async def _raise_read_shards(table: Table, slug: str, shards: int) -> None:
    change = BOARD.update(BOARD.at(slug=slug), values={"read_shards": shards}, when=less("read_shards", shards))
    try:
        await table.write(change)
    except ConditionFailed:
        return


async def _set_rate(table: Table, slug: str, rate: int) -> None:
    try:
        await table.write(BOARD.update(BOARD.at(slug=slug), values={"rate": rate}, when=present()))
    except ConditionFailed:
        raise NotFound(f"There is no board called {slug}.") from None
