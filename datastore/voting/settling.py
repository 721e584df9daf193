"""Settling: the sums over a board's shards go to its contenders' rows, and so into the leaderboard's index.

Idempotent, and safe with any number of processes: rows are read before the sums, and a row is written only if nobody
wrote it since, so sums never go back in time. A process that votes leaves a mark on the board first (`stir`), and
takes it away when all it counted is settled. The mark of a process that was killed stays: whoever reads the board
settles until the moment up to which that process could still have counted votes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed, absent, less, present, where
from datastore.voting.boards import BOARD, STIRRING, Board, DirtyMark, board_now
from datastore.voting.contenders import CONTENDER, Contender, roster
from datastore.voting.tallies import contender_sums

if TYPE_CHECKING:
    from datastore.dynamo import Table

AT_ONCE = 16
_FORGOTTEN = timedelta(minutes=5)
_NOTHING = (0, 0, 0)
_NO_STATE = -1


@dataclass(frozen=True, slots=True)
class Roster:
    """All rows of a board in one state of it, by ordinal."""

    board: Board
    rows: Mapping[int, Contender]
    complete: bool = True
    scores: Sequence[int] = field(init=False)
    """Of those who have not retired, ascending."""

    def __post_init__(self) -> None:
        scores = sorted(row.score for row in self.rows.values() if not row.retired)
        object.__setattr__(self, "scores", scores)


async def read_roster(table: Table, board: Board) -> Roster:
    return Roster(board, {row.ordinal: row async for row in roster(table, board.slug)})


async def mark_dirty(table: Table, board: str, process: str, until: datetime) -> None:
    """Says that this process may count votes until a moment."""
    await table.write(STIRRING.put(DirtyMark(board, process, until)))


async def clear_dirty(table: Table, board: str, process: str) -> None:
    """Says that everything this process counted is settled."""
    await table.write(STIRRING.delete(STIRRING.at(board=board, process=process)))


async def settle(table: Table, slug: str, now: datetime, known: Roster | None = None) -> Roster | None:
    """The rows as they are afterwards, or None without such a board. What is `known` is read only if it changed.

    `complete` is false where somebody else wrote a row meanwhile: then settle again.
    """
    found = await board_now(table, slug, consistent=True)
    if found is None:
        return None
    board = found.board
    if known is None or known.board.stamp != board.stamp:
        known = await read_roster(table, board)
    sums = await contender_sums(table, board)
    changed = [
        replace(row, wins=wins, losses=losses, ties=ties, version=row.version + 1)
        for row in known.rows.values()
        for wins, losses, ties in (sums.get(row.ordinal, _NOTHING),)
        if row.counts != (wins, losses, ties)
    ]
    written = await _write(table, changed)
    complete = all(written)
    rows = {**known.rows, **{row.ordinal: row for row, done in zip(changed, written, strict=True) if done}}
    votes = sum(wins for wins, _, _ in sums.values()) + sum(ties for _, _, ties in sums.values()) // 2
    if changed or votes != board.votes or found.stirrings:
        expected = replace(board, votes=votes, settled=board.settled + 1)
        board = await _sign(table, expected, now, complete=complete)
        if not complete or board.stamp != expected.stamp:
            # Somebody wrote rows meanwhile, so these are of no state of the board: the next settling reads them anew.
            board = replace(board, settled=_NO_STATE)
    await _forget(table, found.stirrings, now)
    return Roster(board, rows, complete)


async def _write(table: Table, rows: Sequence[Contender]) -> list[bool]:
    """Says of each whether it was written, or somebody was faster."""
    room = asyncio.Semaphore(AT_ONCE)

    async def write(row: Contender) -> bool:
        async with room:
            try:
                await table.write(
                    CONTENDER.shift(row, "wins", "losses", "ties", "version", when=where(version=row.version - 1))
                )
            except ConditionFailed as failed:
                there = failed.failures.get(0)
                return there is not None and failed.doubtful and CONTENDER.read(there) == row
            return True

    return list(await asyncio.gather(*(write(row) for row in rows)))


async def _sign(table: Table, board: Board, now: datetime, *, complete: bool) -> Board:
    """Says up to when votes are settled. `settled` also moves when some rows could not be written: others were."""
    at = now if complete else board.settled_at
    unless_later = absent("settled_at") | less("settled_at", now)
    change = BOARD.change(
        BOARD.place_of(board),
        values={"votes": board.votes, "settled_at": at},
        add={"settled": 1},
        when=present() & unless_later,
    )
    try:
        return await table.write_back(change, BOARD)
    except ConditionFailed:
        return replace(board, settled=_NO_STATE)


async def _forget(table: Table, stirrings: Sequence[DirtyMark], now: datetime) -> None:
    """Marks of processes long gone."""
    for mark in stirrings:
        if mark.until < now - _FORGOTTEN:
            await clear_dirty(table, mark.board, mark.process)
