"""Boards, and the dirty marks of the processes that count votes on them.

A process marks a board as dirty before it counts votes, and clears its mark once they are settled. Marks are stored
next to their board, so one query reads both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from datastore.dynamo import ConditionFailed, Page
from datastore.dynamo.attributes import StoredAs
from datastore.dynamo.conditions import absent
from datastore.dynamo.entity import Entity, Partition
from datastore.dynamo.keys import HIGHEST, Key
from datastore.refusals import Conflict
from datastore.voting.pair_walk import EligibleContenders, pair_count
from datastore.voting.shards import shard_count

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from datastore.dynamo import Table, Window
    from datastore.receipts import Once

MAIN = "main"
"""The default board. It is created with its first contender."""

DEFAULT_RATE = 600
"""Votes a second that a board has shards for, unless an operator chooses another rate."""

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")


def is_slug(text: str) -> bool:
    return _SLUG.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Board:
    """A board. Its contenders have the ordinals below `size`; `retired` is a hexadecimal bit set of the retired ones.

    `revision` counts the changes to its contenders, `settled` the settlements of their votes; both together identify
    one state of all its rows. Readers sum the tallies of `read_shards` shards; that number only grows.
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
    read_shards: Annotated[int, StoredAs("spread")] = 1
    rate: int = DEFAULT_RATE

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
        return pair_count(len(self.eligible))

    @property
    def write_shards(self) -> int:
        """The number of shards that votes are written to."""
        return shard_count(self.contender_count, self.rate)

    @property
    def stamp(self) -> tuple[int, int]:
        return (self.revision, self.settled)


@dataclass(frozen=True, slots=True)
class DirtyMark:
    """A process may have votes on the board that it has counted before `until` and not settled yet."""

    board: str
    process: str
    until: datetime


BOARD = Entity(Board, Key("BOARD#{slug}", "BOARD"), gsi1=Key("BOARDS", "{slug}"))
DIRTY_MARK = Entity(DirtyMark, Key("BOARD#{board}", "BOARD#STIRRED#{process}"))


@dataclass(frozen=True, slots=True)
class BoardWithMarks:
    """A board and the marks of the processes that count votes on it."""

    board: Board
    dirty_marks: tuple[DirtyMark, ...]

    def unsettled_by_others(self, process: str) -> bool:
        """Whether a process other than this one may have left votes unsettled."""
        return any(
            mark.process != process and (self.board.settled_at is None or self.board.settled_at < mark.until)
            for mark in self.dirty_marks
        )


async def read_board_with_marks(table: Table, slug: str, *, consistent: bool = False) -> BoardWithMarks | None:
    if not is_slug(slug):
        return None
    key = BOARD.at(slug=slug)
    board_and_marks: Partition[Any] = Partition(BOARD, None, key.pk, low=key.sk, high=f"{key.sk}#{HIGHEST}")
    records = [record async for record in table.iterate(board_and_marks, BOARD, DIRTY_MARK, consistent=consistent)]
    board = next((record for record in records if isinstance(record, Board)), None)
    if board is None:
        return None
    return BoardWithMarks(board, tuple(record for record in records if isinstance(record, DirtyMark)))


async def mark_dirty(table: Table, board: str, process: str, until: datetime) -> None:
    """Announce that this process may count votes until a moment."""
    await table.write(DIRTY_MARK.put(DirtyMark(board, process, until)))


async def clear_dirty(table: Table, board: str, process: str) -> None:
    """Announce that every vote this process counted is settled."""
    await table.write(DIRTY_MARK.delete(DIRTY_MARK.at(board=board, process=process)))


async def read_boards_page(table: Table, window: Window) -> Page[Board]:
    """By slug."""
    return await table.page([BOARD.on("gsi1")], window.open("boards"))


def all_boards(table: Table) -> AsyncIterator[Board]:
    """By slug."""
    return table.iterate(BOARD.on("gsi1"))


async def create_board(table: Table, board: Board, once: Once) -> Board:
    try:
        await once.transact(table, board, BOARD.put(board, when=absent()))
    except ConditionFailed as failed:
        stored_item = failed.failures.get(0)
        if failed.doubtful and stored_item is not None and BOARD.read(stored_item) == board:
            return board  # written by an earlier attempt whose answer was lost
        raise Conflict(
            f"There is a board called {board.slug} already. Choose another slug.", path=("input", "slug")
        ) from None
    return board


async def ensure_main(table: Table, now: datetime) -> None:
    """Create the board `main` unless it exists."""
    try:
        await table.write(BOARD.put(Board(MAIN, "Main", now), when=absent()))
    except ConditionFailed:
        return
