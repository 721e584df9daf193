"""Contenders, their unique names, their details and pictures.

Contenders lie in blocks of 256 that each have a partition key of their own, in the order of joining. Their results lie
in blocks of the same size (see `results`). Details and pictures are items of their own, so reading all contenders costs
the same with and without them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from datastore.dynamo import Page
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.values.folding import in_form
from datastore.voting.boards import BLOCK_SIZE, Board

if TYPE_CHECKING:
    from datastore.dynamo import PageRequest, Table, Window
    from datastore.dynamo.entity import ItemKey

ContenderKey: TypeAlias = tuple[str, int]
"""A board's slug and a contender's ordinal."""


def folded(name: str) -> str:
    """A name in the form that is compared: without case, compatibility forms and `#`, which is reserved in keys."""
    return in_form("NFKC", in_form("NFKC", name).casefold()).replace("#", "＃")


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
    def node_key(self) -> str:
        return f"{self.board}/{self.ordinal}"

    @property
    def block(self) -> int:
        return self.ordinal // BLOCK_SIZE

    @property
    def sort_name(self) -> str:
        return folded(self.name)

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
    """What is shown about a contender beside its name."""

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
    contenders = await table.get_many([contender_key(board, ordinal) for board, ordinal in keys])
    return {(contender.board, contender.ordinal): contender for contender in contenders if contender is not None}


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
    found = await table.get_many(wanted, consistent=True)
    return {(details.board, details.ordinal): details for details in found if details is not None}


async def read_pictures(table: Table, keys: Sequence[ContenderKey]) -> Mapping[ContenderKey, str]:
    """The pictures that exist, by board and ordinal."""
    pictures = await table.get_many([PICTURE.at(board=board, ordinal=ordinal) for board, ordinal in keys])
    return {(picture.board, picture.ordinal): picture.svg for picture in pictures if picture is not None}
