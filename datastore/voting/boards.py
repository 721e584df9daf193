"""Boards, read together with the dirty marks of the processes that count votes on them; and their number of shards.

A board's tallies are spread over shards; all votes of one voter go to one of them. Two rules say how many there are,
and the larger number wins.

- Conflicts: with R votes a second, T seconds a transaction, n contenders and S shards, about one vote in n·S / (4·R·T)
  conflicts with another. `shard_count` keeps that near one in ten.
- Units: a vote's transaction writes three counters of one shard, which are 6 write units under one partition key, and a
  key takes 1,000 a second. Shards are planned for 500, because voters are spread by chance: the fullest of 60 shards
  then stays below 700 (three standard deviations of 83 votes).
"""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import ceil

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork, note_created, read_created
from datastore.dynamo import ConditionFailed, Page, Table, Window
from datastore.dynamo.entity import HIGHEST, Entity, Key
from datastore.dynamo.writes import absent, less, present, where
from datastore.jobs.leases import leased
from datastore.refusals import Conflict, NotFound
from datastore.voting.pair_walk import EligibleContenders, pair_count

# ── dirty marks ──


@dataclass(frozen=True, slots=True)
class DirtyMark:
    """The process has counted votes on the board, and may have unsettled ones. Each mark of it has a new term."""

    board: str
    holder: str
    term: int
    since: datetime
    beat: int = 0


DIRTY_MARK = leased(Entity(DirtyMark, Key("BOARD#{board}", "BOARD#DIRTY#{holder}")))


async def delete_mark(table: Table, mark: DirtyMark) -> None:
    """Delete a mark whose votes are all settled. It stays if its process has written it since it was read."""
    unchanged = where(term=mark.term, beat=mark.beat)
    await table.try_write(DIRTY_MARK.delete(DIRTY_MARK.item_key(mark), when=unchanged))


# ── shards ──

MAX_SHARDS = 64
_TRANSACTION_SECONDS = 0.008
_CONFLICTS = 0.1
_UNITS_A_VOTE = 6
_UNITS_A_SHARD = 500


def shard_count(contenders: int, rate: int) -> int:
    """The shards that votes are written to: S = ⌈max(4·R·T / (n · one in ten), 6·R / 500)⌉, 1 to 64."""
    without_conflicts = ceil(4 * rate * _TRANSACTION_SECONDS / (_CONFLICTS * max(2, contenders)))
    without_heat = ceil(rate * _UNITS_A_VOTE / _UNITS_A_SHARD)
    return max(1, min(MAX_SHARDS, max(without_conflicts, without_heat)))


# ── boards ──

MAIN = "main"
"""The default board. A service creates it at its start, and a command with its first contender."""

DEFAULT_RATE = 600
"""Votes a second that a board has shards for, unless an operator chooses another rate."""

BLOCK_SIZE = 256
"""Contenders that share a partition key, and whose results share an item."""

CREATED_BOARD = "BOARD"
_MOST_READ = 64
"""Items that are read at once: a board, and a mark for each process that may have unsettled votes on it."""

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")


def is_slug(text: str) -> bool:
    return _SLUG.fullmatch(text) is not None


def board_not_found(slug: str, argument: str = "board") -> NotFound:
    """The refusal of every mutation that names a board; `argument` holds the slug, which may be any text."""
    return NotFound(f"There is no board called {slug[:64]}.", path=("input", argument))


class Electorate(StrEnum):
    """Who may vote on a board."""

    EVERYBODY = "EVERYBODY"
    MEMBERS = "MEMBERS"


class ResultsVisible(StrEnum):
    """When a board's results are shown to those who are not its editors."""

    ALWAYS = "ALWAYS"
    AFTER_CLOSE = "AFTER_CLOSE"
    AFTER_VOTING = "AFTER_VOTING"


@dataclass(frozen=True, slots=True)
class Board:
    """A board. Its contenders have the ordinals below `size`; `retired` is a hexadecimal bit set of the retired ones.

    `restorations` counts how often a contender came back from retirement; `latest_restored` has the latest ordinals.
    Votes are taken from `opens_at` until just before `closes_at`; None is no limit. They are taken from its
    `electorate`: of members, if `members_since` is set, from those who joined until then.

    Who settles its votes has its lease, in a `term` each time, and `settled` is the term of the latest settling that
    succeeded. `contender_changes` and `settled` together identify one state of all results. Readers sum the tallies of
    `read_shards` shards; that number only grows.
    """

    slug: str
    title: str
    created_at: datetime
    size: int = 0
    retired: str = ""
    revision: int = 1
    """Counts the changes of its settings."""
    contender_changes: int = 0
    """Counts the changes to its contenders."""
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
    electorate: Electorate = Electorate.EVERYBODY
    members_since: datetime | None = None
    results_visible: ResultsVisible = ResultsVisible.ALWAYS

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
        return (self.contender_changes, self.settled)


BOARD = leased(Entity(Board, Key("BOARD#{slug}", "BOARD"), gsi1=Key("BOARDS", "{slug}")))


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
    board_and_marks = BOARD.collection(slug=slug).between("BOARD", f"BOARD#{HIGHEST}")
    found = await table.query(board_and_marks, BOARD, DIRTY_MARK, limit=_MOST_READ, consistent=True)
    board = next((record for record in found.records if isinstance(record, Board)), None)
    if board is None:
        return None
    marks = tuple(record for record in found.records if isinstance(record, DirtyMark))
    return BoardWithMarks(board, marks, has_more_marks=found.last is not None)


async def existing_boards(table: Table, slugs: Sequence[str]) -> list[str]:
    """Those of the slugs that have a board, by a consistent batch."""
    valid = [slug for slug in slugs if is_slug(slug)]
    return [board.slug for board in await table.find_many([BOARD.at(slug=slug) for slug in valid], consistent=True)]


async def read_boards_page(table: Table, window: Window) -> Page[Board]:
    """By slug."""
    return await table.page([BOARD.on("gsi1")], window.open("boards"))


def all_boards(table: Table) -> AsyncIterator[Board]:
    """All boards in the order of their slugs, as the index shows them."""
    return table.iterate(BOARD.on("gsi1"))


async def every_slug(table: Table) -> list[str]:
    """The slugs of all boards, the newest included, and perhaps of some that were never created."""
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
    await table.try_write(BOARD.put(Board(MAIN, "Main", now), when=absent()))


# ── resharding ──
# Changing the number of a board's shards while people vote.
#
# Votes are written to `Board.write_shards` shards, a number that changes with the board's contenders and rate. Readers
# sum `Board.read_shards`, which only grows. It must be raised before the first vote is written to a new shard.


async def ensure_shards_are_read(table: Table, board: Board) -> bool:
    """Make readers sum every shard that votes are written to. Return whether the board had to be changed."""
    if board.write_shards <= board.read_shards:
        return False
    await _raise_read_shards(table, board.slug, board.write_shards)
    return True


async def reshard(table: Table, board: Board, rate: int) -> int:
    """Spread a board's counters for a rate of votes. Return the number of shards; NotFound if the board is gone."""
    shards = shard_count(board.contender_count, rate)
    await _raise_read_shards(table, board.slug, shards)
    if not await table.try_write(BOARD.update(BOARD.item_key(board), values={"rate": rate}, when=present())):
        raise NotFound(f"There is no board called {board.slug}.")
    return shards


async def _raise_read_shards(table: Table, slug: str, shards: int) -> None:
    change = BOARD.update(BOARD.at(slug=slug), values={"read_shards": shards}, when=less("read_shards", shards))
    await table.try_write(change)
