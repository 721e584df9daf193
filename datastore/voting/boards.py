"""Boards, read together with the dirty marks of the processes that count votes on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from datastore.changes.created import note_created, read_created
from datastore.changes.kinds import Kind
from datastore.dynamo import ConditionFailed, Page
from datastore.dynamo.conditions import absent
from datastore.dynamo.entity import Entity, Partition
from datastore.dynamo.keys import HIGHEST, Key
from datastore.refusals import Conflict, NotFound
from datastore.voting.marks import DIRTY_MARK, DirtyMark
from datastore.voting.pairs import EligibleContenders, pair_count
from datastore.voting.shards import shard_count

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table, Window

MAIN = "main"
"""The default board. It is created with its first contender."""

DEFAULT_RATE = 600
"""Votes a second that a board has shards for, unless an operator chooses another rate."""

BLOCK_SIZE = 256
"""Contenders whose results share a partition key. One settling writes at most two units for each to the leaderboard."""

CREATED_BOARD = "BOARD"
_MOST_READ = 64
"""A board and this many marks are read at once, one per process that voted in the last hour."""

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")


def is_slug(text: str) -> bool:
    return _SLUG.fullmatch(text) is not None


def board_not_found(slug: str, argument: str = "board") -> NotFound:
    """The refusal of every mutation that names a board; `argument` holds the slug, which may be any text."""
    return NotFound(f"There is no board called {slug[:64]}. Look at `boards`.", path=("input", argument))


@dataclass(frozen=True, slots=True)
class Board:
    """A board. Its contenders have the ordinals below `size`; `retired` is a hexadecimal bit set of the retired ones.

    `restorations` counts how often a contender came back from retirement; `latest_restored` has the latest ordinals.
    Votes are taken from `opens_at` until just before `closes_at`; None is no limit.

    `revision` counts the changes to its contenders. Who settles its votes has its lease, in a `term` each time, and
    `settled` is the term of the latest settling that succeeded. `revision` and `settled` together identify one state of
    all results. Readers sum the tallies of `read_shards` shards; that number only grows.
    """

    slug: str
    title: str
    created_at: datetime
    size: int = 0
    retired: str = ""
    revision: int = 0
    votes: int = 0
    read_shards: int = 1
    rate: int = DEFAULT_RATE
    holder: str | None = None
    term: int = 0
    beat: int = 0
    settled: int = 0
    settled_at: datetime | None = None
    restorations: int = 0
    latest_restored: tuple[int, ...] = ()
    opens_at: datetime | None = None
    closes_at: datetime | None = None

    @property
    def node_key(self) -> str:
        return self.slug

    @property
    def eligible(self) -> EligibleContenders:
        return EligibleContenders(self.size, int(self.retired or "0", 16), self.restorations, self.latest_restored)

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
    def blocks(self) -> int:
        """The number of blocks that its contenders' results lie in (see `contenders`)."""
        return max(1, -(-self.size // BLOCK_SIZE))

    @property
    def stamp(self) -> tuple[int, int]:
        return (self.revision, self.settled)


BOARD = Entity(Board, Key("BOARD#{slug}", "BOARD"), gsi1=Key("BOARDS", "{slug}"))


@dataclass(frozen=True, slots=True)
class BoardWithMarks:
    """A board and the marks of the processes that count votes on it."""

    board: Board
    marks: tuple[DirtyMark, ...] = ()
    has_more_marks: bool = False

    @property
    def is_dirty(self) -> bool:
        """Whether there may be something to settle."""
        return bool(self.marks) or self.has_more_marks


async def read_board_with_marks(table: Table, slug: str) -> BoardWithMarks | None:
    """A board and its marks, by a consistent read."""
    if not is_slug(slug):
        return None
    key = BOARD.at(slug=slug)
    board_and_marks: Partition[Any] = Partition(BOARD, None, key.pk, low=key.sk, high=f"{key.sk}#{HIGHEST}")
    found = await table.query(board_and_marks, BOARD, DIRTY_MARK, limit=_MOST_READ, consistent=True)
    board = next((record for record in found.records if isinstance(record, Board)), None)
    if board is None:
        return None
    marks = tuple(record for record in found.records if isinstance(record, DirtyMark))
    return BoardWithMarks(board, marks, has_more_marks=found.last is not None)


async def existing_boards(table: Table, slugs: Sequence[str]) -> list[str]:
    """Those of many slugs that are boards', by a consistent batch."""
    valid = [slug for slug in slugs if is_slug(slug)]
    found = await table.get_many([BOARD.at(slug=slug) for slug in valid], consistent=True)
    return [board.slug for board in found if board is not None]


async def read_boards_page(table: Table, window: Window) -> Page[Board]:
    """By slug."""
    return await table.page([BOARD.on("gsi1")], window.open("boards"))


def all_boards(table: Table) -> AsyncIterator[Board]:
    """By slug, as the index shows them."""
    return table.iterate(BOARD.on("gsi1"))


async def every_slug(table: Table) -> list[str]:
    """The slugs of all boards, those of a moment ago included, and maybe some of boards that do not exist."""
    noted = await read_created(table, CREATED_BOARD)
    return sorted({MAIN, *noted, *[board.slug async for board in all_boards(table)]})


async def create_board(table: Table, board: Board, unit: UnitOfWork) -> Board:
    await note_created(table, CREATED_BOARD, board.slug, unit.now)
    try:
        occurrence = unit.occurred(Kind.BOARD_CREATED, f"Board:{board.slug}")
        await unit.transact(table, board, BOARD.put(board, when=absent()), *occurrence)
    except ConditionFailed as failed:
        if failed.was_written(BOARD, board):
            return board
        raise Conflict(
            f"There is already a board called {board.slug}. Choose another slug.", path=("input", "slug")
        ) from None
    return board


async def ensure_main(table: Table, now: datetime) -> None:
    """Create the board `main` unless it exists."""
    try:
        await table.write(BOARD.put(Board(MAIN, "Main", now), when=absent()))
    except ConditionFailed:
        return
