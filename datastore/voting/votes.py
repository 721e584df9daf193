"""Votes: each is a record of its own, written in one transaction with the counters it adds to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from datastore.changes.kinds import Kind
from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.values.shards import shard_of
from datastore.voting.ballots import Verdict
from datastore.voting.pair_walk import PairWalk
from datastore.voting.tallies import PAIR, TALLY, PairTally

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table
    from datastore.dynamo.writes import Update, Write
    from datastore.voting.ballots import Ballot
    from datastore.voting.boards import Board


class PairVerdict(StrEnum):
    """The verdict on a pair by its ordinals, whichever was shown on the left."""

    LOW_WINS = "lo"
    HIGH_WINS = "hi"
    TIE = "t"
    SKIP = "skip"


class Counters(NamedTuple):
    """The fields that a vote adds to: in the tallies of the lower and the higher ordinal, and in that of the pair."""

    low: str
    high: str
    pair: str


COUNTERS: Mapping[PairVerdict, Counters] = {
    PairVerdict.LOW_WINS: Counters("wins", "losses", "low_wins"),
    PairVerdict.HIGH_WINS: Counters("losses", "wins", "high_wins"),
    PairVerdict.TIE: Counters("ties", "ties", "ties"),
}


@dataclass(frozen=True, slots=True)
class Vote:
    """One verdict of one voter on one board, the `number`-th. `walk` is the voter's pair walk after this pair.

    `origin` names the `Origin` item that knows the address it came from, until that item expires.
    """

    voter: str
    board: str
    number: int
    low: int
    high: int
    verdict: PairVerdict
    at: datetime
    walk: bytes
    shard: int = 0
    void: bool = False
    origin: str | None = None

    @property
    def counts(self) -> bool:
        return self.verdict is not PairVerdict.SKIP and not self.void

    def pair_walk(self) -> PairWalk:
        return PairWalk.unpacked(self.walk)


VOTE = Entity(Vote, Key("VOTER#{voter}#{board}", "VOTE#{number:010d}"))


def vote_on(ballot: Ballot, board: Board, verdict: Verdict, now: datetime, origin: str | None = None) -> Vote:
    """The vote that a verdict on a ballot makes."""
    return Vote(
        voter=ballot.voter,
        board=ballot.board,
        number=ballot.number,
        low=min(ballot.left, ballot.right),
        high=max(ballot.left, ballot.right),
        verdict=_pair_verdict(verdict, left_is_low=ballot.left < ballot.right),
        at=now,
        walk=ballot.walk,
        shard=shard_of(ballot.voter, board.write_shards),
        origin=origin,
    )


def _pair_verdict(verdict: Verdict, *, left_is_low: bool) -> PairVerdict:
    match verdict:
        case Verdict.TIE:
            return PairVerdict.TIE
        case Verdict.SKIP:
            return PairVerdict.SKIP
        case Verdict.LEFT | Verdict.RIGHT:
            return PairVerdict.LOW_WINS if (verdict is Verdict.LEFT) == left_is_low else PairVerdict.HIGH_WINS


async def read_latest_vote(table: Table, voter: str, board: str) -> Vote | None:
    newest = await table.query(VOTE.on(voter=voter, board=board).newest_first(), limit=1, consistent=True)
    return newest.records[0] if newest.records else None


async def read_seen_pairs(table: Table, voter: str, board: str, cycle: int) -> frozenset[tuple[int, int]]:
    """The pairs that a voter has voted on or skipped in their present cycle, as lower and higher ordinal."""
    pairs: set[tuple[int, int]] = set()
    newest_first = VOTE.on(voter=voter, board=board).newest_first()
    async for vote in table.iterate(newest_first, consistent=True, at_once=1000):
        if vote.pair_walk().cycle != cycle:
            break
        pairs.add((vote.low, vote.high))
    return frozenset(pairs)


def all_votes(table: Table) -> AsyncIterator[Vote]:
    """The votes on all boards, in the order of the table."""
    return table.scan(VOTE)


def counter_updates(vote: Vote, by: int = 1) -> tuple[Update, ...]:
    """The updates of the two contenders' tallies and of their pair's, in the vote's shard. A skip has none."""
    if vote.verdict is PairVerdict.SKIP:
        return ()
    board, shard, low, high = vote.board, vote.shard, vote.low, vote.high
    counters = COUNTERS[vote.verdict]
    return (
        TALLY.update(TALLY.at(board=board, shard=shard, ordinal=low), add={counters.low: by}),
        TALLY.update(TALLY.at(board=board, shard=shard, ordinal=high), add={counters.high: by}),
        PAIR.update(PAIR.at(board=board, shard=shard, low=low, high=high), add={counters.pair: by}),
    )


def with_vote(record: PairTally, vote: Vote) -> PairTally:
    """The head-to-head record of a vote's pair with one more vote."""
    if vote.verdict is PairVerdict.SKIP:
        return record
    counter = COUNTERS[vote.verdict].pair
    return replace(record, **{counter: getattr(record, counter) + 1})


def vote_occurrence(unit: UnitOfWork, kind: Kind, vote: Vote) -> tuple[Write, ...]:
    return unit.occurred(kind, f"Vote:{vote.board}:{vote.number}:{vote.voter}", about=vote.voter)


async def read_vote(table: Table, voter: str, board: str, number: int) -> Vote | None:
    return await table.get(VOTE.at(voter=voter, board=board, number=number), consistent=True)


async def cast(table: Table, vote: Vote, unit: UnitOfWork) -> Vote:
    """Count a vote once. Return the stored vote of its number: this one, or an earlier one.

    It is recorded in the journal only if a webhook wants votes.
    """
    try:
        occurrence = vote_occurrence(unit, Kind.VOTE_CAST, vote)
        await unit.apply(table, VOTE.put(vote, when=absent()), *counter_updates(vote), *occurrence)
    except ConditionFailed as failed:
        return failed.stored(VOTE) or vote
    return vote
