"""Votes: each is a record of its own, written in one transaction with the counters it adds to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.voting.ballots import Verdict
from datastore.voting.pair_walk import PairWalk
from datastore.voting.shards import voter_shard
from datastore.voting.tallies import PAIR, TALLY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from datastore.dynamo import Table
    from datastore.dynamo.writes import Update
    from datastore.voting.ballots import Ballot
    from datastore.voting.boards import Board

_VOIDED_AT_ONCE = 4
"""The votes of one voter share a shard, so more transactions at a time would only conflict with each other."""


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
    """One verdict of one voter on one board, the `number`-th. `walk` is the voter's pair walk after this pair."""

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

    @property
    def counts(self) -> bool:
        return self.verdict is not PairVerdict.SKIP and not self.void

    def pair_walk(self) -> PairWalk:
        return PairWalk.unpacked(self.walk)


VOTE = Entity(Vote, Key("VOTER#{voter}#{board}", "VOTE#{number:010d}"))


def vote_on(ballot: Ballot, board: Board, verdict: Verdict, now: datetime) -> Vote:
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
        shard=voter_shard(ballot.voter, board.write_shards),
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
        TALLY.change(TALLY.at(board=board, shard=shard, ordinal=low), add={counters.low: by}),
        TALLY.change(TALLY.at(board=board, shard=shard, ordinal=high), add={counters.high: by}),
        PAIR.change(PAIR.at(board=board, shard=shard, low=low, high=high), add={counters.pair: by}),
    )


async def cast(table: Table, vote: Vote) -> Vote:
    """Count a vote once. Return the stored vote of its number: this one, or an earlier one."""
    try:
        await table.transact(VOTE.put(vote, when=absent()), *counter_updates(vote))
    except ConditionFailed as failed:
        stored_item = failed.failures.get(0)
        return VOTE.read(stored_item) if stored_item else vote
    return vote


async def void_votes(table: Table, voter: str, board: str) -> int:
    """Void every counted vote of a voter; return how many this call voided."""
    voided, batch = 0, list[Vote]()
    async for vote in table.iterate(VOTE.on(voter=voter, board=board), consistent=True):
        if vote.counts:
            batch.append(vote)
        if len(batch) == _VOIDED_AT_ONCE:
            voided, batch = voided + await _void_batch(table, batch), []
    return voided + await _void_batch(table, batch)


async def _void_batch(table: Table, votes: list[Vote]) -> int:
    return sum(await asyncio.gather(*(_void(table, vote) for vote in votes)))


async def _void(table: Table, vote: Vote) -> bool:
    """Void one vote; return whether this call did it."""
    not_void = present() & (absent("void") | where(void=False))
    set_void = VOTE.change(VOTE.item_key(vote), values={"void": True}, when=not_void)
    try:
        await table.transact(set_void, *counter_updates(vote, by=-1))
    except ConditionFailed as failed:
        # After an attempt without an answer, that attempt may have voided the vote.
        return failed.doubtful
    return True
