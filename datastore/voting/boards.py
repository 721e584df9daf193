"""Boards: where contenders meet, and the marks of the processes that vote there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from datastore.dynamo import ConditionFailed, Entity, Key, Page, Partition, absent
from datastore.refusals import Conflict
from datastore.voting.pair_walk import EligibleContenders, pair_count_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from datastore.dynamo import Table, Window
    from datastore.receipts import Once

MAIN = "main"
"""The board that is meant when none is named. The first contender added to it brings it into being."""

USUAL_RATE = 600
"""Votes a second that a board's shards are reckoned for unless an operator knows better."""

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")


def is_slug(text: str) -> bool:
    return _SLUG.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Board:
    """A board. `size` ordinals were given out so far; `retired` has a bit, in hexadecimal, for each that left.

    `revision` counts changes of who stands on it, `settled` those of what is settled; both together name one state
    of its contenders. Readers sum `spread` shards; it only grows.
    """

    slug: str
    title: str
    created_at: datetime
    size: int = 0
    retired: str = ""
    revision: int = 0
    votes: int = 0
    settled: int = 0
    settled_at: datetime | None = None
    spread: int = 1
    rate: int = USUAL_RATE

    @property
    def node_key(self) -> str:
        return self.slug

    @property
    def eligible(self) -> EligibleContenders:
        return EligibleContenders(self.size, int(self.retired or "0", 16))

    @property
    def contender_count(self) -> int:
        return len(self.eligible)

    @property
    def pair_count(self) -> int:
        return pair_count_of(len(self.eligible))

    @property
    def stamp(self) -> tuple[int, int]:
        return (self.revision, self.settled)


@dataclass(frozen=True, slots=True)
class DirtyMark:
    """A process may have counted votes, until a moment, that it has not settled yet."""

    board: str
    process: str
    until: datetime


BOARD = Entity(Board, Key("BOARD#{slug}", "BOARD"), gsi1=Key("BOARDS", "{slug}"))
# Beside its board in the order of keys, so that one query reads both.
STIRRING = Entity(DirtyMark, Key("BOARD#{board}", "BOARD#STIRRED#{process}"))


@dataclass(frozen=True, slots=True)
class BoardNow:
    """A board and the marks of those who vote on it."""

    board: Board
    stirrings: tuple[DirtyMark, ...]

    def unsettled_by(self, process: str) -> bool:
        """Whether another process than this may have left votes unsettled."""
        return any(
            mark.process != process and (self.board.settled_at is None or self.board.settled_at < mark.until)
            for mark in self.stirrings
        )


async def board_now(table: Table, slug: str, *, consistent: bool = False) -> BoardNow | None:
    if not is_slug(slug):
        return None
    place = BOARD.at(slug=slug)
    beside: Partition[Any] = Partition(BOARD, None, place.pk, low=place.sk, high=f"{place.sk}#\U0010ffff")
    found = [record async for record in table.iterate(beside, BOARD, STIRRING, consistent=consistent)]
    board = next((record for record in found if isinstance(record, Board)), None)
    if board is None:
        return None
    return BoardNow(board, tuple(mark for mark in found if isinstance(mark, DirtyMark)))


async def boards_page(table: Table, window: Window) -> Page[Board]:
    """By slug."""
    return await table.page([BOARD.on("gsi1")], window.open("boards"))


def all_boards(table: Table) -> AsyncIterator[Board]:
    """By slug."""
    return table.iterate(BOARD.on("gsi1"))


async def create_board(table: Table, board: Board, once: Once) -> Board:
    try:
        await once.transact(table, board, BOARD.put(board, when=absent()))
    except ConditionFailed as failed:
        there = failed.failures.get(0)
        if failed.doubtful and there is not None and BOARD.read(there) == board:
            return board
        message = f"There is a board called {board.slug} already. Choose another slug."
        raise Conflict(message, path=("input", "slug")) from None
    return board


async def ensure_main(table: Table, now: datetime) -> None:
    """The board `main`, if it is not there."""
    try:
        await table.write(BOARD.put(Board(MAIN, "Main", now), when=absent()))
    except ConditionFailed:
        return
