"""Contenders: their rows with what is settled, their names that nobody else has, their pictures."""

from __future__ import annotations

import asyncio
import random
import unicodedata
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed, Entity, Key, Page, absent, present, remaining, where
from datastore.refusals import Conflict, NotFound, Unavailable
from datastore.voting.boards import BOARD, MAIN, Board, board_now, ensure_main

if TYPE_CHECKING:
    from datastore.dynamo import PageRequest, Slice, Table, Window, Write
    from datastore.receipts import Once

_PAUSE = 0.03
_MOST_CONTENDERS = 10_000
"""Ordinals a board gives out. A settling reads as many tallies per shard, and a voter meets 50 million pairs."""


def folded(name: str) -> str:
    """A name as it is compared and kept apart: no case, no compatibility forms, and no `#`, which keys reserve."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).replace("#", "＃")


@dataclass(frozen=True, slots=True)
class Contender:
    """Somebody, or something, to vote for. Wins, losses and ties are as settled last; `version` counts writes."""

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
    """Keeps a name for one contender of a board; `mark` tells the request that took it."""

    board: str
    folded: str
    ordinal: int
    mark: str


@dataclass(frozen=True, slots=True)
class Picture:
    board: str
    ordinal: int
    svg: str


@dataclass(frozen=True, slots=True)
class ContenderChange:
    """What an editor wants of a contender, in the request `mark`. No name leaves the old one; so does no `redraw`."""

    mark: str
    name: str | None
    svg: str | None
    redraw: bool = True


CONTENDER = Entity(
    Contender,
    Key("BOARD#{board}", "CONTENDER#{ordinal:06d}"),
    gsi1=Key("LEADERBOARD#{board}", "{score:best_first}#{sort_name}#{ordinal:06d}", unless="retired"),
)
NAME = Entity(Name, Key("BOARD#{board}", "NAME#{folded}"))
PICTURE = Entity(Picture, Key("BOARD#{board}", "SVG#{ordinal:06d}"))


# ── reading ──


async def contender(table: Table, board: str, ordinal: int, *, consistent: bool = False) -> Contender | None:
    return await table.get(CONTENDER.at(board=board, ordinal=ordinal), consistent=consistent)


async def contenders_at(table: Table, places: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Contender]:
    """The contenders there are, by board and ordinal."""
    found = await table.get_many([CONTENDER.at(board=board, ordinal=ordinal) for board, ordinal in places])
    return {(record.board, record.ordinal): record for record in found if record is not None}


def contenders_request(board: str, window: Window) -> PageRequest:
    return window.open(f"contenders {board}")


async def contenders_page(table: Table, board: str, request: PageRequest) -> Page[Contender]:
    """In the order in which they joined, the retired ones among them."""
    return await table.page([CONTENDER.on(board=board)], request)


def leaderboard_request(board: str, window: Window) -> PageRequest:
    return window.open(f"leaderboard {board}")


async def leaderboard_slice(table: Table, board: str, position: str | None, limit: int) -> Slice[Contender]:
    """Best first, then by name, past a position in that order."""
    return await table.query(CONTENDER.on("gsi1", board=board).past(position), limit=limit)


async def roster(table: Table, board: str) -> AsyncIterator[Contender]:
    """Every contender of a board as it is now."""
    async for record in table.iterate(CONTENDER.on(board=board), consistent=True, at_once=1000):
        yield record


async def pictures(table: Table, places: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], str]:
    found = await table.get_many([PICTURE.at(board=board, ordinal=ordinal) for board, ordinal in places])
    return {(record.board, record.ordinal): record.svg for record in found if record is not None}


# ── writing ──


async def _attempts() -> AsyncIterator[None]:
    """Again and again until the request's time is up: what was read may change before it is written."""
    pause = _PAUSE
    while True:
        yield
        if remaining() < pause:
            raise Unavailable(retry_after=1.0)
        await asyncio.sleep(random.uniform(0, pause))  # noqa: S311 - spreads load, hides nothing
        pause = min(pause * 1.5, 1.0)


def _guards(failed: ConditionFailed) -> list[Name]:
    """The names that stood in a transaction's way."""
    items = [item for item in failed.failures.values() if item]
    return [NAME.read(item) for item in items if NAME.recognises(item["pk"]["S"], item["sk"]["S"])]


def _taken(name: str) -> Conflict:
    return Conflict(f"This board has a contender called {name} already. Choose another name.", path=("input", "name"))


async def add_contender(table: Table, board: str, change: ContenderChange, now: datetime, once: Once) -> Contender:
    """The next ordinal, the name if it is free, the row and the picture, all or none."""
    name = change.name or ""
    async for _ in _attempts():
        joined = replace(await _newcomer(table, board, now), name=name)
        writes: list[Write] = [
            BOARD.change(
                BOARD.at(slug=board),
                values={"size": joined.ordinal + 1},
                add={"revision": 1},
                when=where(size=joined.ordinal),
            ),
            NAME.put(Name(board, folded(name), joined.ordinal, change.mark), when=absent()),
            CONTENDER.put(joined, when=absent()),
        ]
        if change.svg is not None:
            writes.append(PICTURE.put(Picture(board, joined.ordinal, change.svg)))
        try:
            await once.transact(table, joined, *writes)
        except ConditionFailed as failed:
            for guard in _guards(failed):
                if guard.mark != change.mark:
                    raise _taken(name) from None
                # An attempt without an answer was carried out.
                return replace(joined, ordinal=guard.ordinal)
            continue
        return joined
    raise Unavailable(retry_after=1.0)


async def _newcomer(table: Table, slug: str, now: datetime) -> Contender:
    found = await board_now(table, slug, consistent=True)
    if found is None and slug == MAIN:
        await ensure_main(table, now)
        found = await board_now(table, slug, consistent=True)
    if found is None:
        message = f"There is no board called {slug}. Create it first, or look at `boards`."
        raise NotFound(message, path=("input", "board"))
    if found.board.size >= _MOST_CONTENDERS:
        message = f"This board has had {_MOST_CONTENDERS} contenders, and that is all it takes. Begin another board."
        raise Conflict(message, path=("input", "board"))
    return Contender(slug, found.board.size, "", now)


async def change_contender(table: Table, place: tuple[str, int], change: ContenderChange, once: Once) -> Contender:
    """Another name, another picture or none; the name moves if it is free."""
    board, ordinal = place
    async for _ in _attempts():
        there = await contender(table, board, ordinal, consistent=True)
        if there is None:
            raise NotFound(path=("input", "contender"))
        changed = replace(there, name=change.name or there.name, version=there.version + 1)
        writes: list[Write] = [
            CONTENDER.shift(changed, "name", "version", when=where(version=there.version)),
            BOARD.change(BOARD.at(slug=board), add={"revision": 1}, when=present()),
        ]
        if change.redraw:
            key = PICTURE.at(board=board, ordinal=ordinal)
            writes.append(
                PICTURE.delete(key) if change.svg is None else PICTURE.put(Picture(board, ordinal, change.svg))
            )
        if changed.sort_name != there.sort_name:
            writes.append(NAME.put(Name(board, changed.sort_name, ordinal, change.mark), when=absent()))
            writes.append(NAME.delete(NAME.at(board=board, folded=there.sort_name)))
        try:
            await once.transact(table, changed, *writes)
        except ConditionFailed as failed:
            if any(guard.ordinal != ordinal for guard in _guards(failed)):
                raise _taken(changed.name) from None
            continue
        return changed
    raise Unavailable(retry_after=1.0)


async def retire_contender(table: Table, place: tuple[str, int], *, once: Once) -> Contender:
    """Off the leaderboard and out of every draw, for good; the row, its name and its records stay."""
    board, ordinal = place
    async for _ in _attempts():
        there = await contender(table, board, ordinal, consistent=True)
        now = await board_now(table, board, consistent=True)
        if there is None or now is None:
            raise NotFound(path=("input", "contender"))
        if there.retired:
            return there
        changed = replace(there, retired=True, version=there.version + 1)
        try:
            await once.transact(
                table,
                changed,
                CONTENDER.shift(changed, "retired", "version", when=where(version=there.version)),
                _without(now.board, ordinal),
            )
        except ConditionFailed:
            continue
        return changed
    raise Unavailable(retry_after=1.0)


def _without(board: Board, ordinal: int) -> Write:
    retired = f"{board.eligible.retired | 1 << ordinal:x}"
    return BOARD.change(
        BOARD.place_of(board), values={"retired": retired}, add={"revision": 1}, when=where(revision=board.revision)
    )
