"""Settling: the sums over a board's shards are written to its contenders' rows, and so to the leaderboard's index.

Settling is idempotent, and any number of processes may settle at the same time. Rows are read before the sums, and a
row is written only if its version has not changed since, so a row's counts never go back in time.

A process that counts votes marks the board as dirty first, and clears its mark once its votes are settled. The mark of
a killed process stays. Processes that read the board then settle it, until the moment up to which the killed process
could have counted votes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, less, present, where
from datastore.voting.boards import BOARD, Board, DirtyMark, clear_dirty, read_board_with_marks
from datastore.voting.contenders import CONTENDER, Contender, all_contenders
from datastore.voting.tallies import read_contender_sums

if TYPE_CHECKING:
    from datastore.dynamo import Table

_ROWS_AT_ONCE = 16
_MARK_LIFETIME = timedelta(minutes=5)
_NO_VOTES = (0, 0, 0)
_NO_STATE = -1
"""A value of `Board.settled` that no board has: the rows belong to no state of the board and must be read again."""


@dataclass(frozen=True, slots=True)
class BoardRows:
    """All rows of a board in one of its states, by ordinal."""

    board: Board
    rows: Mapping[int, Contender]
    complete: bool = True
    """Whether all rows could be written when the board was settled."""
    scores: Sequence[int] = field(init=False)
    """The scores of the active contenders, ascending."""

    def __post_init__(self) -> None:
        scores = sorted(row.score for row in self.rows.values() if not row.retired)
        object.__setattr__(self, "scores", scores)


async def read_board_rows(table: Table, board: Board) -> BoardRows:
    return BoardRows(board, {row.ordinal: row async for row in all_contenders(table, board.slug)})


async def settle(table: Table, slug: str, now: datetime, cached: BoardRows | None = None) -> BoardRows | None:
    """Settle a board and return its rows, or None if there is no such board.

    `cached` rows are used if the board has not changed since. If another process wrote a row meanwhile, the result is
    not `complete`: settle again.
    """
    current = await read_board_with_marks(table, slug, consistent=True)
    if current is None:
        return None
    board = current.board
    if cached is None or cached.board.stamp != board.stamp:
        cached = await read_board_rows(table, board)
    sums = await read_contender_sums(table, board)
    changed = list(_changed_rows(cached.rows.values(), sums))
    written = await _write_rows(table, changed)
    complete = all(written)
    votes = sum(wins for wins, _, _ in sums.values()) + sum(ties for _, _, ties in sums.values()) // 2
    if changed or votes != board.votes or current.dirty_marks:
        board = await _record_settlement(table, replace(board, votes=votes), now, complete=complete)
    await _delete_old_marks(table, current.dirty_marks, now)
    written_rows = {row.ordinal: row for row, done in zip(changed, written, strict=True) if done}
    return BoardRows(board, {**cached.rows, **written_rows}, complete)


def _changed_rows(rows: Iterable[Contender], sums: Mapping[int, tuple[int, int, int]]) -> Iterator[Contender]:
    for row in rows:
        wins, losses, ties = sums.get(row.ordinal, _NO_VOTES)
        if row.counts != (wins, losses, ties):
            yield replace(row, wins=wins, losses=losses, ties=ties, version=row.version + 1)


async def _write_rows(table: Table, rows: Sequence[Contender]) -> list[bool]:
    """For each row, whether it was written; False if another process changed it first."""
    slots = asyncio.Semaphore(_ROWS_AT_ONCE)

    async def write(row: Contender) -> bool:
        unchanged = where(version=row.version - 1)
        async with slots:
            try:
                await table.write(CONTENDER.shift(row, "wins", "losses", "ties", "version", when=unchanged))
            except ConditionFailed as failed:
                stored_item = failed.failures.get(0)
                return failed.doubtful and stored_item is not None and CONTENDER.read(stored_item) == row
            return True

    return list(await asyncio.gather(*(write(row) for row in rows)))


async def _record_settlement(table: Table, board: Board, now: datetime, *, complete: bool) -> Board:
    """Write the board's number of votes and the time of its settlement, and return the board.

    `settled` is raised even if some rows could not be written, since other rows were. If another process settled or
    changed the board meanwhile, the rows at hand belong to no state of it.
    """
    change = BOARD.change(
        BOARD.item_key(board),
        values={"votes": board.votes, "settled_at": now if complete else board.settled_at},
        add={"settled": 1},
        when=present() & (absent("settled_at") | less("settled_at", now)),
    )
    try:
        recorded = await table.write_back(change, BOARD)
    except ConditionFailed:
        return replace(board, settled=_NO_STATE)
    if not complete or recorded.stamp != (board.revision, board.settled + 1):
        return replace(recorded, settled=_NO_STATE)
    return recorded


async def _delete_old_marks(table: Table, marks: Sequence[DirtyMark], now: datetime) -> None:
    for mark in marks:
        if mark.until < now - _MARK_LIFETIME:
            await clear_dirty(table, mark.board, mark.process)
