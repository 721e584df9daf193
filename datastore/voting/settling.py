"""Settling: the sums over a board's shards are written to its contenders' results, and so to the leaderboard's index.

A process claims a settling before it begins one: it raises `Board.claims`, on condition that nobody else has meanwhile.
So one process settles for all of them, without comparing clocks. A settling with a higher number than `claims` had when
a vote was acknowledged includes that vote. `Board.completed` is the number of the latest settling that succeeded.

A claim is no lock: if its process is slow or killed, another one claims the next settling. Any number may run at the
same time. Results are read before the sums, and a result is written only if its version has not changed since.

Law: a process settles again, reads the results anew and deletes its mark only afterwards, if another settling was
claimed while it wrote a result, or if it failed to write one, or does not know whether it did. The reason: a sum may
return to what it was, when a vote is voided, and a settling that finds nothing to write raises no version. S below has
summed the vote; V is claimed after it was voided.

    S  claim  results  sums                                            write  complete
    V                        (voided)  claim  results  sums  complete                     nothing to write
    V                        (voided)  claim  results  sums                     complete  nothing to write

In both, S brings the vote back, and finds at its `complete` that `claims` has moved. If V reads the results after the
write, it writes them itself; if both write one, the version stops the later of them. A settling that is claimed after V
has the right sums. If S is killed after its write, its mark stays, and the process that deletes it reads the results
anew. Only a settling by a reader, who has no mark, may be killed there and leave the vote until the board is settled
next.

A process that counts votes marks the board as dirty, and deletes its mark once its votes are settled. The mark of a
killed process stays. Processes that read the board then settle it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
from datastore.dynamo.concurrency import gather_or_cancel
from datastore.dynamo.conditions import less, where
from datastore.voting.boards import BOARD, Board
from datastore.voting.contenders import CONTENDER, Contender, all_contenders
from datastore.voting.tallies import read_contender_sums

if TYPE_CHECKING:
    from datastore.dynamo import Table

_RESULTS_AT_ONCE = 16
_NO_VOTES = (0, 0, 0)
_NO_STATE = -1
"""A value of `Board.completed` that no board has: the results belong to none of its states and must be read again."""


@dataclass(frozen=True, slots=True)
class BoardResults:
    """All results of a board in one of its states, by ordinal."""

    board: Board
    results: Mapping[int, Contender]
    complete: bool = True
    """Whether all results could be written when the board was settled, and no other settling may have missed one."""
    scores: Sequence[int] = field(init=False)
    """The scores of the active contenders, ascending."""

    def __post_init__(self) -> None:
        scores = sorted(result.score for result in self.results.values() if not result.retired)
        object.__setattr__(self, "scores", scores)


async def read_board_results(table: Table, board: Board) -> BoardResults:
    return BoardResults(board, await all_contenders(table, board))


async def claim_settling(table: Table, board: Board, now: datetime) -> Board | None:
    """Begin the board's next settling. None if another process has begun one since the board was read."""
    unclaimed = where(claims=board.claims)
    claim = BOARD.change(BOARD.item_key(board), values={"claimed_at": now}, add={"claims": 1}, when=unclaimed)
    try:
        return await table.write_back(claim, BOARD)
    except ConditionFailed:
        return None


async def settle(table: Table, board: Board, cached: BoardResults | None = None) -> BoardResults:
    """Carry out the settling that was claimed with this state of the board, and return the results.

    `cached` results are used if nobody has settled or changed the board since. If the results are not `complete`, claim
    another settling.
    """
    if cached is not None and _is_current(cached.board, board):
        results = cached.results
    else:
        results = await all_contenders(table, board)
    sums = await read_contender_sums(table, board)
    changed = list(_changed_results(results.values(), sums))
    written = await _write_results(table, changed)
    results = {**results, **{one.ordinal: one for one, done in zip(changed, written, strict=True) if done}}
    if not all(written):
        return BoardResults(replace(board, completed=_NO_STATE), results, complete=False)
    votes = sum(wins for wins, _, _ in sums.values()) + sum(ties for _, _, ties in sums.values()) // 2
    completed = await _complete(table, replace(board, votes=votes))
    if changed and completed.completed != completed.claims:
        return BoardResults(replace(completed, completed=_NO_STATE), results, complete=False)
    return BoardResults(completed, results)


def _is_current(cached: Board, claimed: Board) -> bool:
    """Whether the claim at hand is the next one after the cached settling, and no editor has changed anything."""
    return cached.completed == cached.claims == claimed.claims - 1 and cached.revision == claimed.revision


def _changed_results(contenders: Iterable[Contender], sums: Mapping[int, tuple[int, int, int]]) -> Iterator[Contender]:
    for contender in contenders:
        counts = sums.get(contender.ordinal, _NO_VOTES)
        if counts != contender.counts:
            wins, losses, ties = counts
            yield replace(contender, wins=wins, losses=losses, ties=ties, version=contender.version + 1)


async def _write_results(table: Table, results: Sequence[Contender]) -> list[bool]:
    """For each result, whether it was written; False if another process changed it first.

    After a failure none is under way: a later write could pass its condition, and bring back a vote that was voided.
    """
    slots = asyncio.Semaphore(_RESULTS_AT_ONCE)

    async def write(result: Contender) -> bool:
        unchanged = where(version=result.version - 1)
        async with slots:
            try:
                await table.write(CONTENDER.shift(result, "wins", "losses", "ties", "version", when=unchanged))
            except ConditionFailed as failed:
                return failed.was_written(CONTENDER, result)
            return True

    return await gather_or_cancel(write(result) for result in results)


async def _complete(table: Table, board: Board) -> Board:
    """Write the number of votes and of this settling, and return the board.

    If a later settling has completed already, or an editor has changed a contender meanwhile, the results at hand
    belong to no state of the board.
    """
    change = BOARD.change(
        BOARD.item_key(board),
        values={"votes": board.votes, "completed": board.claims},
        when=less("completed", board.claims),
    )
    try:
        completed = await table.write_back(change, BOARD)
    except ConditionFailed:
        return replace(board, completed=_NO_STATE)
    return completed if completed.revision == board.revision else replace(completed, completed=_NO_STATE)
