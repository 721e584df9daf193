"""The board `main`: two dozen masks, and what forty members think of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from math import exp
from random import Random

from datastore import voting
from datastore.dynamo import ConditionFailed, Put, absent
from datastore.voting import (
    BOARD,
    CONTENDER,
    MAIN,
    NAME,
    PAIR,
    PICTURE,
    TALLY,
    VOTE,
    Board,
    Contender,
    Name,
    Outcome,
    PairTally,
    Picture,
    Tally,
    Vote,
)
from datastore.voting.pair_walk import EligibleContenders, PairWalk
from resolvers.context import Services
from resolvers.voting.ballots import seed_of
from server.demo.masks import MASKS, drawing
from server.demo.people import MEMBERS

VOTERS = 40
VOTES_EACH = 18


async def plant(services: Services) -> str:
    """The board comes last: without it nothing is there, and an interrupted planting begins again."""
    if await voting.board_now(services.table, MAIN, consistent=True) is not None:
        return "no masks: the board main is in use"
    now = services.clock()
    votes = list(_votes(now))
    counted = [vote for vote in votes if vote.counts]
    spread = voting.shards_for(len(MASKS), Board(MAIN, "", now).rate)
    tallies, pairs = _tallies(counted)
    rows = [_settled(row, tallies) for row in _contenders(now)]
    await services.table.write_many(_items(rows, votes, tallies, pairs))
    board = Board(
        MAIN, "Which mask wins?", now - timedelta(days=30),
        size=len(MASKS), revision=len(MASKS), votes=len(counted), settled=1, settled_at=now, spread=spread,
    )  # fmt: skip
    try:
        await services.table.write(BOARD.put(board, when=absent()))
    except ConditionFailed:
        return "no masks: somebody has just made a board main"
    return f"{len(MASKS)} masks and {len(votes)} verdicts on them"


def _contenders(now: datetime) -> Iterator[Contender]:
    for ordinal, mask in enumerate(MASKS):
        yield Contender(MAIN, ordinal, mask.name, now - timedelta(days=30 - ordinal))


def _votes(now: datetime) -> Iterator[Vote]:
    """Every member has a taste of their own around a common one."""
    chance = Random("masks")
    common = [chance.gauss(0, 0.9) for _ in MASKS]
    eligible = EligibleContenders(len(MASKS))
    shards = voting.shards_for(len(MASKS), Board(MAIN, "", now).rate)
    for voter, _ in MEMBERS[:VOTERS]:
        taste = [liked + chance.gauss(0, 0.5) for liked in common]
        walk = PairWalk()
        for number in range(1, VOTES_EACH + 1):
            step = walk.draw(seed_of(voter, MAIN), eligible)
            if step is None:
                return
            outcome = _verdict(chance, taste[step.low] - taste[step.high])
            at = now - timedelta(days=20, minutes=-37 * number)
            shard = voting.shard_of(voter, shards)
            yield Vote(voter, MAIN, number, step.low, step.high, outcome, at, step.after.packed(), shard)
            walk = step.after


def _verdict(chance: Random, lead: float) -> Outcome:
    said = chance.random()
    if said < 0.06:  # noqa: PLR2004 - six in a hundred cannot say
        return Outcome.SKIP
    if said < 0.14:  # noqa: PLR2004 - eight in a hundred like both
        return Outcome.TIE
    return Outcome.LOW if chance.random() < 1 / (1 + exp(-lead)) else Outcome.HIGH


def _tallies(votes: list[Vote]) -> tuple[Counter[tuple[int, int, str]], Counter[tuple[int, int, int, str]]]:
    """Per shard and contender, and per shard and pair."""
    tallies, pairs = Counter[tuple[int, int, str]](), Counter[tuple[int, int, int, str]]()
    for vote in votes:
        of_low, of_high = {"lo": ("w", "l"), "hi": ("l", "w"), "t": ("t", "t")}[vote.verdict.value]
        tallies[vote.shard, vote.low, of_low] += 1
        tallies[vote.shard, vote.high, of_high] += 1
        pairs[vote.shard, vote.low, vote.high, vote.verdict.value] += 1
    return tallies, pairs


def _settled(row: Contender, tallies: Counter[tuple[int, int, str]]) -> Contender:
    wins, losses, ties = (
        sum(times for (_, one, kept), times in tallies.items() if (one, kept) == (row.ordinal, letter))
        for letter in ("w", "l", "t")
    )
    return replace(row, wins=wins, losses=losses, ties=ties)


def _items(
    rows: list[Contender],
    votes: list[Vote],
    tallies: Counter[tuple[int, int, str]],
    pairs: Counter[tuple[int, int, int, str]],
) -> Iterator[Put]:
    for row, mask in zip(rows, MASKS, strict=True):
        yield CONTENDER.put(row)
        yield NAME.put(Name(MAIN, row.sort_name, row.ordinal, "demo"))
        yield PICTURE.put(Picture(MAIN, row.ordinal, drawing(mask)))
    for vote in votes:
        yield VOTE.put(vote)
    for shard, ordinal in {(shard, ordinal) for shard, ordinal, _ in tallies}:
        counts = (tallies[shard, ordinal, name] for name in ("w", "l", "t"))
        yield TALLY.put(Tally(MAIN, shard, ordinal, *counts))
    for shard, low, high in {(shard, low, high) for shard, low, high, _ in pairs}:
        counts = (pairs[shard, low, high, name] for name in ("lo", "hi", "t"))
        yield PAIR.put(PairTally(MAIN, shard, low, high, *counts))
