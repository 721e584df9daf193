"""Seeding: a whole board with its contenders and votes in bulk, counted as if each vote had been cast on its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed, Put, absent
from datastore.voting.boards import BOARD, Board
from datastore.voting.contenders import CONTENDER, NAME, PICTURE, Contender, Name, Picture
from datastore.voting.tallies import PAIR, TALLY, PairTally, Tally, shard_of, shards_for
from datastore.voting.votes import VOTE, Outcome, Vote

if TYPE_CHECKING:
    from datastore.dynamo import Table

_MARK = "demo"
_COUNTERS = {Outcome.LOW: ("w", "l"), Outcome.HIGH: ("l", "w"), Outcome.TIE: ("t", "t")}


async def seed_board(
    table: Table, board: Board, contenders: Mapping[Contender, str], votes: Sequence[Vote], now: datetime
) -> bool:
    """Writes a board with its contenders, their pictures and their votes. False if there is such a board already.

    The board is written last: without it nothing else is visible, so an interrupted seeding can be repeated.
    """
    shards = shards_for(len(contenders), board.rate)
    votes = [replace(vote, shard=shard_of(vote.voter, shards)) for vote in votes]
    await table.write_many(_items(board.slug, contenders, votes))
    counted = replace(
        board,
        size=len(contenders),
        revision=len(contenders),
        votes=sum(vote.counts for vote in votes),
        settled=1,
        settled_at=now,
        spread=shards,
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
            for ordinal, counter in zip((vote.low, vote.high), _COUNTERS[vote.verdict], strict=True):
                counts.setdefault((vote.shard, ordinal), Counter())[counter] += 1
    return (Tally(board, *place, counter["w"], counter["l"], counter["t"]) for place, counter in counts.items())


def _pair_tallies(board: str, votes: Sequence[Vote]) -> Iterator[PairTally]:
    counts: dict[tuple[int, int, int], Counter[str]] = {}
    for vote in votes:
        if vote.counts:
            counts.setdefault((vote.shard, vote.low, vote.high), Counter())[vote.verdict.value] += 1
    return (PairTally(board, *pair, counter["lo"], counter["hi"], counter["t"]) for pair, counter in counts.items())


def _items(board: str, contenders: Mapping[Contender, str], votes: Sequence[Vote]) -> Iterator[Put]:
    tallies = list(_tallies(board, votes))
    for contender, svg in contenders.items():
        yield CONTENDER.put(_settled(contender, tallies))
        yield NAME.put(Name(board, contender.sort_name, contender.ordinal, _MARK))
        yield PICTURE.put(Picture(board, contender.ordinal, svg))
    yield from map(VOTE.put, votes)
    yield from map(TALLY.put, tallies)
    yield from map(PAIR.put, _pair_tallies(board, votes))


def _settled(contender: Contender, tallies: Sequence[Tally]) -> Contender:
    own = [tally for tally in tallies if tally.ordinal == contender.ordinal]
    return replace(
        contender,
        wins=sum(tally.w for tally in own),
        losses=sum(tally.l for tally in own),
        ties=sum(tally.t for tally in own),
    )
