"""A board's results: the settled wins, losses and ties of its contenders, and the order that follows from them.

The results of 256 contenders are one item, so a settling writes two units for each kilobyte of them, however many have
changed, and a reader takes those of a whole board with one batch: three kilobytes for each 256 contenders.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import orjson

from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key, best_first
from datastore.voting.boards import BLOCK_SIZE
from datastore.voting.contenders import Contender

if TYPE_CHECKING:
    from datastore.dynamo import Table

BlockKey: TypeAlias = tuple[str, int]
"""A board's slug and the number of a block."""


class Counts(NamedTuple):
    """The votes on a contender."""

    wins: int = 0
    losses: int = 0
    ties: int = 0


NO_VOTES = Counts()


@dataclass(frozen=True, slots=True)
class CountedContender(Contender):
    """A contender with its settled counts."""

    wins: int = 0
    losses: int = 0
    ties: int = 0

    @property
    def score(self) -> int:
        return self.wins - self.losses

    @property
    def win_rate(self) -> float | None:
        decided = self.wins + self.losses
        return self.wins / decided if decided else None

    @property
    def place(self) -> str:
        """Its place in the order of the leaderboard, as text."""
        return f"{best_first(self.score)}#{self.place_by_name}"


def counted(contender: Contender, block: Sequence[Counts]) -> CountedContender:
    """A contender with its counts, which are in its block."""
    of, place = contender, contender.ordinal % BLOCK_SIZE
    counts = block[place] if place < len(block) else NO_VOTES
    return CountedContender(of.board, of.ordinal, of.name, of.created_at, of.retired, of.version, *counts)


@dataclass(frozen=True, slots=True)
class ResultsBlock:
    """The results of `BLOCK_SIZE` contenders in turn: three numbers each, as JSON, up to the last one with votes."""

    board: str
    block: int
    numbers: str = "[]"

    @classmethod
    def of(cls, board: str, block: int, sums: Mapping[int, Counts]) -> ResultsBlock:
        ordinals = range(block * BLOCK_SIZE, (block + 1) * BLOCK_SIZE)
        last = max((ordinal for ordinal in ordinals if sums.get(ordinal, NO_VOTES) != NO_VOTES), default=-1)
        numbers = [number for ordinal in ordinals if ordinal <= last for number in sums.get(ordinal, NO_VOTES)]
        return cls(board, block, orjson.dumps(numbers).decode())

    @property
    def counts(self) -> list[Counts]:
        """Those of the contenders up to the last one with votes."""
        numbers = orjson.loads(self.numbers)
        return list(map(Counts, numbers[::3], numbers[1::3], numbers[2::3]))


RESULTS = Entity(ResultsBlock, Key("RESULTS#{board}", "BLOCK#{block:02d}"))


async def read_results_blocks(table: Table, keys: Sequence[BlockKey]) -> Mapping[BlockKey, ResultsBlock]:
    """Blocks of results, by a consistent batch. One that nobody has written yet is empty."""
    found = await table.get_many([RESULTS.at(board=board, block=block) for board, block in keys], consistent=True)
    return {key: stored or ResultsBlock(*key) for key, stored in zip(keys, found, strict=True)}


class BoardResults:
    """The leaderboard of a board in one of its states. `by_name` has its contenders in the order of their names."""

    def __init__(self, by_name: Sequence[Contender], blocks: Sequence[Sequence[Counts]]) -> None:
        # A contender that joined after the board was read has no block yet, and no votes.
        active = (
            counted(each, blocks[each.block] if each.block < len(blocks) else ())
            for each in by_name
            if not each.retired
        )
        self._leaders = sorted(active, key=lambda each: -each.score)
        self._scores = [-each.score for each in self._leaders]

    def rank(self, score: int) -> int:
        """One more than the number of contenders with a higher score."""
        return 1 + bisect_left(self._scores, -score)

    def leaders(self, after: str | None, limit: int) -> list[CountedContender]:
        """Best first, then by name, from the first one or after a place."""
        start = 0 if after is None else bisect_right(self._leaders, after, key=lambda each: each.place)
        return self._leaders[start : start + limit]
