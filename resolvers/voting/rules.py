"""Who may vote on a board, and when: its electorate and its hours.

Both are judged from a state of the board that this process read at most `LEAD` ago, at each attempt to write a vote. So
a change holds everywhere within `LEAD`, also for ballots that were drawn before it, and a vote reads nothing for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from datastore.dynamo import Reads, iso
from datastore.people.profiles import read_profiles
from datastore.refusals import InvalidInput, Refusal
from datastore.voting.boards import Board, Electorate
from resolvers.requests.context import MEMBER_AGE, Context, Services, Unset

LEAD = timedelta(seconds=10)


class MayNotVote(Refusal):
    """Nobody may vote on the board now, or this viewer may not."""


# ── hours ──


class VotingClosed(MayNotVote):
    code = "LOCKED"
    explanation = "Voting on this board is closed."


def is_open(board: Board, now: datetime) -> bool:
    has_begun = board.opens_at is None or board.opens_at <= now
    return has_begun and not is_over(board, now)


def is_over(board: Board, now: datetime) -> bool:
    return board.closes_at is not None and board.closes_at <= now


def _require_open(board: Board, now: datetime, path: tuple[str, ...]) -> None:
    if is_open(board, now):
        return
    if board.opens_at is not None and now < board.opens_at:
        seconds = (board.opens_at - now).total_seconds()
        raise VotingClosed(f"Voting on this board opens at {iso(board.opens_at)}.", path=path, retry_after=seconds)
    if board.closes_at is not None:
        raise VotingClosed(f"Voting on this board ended at {iso(board.closes_at)}.", path=path)


def with_hours(board: Board, opens_at: datetime | Unset | None, closes_at: datetime | Unset | None) -> Board:
    """The board with new hours; what is unset stays as it is."""
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
            can = name.removesuffix("sAt")
            raise InvalidInput(f"Voting can {can} in {LEAD.seconds} seconds at the earliest.", path=("input", name))
    if board.opens_at is not None and board.closes_at is not None and board.closes_at <= board.opens_at:
        raise InvalidInput("Voting must close later than it opens.", path=("input", "closesAt"))


# ── electorate ──


class SignInToVote(MayNotVote):
    code = "NOT_SIGNED_IN"
    explanation = "Only members may vote on this board. Sign in first."


class NotAnElector(MayNotVote):
    code = "NOT_ALLOWED"


def with_electorate(board: Board, electorate: Electorate | None, members_since: datetime | Unset | None) -> Board:
    """The board with a new electorate; what is not given stays, except a date that a board for everybody has not."""
    electorate = electorate or board.electorate
    kept = board.members_since if electorate is Electorate.MEMBERS else None
    since = kept if isinstance(members_since, Unset) else members_since
    return replace(board, electorate=electorate, members_since=since)


def validate_electorate(board: Board) -> None:
    if board.members_since is not None and board.electorate is not Electorate.MEMBERS:
        raise InvalidInput(
            "How long somebody has been a member matters only where members vote. Let members vote, or name no time.",
            path=("input", "membersSince"),
        )


class Joined:
    """When members joined who have signed in and are no guests: from then on it never changes.

    A profile that was kept from before would name too early a moment, so these are read for themselves.
    """

    def __init__(self, services: Services) -> None:
        self._table = services.table
        self.moments: Reads[str, datetime] = services.cache.batches("joined", self._read, age=MEMBER_AGE)

    async def _read(self, users: Sequence[str]) -> Mapping[str, datetime]:
        profiles = await read_profiles(self._table, users, consistent=True)
        return {user: profile.joined_at for user, profile in profiles.items()}


async def joined_at(ctx: Context, board: Board) -> datetime | None:
    """When the viewer joined, as far as the board asks for it; None for others and guests, of whom anybody makes many.

    It is in memory by the time somebody votes whose draw this process has answered.
    """
    if not ctx.viewer.is_member or ctx.viewer.is_guest:
        return None
    if board.members_since is not None:
        return await ctx.services.get(Joined).moments.load(ctx.viewer.id) or ctx.now()
    profile = await ctx.services.profiles.load(ctx.viewer.id, MEMBER_AGE)
    return ctx.now() if profile is None else profile.joined_at


def _require_elector(board: Board, joined: datetime | None, path: tuple[str, ...]) -> None:
    if board.electorate is Electorate.EVERYBODY:
        return
    if joined is None:
        raise SignInToVote(path=path)
    if board.members_since is not None and joined > board.members_since:
        raise NotAnElector(
            f"Only members who joined by {iso(board.members_since)} may vote on this board; you joined later.",
            path=path,
        )


def require_may_vote(board: Board, now: datetime, joined: datetime | None, path: tuple[str, ...]) -> None:
    """MayNotVote if the board is closed, or if the viewer, who joined at a time, is not in its electorate.

    Nobody is asked to sign in for a vote that is over.
    """
    if not is_over(board, now):
        _require_elector(board, joined, path)
    _require_open(board, now, path)
