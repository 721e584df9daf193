"""Contenders: their rows with the settled counts, their unique names, their pictures."""

from __future__ import annotations

import asyncio
import random
import unicodedata
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, TypeAlias

from datastore.dynamo import ConditionFailed, Page, remaining
from datastore.dynamo.attributes import StoredAs
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.refusals import Conflict, NotFound, Unavailable
from datastore.voting.boards import BOARD, MAIN, Board, ensure_main, read_board_with_marks

if TYPE_CHECKING:
    from datastore.dynamo import PageRequest, Slice, Table, Window
    from datastore.dynamo.writes import Write
    from datastore.receipts import Once

ContenderKey: TypeAlias = tuple[str, int]
"""A board's slug and a contender's ordinal."""

_FIRST_PAUSE = 0.03
_MAX_CONTENDERS = 10_000
"""Per board, retired ones included. Settling reads as many tallies per shard, and there are 50 million pairs."""


def folded(name: str) -> str:
    """A name in the form that is compared: without case, compatibility forms and `#`, which is reserved in keys."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).replace("#", "＃")


@dataclass(frozen=True, slots=True)
class Contender:
    """Someone or something to vote for. Wins, losses and ties are the settled ones; `version` counts writes."""

    board: str
    ordinal: int
    name: str
    created_at: datetime
    wins: int = 0
    losses: int = 0
    ties: int = 0
    retired: bool = False
    version: int = 0

    @property
    def node_key(self) -> str:
        return f"{self.board}/{self.ordinal}"

    @property
    def score(self) -> int:
        return self.wins - self.losses

    @property
    def win_rate(self) -> float | None:
        decided = self.wins + self.losses
        return self.wins / decided if decided else None

    @property
    def counts(self) -> tuple[int, int, int]:
        return (self.wins, self.losses, self.ties)

    @property
    def sort_name(self) -> str:
        return folded(self.name)


@dataclass(frozen=True, slots=True)
class Name:
    """Reserves a name for one contender of a board, on behalf of one request."""

    board: str
    folded: str
    ordinal: int
    request_id: Annotated[str, StoredAs("mark")]


@dataclass(frozen=True, slots=True)
class Picture:
    board: str
    ordinal: int
    svg: str


@dataclass(frozen=True, slots=True)
class ContenderChange:
    """An editor's new or changed contender. A name of None leaves the name, an `svg` of None removes the picture."""

    request_id: str
    name: str | None
    svg: str | None
    replaces_picture: bool = True


CONTENDER = Entity(
    Contender,
    Key("BOARD#{board}", "CONTENDER#{ordinal:06d}"),
    gsi1=Key("LEADERBOARD#{board}", "{score:best_first}#{sort_name}#{ordinal:06d}", unless="retired"),
)
NAME = Entity(Name, Key("BOARD#{board}", "NAME#{folded}"))
PICTURE = Entity(Picture, Key("BOARD#{board}", "SVG#{ordinal:06d}"))


# ── reading ──


async def read_contender(table: Table, board: str, ordinal: int, *, consistent: bool = False) -> Contender | None:
    return await table.get(CONTENDER.at(board=board, ordinal=ordinal), consistent=consistent)


async def read_contenders(table: Table, keys: Sequence[ContenderKey]) -> Mapping[ContenderKey, Contender]:
    """The contenders that exist, by board and ordinal."""
    contenders = await table.get_many([CONTENDER.at(board=board, ordinal=ordinal) for board, ordinal in keys])
    return {(contender.board, contender.ordinal): contender for contender in contenders if contender is not None}


def contenders_request(board: str, window: Window) -> PageRequest:
    return window.open(f"contenders {board}")


async def read_contenders_page(table: Table, board: str, request: PageRequest) -> Page[Contender]:
    """In joining order, including retired ones."""
    return await table.page([CONTENDER.on(board=board)], request)


def leaderboard_request(board: str, window: Window) -> PageRequest:
    return window.open(f"leaderboard {board}")


async def read_leaderboard_slice(table: Table, board: str, position: str | None, limit: int) -> Slice[Contender]:
    """Best first, then by name, after a position in that order."""
    return await table.query(CONTENDER.on("gsi1", board=board).past(position), limit=limit)


def all_contenders(table: Table, board: str) -> AsyncIterator[Contender]:
    """The contenders of a board, including retired ones; a consistent read."""
    return table.iterate(CONTENDER.on(board=board), consistent=True, at_once=1000)


async def read_pictures(table: Table, keys: Sequence[ContenderKey]) -> Mapping[ContenderKey, str]:
    """The pictures that exist, by board and ordinal."""
    pictures = await table.get_many([PICTURE.at(board=board, ordinal=ordinal) for board, ordinal in keys])
    return {(picture.board, picture.ordinal): picture.svg for picture in pictures if picture is not None}


# ── writing ──


async def _attempts() -> AsyncIterator[None]:
    """Attempts until the request's deadline: the records that were read may change before the write."""
    pause = _FIRST_PAUSE
    while True:
        yield
        if remaining() < pause:
            raise Unavailable(retry_after=1.0)
        await asyncio.sleep(random.uniform(0, pause))  # noqa: S311 - spreads load, hides nothing
        pause = min(pause * 1.5, 1.0)


def _conflicting_names(failed: ConditionFailed) -> list[Name]:
    """The stored names that made a transaction fail."""
    items = [item for item in failed.failures.values() if item]
    return [NAME.read(item) for item in items if NAME.recognises(item["pk"]["S"], item["sk"]["S"])]


def _name_taken(name: str) -> Conflict:
    return Conflict(f"This board has a contender called {name} already. Choose another name.", path=("input", "name"))


async def add_contender(table: Table, board: str, change: ContenderChange, now: datetime, once: Once) -> Contender:
    """Take the next ordinal and write the name, the row and the picture, all or none. Conflict if the name is taken."""
    async for _ in _attempts():
        contender = replace(await _next_contender(table, board, now), name=change.name or "")
        try:
            await once.transact(table, contender, *_additions(contender, change))
        except ConditionFailed as failed:
            for name in _conflicting_names(failed):
                if name.request_id != change.request_id:
                    raise _name_taken(contender.name) from None
                return replace(contender, ordinal=name.ordinal)  # added by an earlier attempt whose answer was lost
            continue
        return contender
    raise Unavailable(retry_after=1.0)


def _additions(contender: Contender, change: ContenderChange) -> Iterator[Write]:
    board, ordinal = contender.board, contender.ordinal
    yield BOARD.change(
        BOARD.at(slug=board), values={"size": ordinal + 1}, add={"revision": 1}, when=where(size=ordinal)
    )
    yield NAME.put(Name(board, contender.sort_name, ordinal, change.request_id), when=absent())
    yield CONTENDER.put(contender, when=absent())
    if change.svg is not None:
        yield PICTURE.put(Picture(board, ordinal, change.svg))


async def _next_contender(table: Table, slug: str, now: datetime) -> Contender:
    """A contender without a name at the board's next ordinal. The board `main` is created if it does not exist."""
    current = await read_board_with_marks(table, slug, consistent=True)
    if current is None and slug == MAIN:
        await ensure_main(table, now)
        current = await read_board_with_marks(table, slug, consistent=True)
    if current is None:
        raise NotFound(
            f"There is no board called {slug}. Create it first, or look at `boards`.", path=("input", "board")
        )
    if current.board.size >= _MAX_CONTENDERS:
        raise Conflict(
            f"This board has had {_MAX_CONTENDERS} contenders, and that is all it takes. Begin another board.",
            path=("input", "board"),
        )
    return Contender(slug, current.board.size, "", now)


async def change_contender(table: Table, key: ContenderKey, change: ContenderChange, once: Once) -> Contender:
    """Change a contender's name, picture or both. Conflict if the name is taken."""
    async for _ in _attempts():
        current = await read_contender(table, *key, consistent=True)
        if current is None:
            raise NotFound(path=("input", "contender"))
        changed = replace(current, name=change.name or current.name, version=current.version + 1)
        try:
            await once.transact(table, changed, *_changes(current, changed, change))
        except ConditionFailed as failed:
            if any(name.ordinal != changed.ordinal for name in _conflicting_names(failed)):
                raise _name_taken(changed.name) from None
            continue
        return changed
    raise Unavailable(retry_after=1.0)


def _changes(current: Contender, changed: Contender, change: ContenderChange) -> Iterator[Write]:
    board, ordinal = current.board, current.ordinal
    yield CONTENDER.shift(changed, "name", "version", when=where(version=current.version))
    yield BOARD.change(BOARD.at(slug=board), add={"revision": 1}, when=present())
    if change.replaces_picture and change.svg is None:
        yield PICTURE.delete(PICTURE.at(board=board, ordinal=ordinal))
    elif change.replaces_picture and change.svg is not None:
        yield PICTURE.put(Picture(board, ordinal, change.svg))
    if changed.sort_name != current.sort_name:
        yield NAME.put(Name(board, changed.sort_name, ordinal, change.request_id), when=absent())
        yield NAME.delete(NAME.at(board=board, folded=current.sort_name))


async def retire_contender(table: Table, key: ContenderKey, *, once: Once) -> Contender:
    """Remove a contender from the leaderboard and from every draw for good. Its row, name and records stay."""
    async for _ in _attempts():
        contender = await read_contender(table, *key, consistent=True)
        current = await read_board_with_marks(table, key[0], consistent=True)
        if contender is None or current is None:
            raise NotFound(path=("input", "contender"))
        if contender.retired:
            return contender
        retired = replace(contender, retired=True, version=contender.version + 1)
        retire = CONTENDER.shift(retired, "retired", "version", when=where(version=contender.version))
        try:
            await once.transact(table, retired, retire, _retire_on_board(current.board, contender.ordinal))
        except ConditionFailed:
            continue
        return retired
    raise Unavailable(retry_after=1.0)


def _retire_on_board(board: Board, ordinal: int) -> Write:
    retired = f"{board.eligible.retired | 1 << ordinal:x}"
    return BOARD.change(
        BOARD.item_key(board), values={"retired": retired}, add={"revision": 1}, when=where(revision=board.revision)
    )
