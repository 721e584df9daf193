"""Contenders, their unique names, their details and pictures; and the results that are settled for them.

Contenders lie in blocks of 256 that each have a partition key of their own, in the order of joining. Their results lie
in blocks of the same size. Details and pictures are items of their own, so reading all contenders costs the same with
and without them.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias

import orjson

from datastore.dynamo import Page, PageRequest, Table, Window
from datastore.dynamo.entity import Entity, ItemKey, Key, best_first
from datastore.values import folding
from datastore.voting.boards import BLOCK_SIZE, Board

# ── contenders ──

ContenderKey: TypeAlias = tuple[str, int]
"""A board's slug and a contender's ordinal."""


def folded_for_keys(name: str) -> str:
    """A name in the form that is compared, without `#`, which is reserved in keys."""
    return folding.folded(name).replace("#", "＃")


@dataclass(frozen=True, slots=True)
class Contender:
    """Someone or something to vote for. `version` counts writes."""

    board: str
    ordinal: int
    name: str
    created_at: datetime
    retired: bool = False
    version: int = 0

    @property
    def revision(self) -> int:
        return self.version

    @property
    def node_key(self) -> str:
        return f"{self.board}/{self.ordinal}"

    @property
    def block(self) -> int:
        return self.ordinal // BLOCK_SIZE

    @property
    def sort_name(self) -> str:
        return folded_for_keys(self.name)

    @property
    def place_by_name(self) -> str:
        """Its place in the order of the names. No other contender of its board has the same."""
        return f"{self.sort_name}#{self.ordinal:06d}"


@dataclass(frozen=True, slots=True)
class Name:
    """Reserves a name for one contender of a board, on behalf of one request."""

    board: str
    folded: str
    ordinal: int
    request_id: str


@dataclass(frozen=True, slots=True)
class Details:
    """What is shown about a contender besides its name."""

    board: str
    ordinal: int
    description: str | None = None
    link: str | None = None
    image_url: str | None = None

    @property
    def is_empty(self) -> bool:
        return self.description is None and self.link is None and self.image_url is None


@dataclass(frozen=True, slots=True)
class ImportedName:
    """The name under which an import added a contender. It stays when the contender is renamed."""

    board: str
    folded: str
    ordinal: int


@dataclass(frozen=True, slots=True)
class Picture:
    board: str
    ordinal: int
    svg: str


CONTENDER = Entity(Contender, Key("CONTENDERS#{board}#{block}", "CONTENDER#{ordinal:06d}"))
NAME = Entity(Name, Key("BOARD#{board}", "NAME#{folded}"))
IMPORTED_NAME = Entity(ImportedName, Key("BOARD#{board}", "IMPORTED#{folded}"))
DETAILS = Entity(Details, Key("BOARD#{board}", "DETAILS#{ordinal:06d}"))
PICTURE = Entity(Picture, Key("BOARD#{board}", "SVG#{ordinal:06d}"))


async def read_contender(table: Table, board: str, ordinal: int) -> Contender | None:
    """A contender, by a consistent read."""
    return await table.get(contender_key(board, ordinal), consistent=True)


async def read_contenders(table: Table, keys: Sequence[ContenderKey]) -> Mapping[ContenderKey, Contender]:
    """The contenders that exist, by board and ordinal."""
    contenders = await table.find_many([contender_key(board, ordinal) for board, ordinal in keys])
    return {(contender.board, contender.ordinal): contender for contender in contenders}


def contender_key(board: str, ordinal: int) -> ItemKey[Contender]:
    return CONTENDER.at(board=board, block=ordinal // BLOCK_SIZE, ordinal=ordinal)


def contenders_request(board: str, window: Window) -> PageRequest:
    return window.open(f"contenders {board}")


async def read_contenders_page(table: Table, board: Board, request: PageRequest) -> Page[Contender]:
    """In joining order, including retired ones. Only the blocks that the page may lie in are read."""
    first = 0 if request.position is None else int(request.position.rpartition("#")[2])
    last = min(first + request.wanted, board.size)
    blocks = range(first // BLOCK_SIZE, last // BLOCK_SIZE + 1)
    return await table.page([CONTENDER.on(board=board.slug, block=block) for block in blocks], request)


def leaderboard_request(board: str, window: Window) -> PageRequest:
    return window.open(f"leaderboard {board}")


async def all_contenders(table: Table, board: str, blocks: int) -> Mapping[int, Contender]:
    """All contenders of a board, including retired ones, by ordinal; consistent reads."""

    async def read_block(block: int) -> list[Contender]:
        contenders = CONTENDER.on(board=board, block=block)
        return [contender async for contender in table.iterate(contenders, consistent=True, at_once=BLOCK_SIZE + 1)]

    read = await asyncio.gather(*map(read_block, range(blocks)))
    return {contender.ordinal: contender for block in read for contender in block}


async def read_known_names(table: Table, board: str) -> frozenset[str]:
    """The folded names that contenders have, and those under which imports have added some; consistent reads."""
    names = {name.folded async for name in table.iterate(NAME.on(board=board), consistent=True, at_once=1000)}
    imported = table.iterate(IMPORTED_NAME.on(board=board), consistent=True, at_once=1000)
    return frozenset(names | {name.folded async for name in imported})


async def read_details(table: Table, keys: Sequence[ContenderKey]) -> Mapping[ContenderKey, Details]:
    """The details of contenders that have some, by board and ordinal; consistent reads of half a kilobyte."""
    wanted = [DETAILS.at(board=board, ordinal=ordinal) for board, ordinal in keys]
    return {(one.board, one.ordinal): one for one in await table.find_many(wanted, consistent=True)}


async def read_pictures(table: Table, keys: Sequence[ContenderKey]) -> Mapping[ContenderKey, str]:
    """The pictures that exist, by board and ordinal."""
    pictures = await table.find_many([PICTURE.at(board=board, ordinal=ordinal) for board, ordinal in keys])
    return {(picture.board, picture.ordinal): picture.svg for picture in pictures}


# ── results ──
# A board's results: the settled wins, losses and ties of its contenders, and the order that follows from them.
#
# The results of 256 contenders are one item, so a settling writes two units for each kilobyte of them, however many
# have changed, and a reader takes those of a whole board with one batch: three kilobytes for each 256 contenders.

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
        """The counts of the contenders up to the last one with votes."""
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
        self._places: dict[int, str] = {}

    def rank(self, score: int) -> int:
        """One more than the number of contenders with a higher score."""
        return 1 + bisect_left(self._scores, -score)

    def place(self, leader: CountedContender) -> str:
        """Its place in the order, as text that is made once: folding a name costs more than a row of the answer."""
        place = self._places.get(leader.ordinal)
        if place is None:
            place = self._places[leader.ordinal] = leader.place
        return place

    def leaders(self, after: str | None, limit: int) -> list[CountedContender]:
        """Best first, then by name, from the first one or after a place."""
        start = 0 if after is None else bisect_right(self._leaders, after, key=lambda each: each.place)
        return self._leaders[start : start + limit]
