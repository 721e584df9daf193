"""Settling: the sums over a board's shards are written to its contenders' results, and so to the leaderboard's index.

The process that has the board's lease settles for all of them. Settling takes milliseconds, so a lease that is not
released is acquired by another process soon, whether its holder is dead or only slow; and each settling is a new term.

Guarantee: settlings have their effects one after the other, in the order of their terms. Each transaction that writes
results checks the term, so none is applied once a later settling has begun; results and sums are read after that. So
every settling includes all votes that were acknowledged before it began, and none brings back a vote that was voided.
`Board.settled` is the term of the latest one that wrote all its results.

A settling in which a write failed or met an editor's change ends without completing: the next one has a new term, and
the engine applies no write of an older one any more.

A process that counts votes marks the board as dirty, and deletes its mark once its votes are settled. The mark of a
killed process stays. Processes that read the board then settle it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from datastore.dynamo import ConditionFailed, Stale
from datastore.dynamo.concurrency import chunks
from datastore.dynamo.conditions import where
from datastore.jobs.leases import LeaseLost
from datastore.voting.boards import BOARD, Board
from datastore.voting.contenders import CONTENDER, Contender, all_contenders
from datastore.voting.tallies import read_contender_sums

if TYPE_CHECKING:
    from datetime import datetime

    from datastore.dynamo import Table
    from datastore.jobs.leases import Age, Held, Leases

_RESULTS_AT_ONCE = 99
"""Results in a transaction, beside the check of the term."""
_NO_VOTES = (0, 0, 0)

Sums: TypeAlias = Mapping[int, tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class BoardResults:
    """All results of a board in one of its states, by ordinal."""

    board: Board
    results: Mapping[int, Contender]
    scores: Sequence[int] = field(init=False)
    """The scores of the active contenders, ascending."""

    def __post_init__(self) -> None:
        scores = sorted(result.score for result in self.results.values() if not result.retired)
        object.__setattr__(self, "scores", scores)


async def read_board_results(table: Table, board: Board) -> BoardResults:
    return BoardResults(board, await all_contenders(table, board))


def settling_age(leases: Leases, board: Board) -> Age:
    """For how long nobody has begun or completed a settling of the board that was just read."""
    return leases.age(BOARD, board)


async def begin_settling(leases: Leases, board: Board) -> Held[Board] | None:
    """Begin the board's next settling. None if another process has begun or completed one since the board was read."""
    return await leases.acquire(BOARD, board)


async def settle(table: Table, lease: Held[Board], now: datetime, cached: BoardResults | None = None) -> BoardResults:
    """Carry out a settling that was begun, and return the results.

    LeaseLost if another one has begun meanwhile; Stale if an editor has changed a result: then begin another. `cached`
    results are used if nobody has settled or changed the board since.
    """
    board = lease.record
    if cached is not None and _is_current(cached.board, board):
        results = dict(cached.results)
    else:
        results = dict(await all_contenders(table, board))
    sums = await read_contender_sums(table, board)
    changed = list(_changed(results.values(), sums))
    for chunk in chunks(changed, _RESULTS_AT_ONCE):
        await _write_results(table, board, chunk)
        results.update((result.ordinal, result) for result in chunk)
    votes = sum(wins for wins, _, _ in sums.values()) + sum(ties for _, _, ties in sums.values()) // 2
    await lease.release(votes=votes, settled=board.term, settled_at=now)
    return BoardResults(lease.record, results)


def _is_current(cached: Board, begun: Board) -> bool:
    """Whether the settling at hand is the next one after the cached one, and no editor has changed anything."""
    return cached.settled == begun.settled == begun.term - 1 and cached.revision == begun.revision


def _changed(contenders: Iterable[Contender], sums: Sums) -> Iterator[Contender]:
    for contender in contenders:
        counts = sums.get(contender.ordinal, _NO_VOTES)
        if counts != contender.counts:
            wins, losses, ties = counts
            yield replace(contender, wins=wins, losses=losses, ties=ties, version=contender.version + 1)


async def _write_results(table: Table, board: Board, results: Sequence[Contender]) -> None:
    """Write results. LeaseLost if another settling has begun, Stale if an editor has changed one of the contenders."""
    check = BOARD.check(BOARD.item_key(board), where(term=board.term))
    fields = ("wins", "losses", "ties", "version")
    updates = [CONTENDER.update_with_indexes(each, *fields, when=where(version=each.version - 1)) for each in results]
    try:
        await table.transact(check, *updates)
    except ConditionFailed as failed:
        if failed.at(0):
            raise LeaseLost from None
        stored = [failed.stored(CONTENDER, position) for position in range(1, len(results) + 1)]
        if stored != list(results):  # otherwise this transaction wrote them, and the answer was lost
            raise Stale from None
