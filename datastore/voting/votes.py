"""Votes: each its own record, in one transaction with what it counts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed, Entity, Key, absent, present, where
from datastore.voting.pair_walk import PairWalk
from datastore.voting.tallies import PAIR, TALLY, shard_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from datastore.dynamo import Table, Update
    from datastore.voting.ballots import Ballot
    from datastore.voting.boards import Board

AT_ONCE = 4
"""Votes voided at a time: they share a shard, so more would only meet each other."""


class Outcome(StrEnum):
    """What was said of a pair, by its ordinals: the values are the names of the pair's counters."""

    LOW = "lo"
    HIGH = "hi"
    TIE = "t"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Vote:
    """One verdict of one voter on one board, the `number`-th; `walk` is where the voter stands behind it."""

    voter: str
    board: str
    number: int
    low: int
    high: int
    verdict: Outcome
    at: datetime
    walk: bytes
    shard: int = 0
    void: bool = False

    @property
    def counts(self) -> bool:
        return self.verdict is not Outcome.SKIP and not self.void

    def pair_walk(self) -> PairWalk:
        return PairWalk.unpacked(self.walk)


VOTE = Entity(Vote, Key("VOTER#{voter}#{board}", "VOTE#{number:010d}"))


def vote_on(ballot: Ballot, board: Board, verdict: Outcome, now: datetime) -> Vote:
    """The vote of a ballot's voter, to be counted in that voter's shard."""
    shard = shard_for(ballot.voter, board)
    return Vote(ballot.voter, ballot.board, ballot.number, ballot.low, ballot.high, verdict, now, ballot.walk, shard)


async def latest_vote(table: Table, voter: str, board: str) -> Vote | None:
    found = await table.query(VOTE.on(voter=voter, board=board).newest_first(), limit=1, consistent=True)
    return found.records[0] if found.records else None


def all_votes(table: Table) -> AsyncIterator[Vote]:
    """Of all boards, in the order of the table."""
    return table.scan(VOTE)


def counting(vote: Vote, by: int = 1) -> tuple[Update, ...]:
    """What a vote adds to the two contenders and to their pair, in its shard. A skip adds nothing."""
    if vote.verdict is Outcome.SKIP:
        return ()
    board, shard, low, high = vote.board, vote.shard, vote.low, vote.high
    of_low, of_high = {Outcome.LOW: ("w", "l"), Outcome.HIGH: ("l", "w"), Outcome.TIE: ("t", "t")}[vote.verdict]
    return (
        TALLY.change(TALLY.at(board=board, shard=shard, ordinal=low), add={of_low: by}),
        TALLY.change(TALLY.at(board=board, shard=shard, ordinal=high), add={of_high: by}),
        PAIR.change(PAIR.at(board=board, shard=shard, low=low, high=high), add={vote.verdict.value: by}),
    )


async def cast(table: Table, vote: Vote) -> Vote:
    """Counts the vote, once: the vote itself, or the one that was there under its number."""
    try:
        await table.transact(VOTE.put(vote, when=absent()), *counting(vote))
    except ConditionFailed as failed:
        there = failed.failures.get(0)
        return VOTE.read(there) if there else vote
    return vote


async def void_votes(table: Table, voter: str, board: str) -> int:
    """Takes back every counted vote of a voter; how many this call took back."""
    taken, batch = 0, list[Vote]()
    async for vote in table.iterate(VOTE.on(voter=voter, board=board), consistent=True):
        if vote.counts:
            batch.append(vote)
        if len(batch) == AT_ONCE:
            taken, batch = taken + await _take_back(table, batch), []
    return taken + await _take_back(table, batch)


async def _take_back(table: Table, votes: list[Vote]) -> int:
    return sum(await asyncio.gather(*(_voided(table, vote) for vote in votes)))


async def _voided(table: Table, vote: Vote) -> int:
    mark = VOTE.change(
        VOTE.place_of(vote), values={"void": True}, when=present() & (absent("void") | where(void=False))
    )
    try:
        await table.transact(mark, *counting(vote, by=-1))
    except ConditionFailed as failed:
        # Without an answer to an earlier attempt, that attempt may be the one that marked it.
        return 1 if failed.doubtful else 0
    return 1
