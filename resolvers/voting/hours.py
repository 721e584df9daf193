"""A board's hours: it takes votes from `opens_at` until just before `closes_at`, by the clock of each process.

A vote does not read the board. It is judged by a state that this process read a few seconds ago, at each attempt to
write it (see `ballots`). A change of hours must lie `LEAD` ahead, which is longer, so every process knows it in time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from datastore.dynamo import iso
from datastore.refusals import InvalidInput, Refusal
from datastore.voting import Board
from resolvers.requests.context import Unset

LEAD = timedelta(seconds=10)


class VotingClosed(Refusal):
    code = "LOCKED"
    explanation = "Voting on this board is closed."


def is_open(board: Board, now: datetime) -> bool:
    has_begun = board.opens_at is None or board.opens_at <= now
    return has_begun and (board.closes_at is None or now < board.closes_at)


def require_open(board: Board, now: datetime, path: tuple[str, ...]) -> None:
    if is_open(board, now):
        return
    if board.opens_at is not None and now < board.opens_at:
        seconds = (board.opens_at - now).total_seconds()
        raise VotingClosed(f"Voting on this board opens at {iso(board.opens_at)}.", path=path, retry_after=seconds)
    if board.closes_at is not None:
        raise VotingClosed(f"Voting on this board ended at {iso(board.closes_at)}.", path=path)


def with_hours(board: Board, opens_at: datetime | Unset | None, closes_at: datetime | Unset | None) -> Board:
    """The board with other hours; what is unset stays."""
    return replace(
        board,
        opens_at=board.opens_at if isinstance(opens_at, Unset) else opens_at,
        closes_at=board.closes_at if isinstance(closes_at, Unset) else closes_at,
    )


def validate_hours(board: Board, before: Board | None, now: datetime) -> None:
    """Refuse new times that come too soon or in the wrong order. A time that stays as it is may have passed."""
    for name, stored_name in (("opensAt", "opens_at"), ("closesAt", "closes_at")):
        moment = getattr(board, stored_name)
        if moment is not None and moment < now + LEAD and (before is None or moment != getattr(before, stored_name)):
            raise InvalidInput(
                f"`{name}` must lie at least {LEAD.seconds} seconds ahead, so that it holds everywhere from then on.",
                path=("input", name),
            )
    if board.opens_at is not None and board.closes_at is not None and board.closes_at <= board.opens_at:
        raise InvalidInput("`closesAt` must be later than `opensAt`.", path=("input", "closesAt"))
