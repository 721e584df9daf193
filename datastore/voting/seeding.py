"""Seeding: writes a board with its contenders and votes in bulk, counted as if each vote had been cast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent
from datastore.dynamo.writes import Put
from datastore.values.shards import shard_of
from datastore.voting.boards import BLOCK_SIZE, BOARD, Board
from datastore.voting.contenders import CONTENDER, DETAILS, NAME, PICTURE, Contender, Details, Name, Picture
from datastore.voting.results import NO_VOTES, RESULTS, Counts, ResultsBlock
from datastore.voting.shards import shard_count
from datastore.voting.tallies import PAIR, TALLY, PairTally, Tally
from datastore.voting.votes import COUNTERS, VOTE, Vote

if TYPE_CHECKING:
    from datastore.dynamo import Table

_REQUEST_ID = "demo"


class Shown(NamedTuple):
    """What is shown about a seeded contender beside its name."""

    svg: str
    description: str


async def seed_board(
    table: Table, board: Board, contenders: Mapping[Contender, Shown], votes: Sequence[Vote], now: datetime
) -> bool:
    """Write a board with its contenders, what is shown about them, and their votes. False if the board exists already.

    The board is written last. Nothing else is visible without it, so an interrupted seeding can be repeated.
    """
    shards = shard_count(len(contenders), board.rate)
    votes = [replace(vote, shard=shard_of(vote.voter, shards)) for vote in votes]
    await table.write_many(_items(board.slug, contenders, votes))
    counted = replace(
        board,
        size=len(contenders),
        revision=len(contenders),
        votes=sum(vote.counts for vote in votes),
        read_shards=shards,
        term=1,
        settled=1,
        settled_at=now,
    )
    try:
        await table.write(BOARD.put(counted, when=absent()))
    except ConditionFailed:
        return False
    return True


def _tallies(board: str, votes: Sequence[Vote]) -> Iterator[Tally]:
    counts: dict[tuple[int, int], Counter[str]] = {}
    for vote in votes:
        if vote.counts:
            counters = COUNTERS[vote.verdict]
            counts.setdefault((vote.shard, vote.low), Counter())[counters.low] += 1
            counts.setdefault((vote.shard, vote.high), Counter())[counters.high] += 1
    return (Tally(board, shard, ordinal, **numbers) for (shard, ordinal), numbers in counts.items())


def _pair_tallies(board: str, votes: Sequence[Vote]) -> Iterator[PairTally]:
    counts: dict[tuple[int, int, int], Counter[str]] = {}
    for vote in votes:
        if vote.counts:
            counts.setdefault((vote.shard, vote.low, vote.high), Counter())[COUNTERS[vote.verdict].pair] += 1
    return (PairTally(board, shard, low, high, **numbers) for (shard, low, high), numbers in counts.items())


def _items(board: str, contenders: Mapping[Contender, Shown], votes: Sequence[Vote]) -> Iterator[Put]:
    tallies = list(_tallies(board, votes))
    for contender, shown in contenders.items():
        yield CONTENDER.put(contender)
        yield NAME.put(Name(board, contender.sort_name, contender.ordinal, _REQUEST_ID))
        yield PICTURE.put(Picture(board, contender.ordinal, shown.svg))
        yield DETAILS.put(Details(board, contender.ordinal, shown.description))
    yield from map(VOTE.put, votes)
    yield from map(TALLY.put, tallies)
    yield from map(PAIR.put, _pair_tallies(board, votes))
    yield from _results(board, len(contenders), tallies)


def _results(board: str, contenders: int, tallies: Sequence[Tally]) -> Iterator[Put]:
    sums: dict[int, Counts] = {}
    for tally in tallies:
        wins, losses, ties = sums.get(tally.ordinal, NO_VOTES)
        sums[tally.ordinal] = Counts(wins + tally.wins, losses + tally.losses, ties + tally.ties)
    for block in range(-(-contenders // BLOCK_SIZE)):
        yield RESULTS.put(ResultsBlock.of(board, block, sums))
