"""Contenders from a table or a folder of SVG files, and votes as lines. docs/imports.md describes the formats."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datastore.dynamo import Table, iso
from datastore.refusals import Conflict, InvalidInput, NotFound
from datastore.voting import boards, editing, votes
from datastore.voting.boards import MAIN
from datastore.voting.contenders import ContenderKey, all_contenders, folded_for_keys, read_known_names
from datastore.voting.editing import ContenderChange
from datastore.voting.votes import PairVerdict, Vote
from resolvers.requests.context import Services
from resolvers.transfer.loop import Added, PreviewedStore, json_line
from resolvers.transfer.readers import Row, Unreadable, decode_xml, read_inside
from resolvers.voting.boards import parse_details, parse_name
from resolvers.voting.settling import BoardCache
from resolvers.voting.svg import LARGEST, parse_picture

# ── contenders ──

COLUMNS = ("name", "description", "link", "imageUrl", "svg")


@dataclass(frozen=True, slots=True)
class NewContender:
    """A contender to add."""

    name: str
    svg: str | None
    details: Mapping[str, Any]


class ContenderStore(PreviewedStore[NewContender]):
    """Adds contenders to a board, except names that it has, or that an import gave to a contender since renamed.

    Pictures are files in the folder; without one, the rows have their text.
    """

    def __init__(self, services: Services, board: str, folder: Path | None, actor: str | None = None) -> None:
        self._services = services
        self._board = board
        self._folder = folder
        self._actor = actor
        self._places: dict[str, str] = {}
        self._known: frozenset[str] = frozenset()
        self._room = 0

    async def begin(self) -> int:
        if not boards.is_slug(self._board):
            raise NotFound(f"There is no board called {self._board}.")
        self._known = await read_known_names(self._services.table, self._board)
        current = await boards.read_board_with_marks(self._services.table, self._board)
        self._room = editing.MAX_CONTENDERS - (current.board.size if current is not None else 0)
        return 0

    def parse(self, row: Row) -> NewContender:
        given = row.fields
        details = parse_details(
            self._services.policy.image_hosts, given.get("description"), given.get("link"), given.get("imageUrl")
        )
        svg = self._parse_picture(given["svg"]) if "svg" in given else None
        name = parse_name(given.get("name", ""))
        folded = folded_for_keys(name)
        if (first := self._places.setdefault(folded, row.place)) != row.place:
            raise InvalidInput(f"{name} is already the name at {first}.")
        if folded not in self._known:
            self._take_room()
        return NewContender(name, svg, details)

    def _take_room(self) -> None:
        if self._room <= 0:
            most = f"{editing.MAX_CONTENDERS:,} contenders, retired ones included"
            raise InvalidInput(f"A board may have {most}, and has no room for this one. Start another board.")
        self._room -= 1

    def _parse_picture(self, given: str) -> str:
        if self._folder is None:
            return parse_picture(given)
        try:
            text = decode_xml(read_inside(self._folder, given, 2 * LARGEST), given)  # UTF-16 takes twice the bytes
        except Unreadable as unreadable:
            raise InvalidInput(unreadable.message, path=("svg",)) from None
        return parse_picture(text)

    async def are_missing(self, records: Sequence[NewContender]) -> Sequence[bool]:
        return [folded_for_keys(contender.name) not in self._known for contender in records]

    async def add(self, records: Sequence[NewContender]) -> Added:
        new = [contender for contender in records if folded_for_keys(contender.name) not in self._known]
        return Added(sum([await self._add(contender) for contender in new]))

    async def _add(self, contender: NewContender) -> bool:
        """Whether the contender is new. Its name may have been taken since the names were read."""
        services = self._services
        now = services.clock()
        change = ContenderChange(
            services.ids.next(now), contender.name, contender.svg, details=contender.details, imported=True
        )
        try:
            added = await editing.add_contender(services.table, self._board, change, now, services.unit(self._actor))
        except Conflict as conflict:
            if conflict.path[-1:] != ("name",):
                raise
            return False
        services.get(BoardCache).changed(self._board, added, change)
        return True


# ── votes ──


async def open_votes(table: Table, board: str | None) -> AsyncIterator[bytes]:
    """As lines: every vote, or those on one board; NotFound if there is none."""
    if board not in (None, MAIN) and await boards.read_board_with_marks(table, board) is None:
        raise NotFound(f"There is no board called {board}.")  # the main one is created with its first contender
    return _vote_lines(table, board)


async def _vote_lines(table: Table, board: str | None) -> AsyncIterator[bytes]:
    names: dict[ContenderKey, str] = {}
    async for vote in votes.all_votes(table):
        if vote.is_verdict and board in (None, vote.board):
            if not {(vote.board, vote.low), (vote.board, vote.high)} <= names.keys():  # also if they joined meanwhile
                names |= await _names(table, vote.board)
            yield json_line(_fields(vote, names))


async def _names(table: Table, board: str) -> Mapping[ContenderKey, str]:
    """Of all contenders that a board has by now."""
    current = await boards.read_board_with_marks(table, board)
    contenders = await all_contenders(table, board, current.board.blocks) if current is not None else {}
    return {(board, ordinal): contender.name for ordinal, contender in contenders.items()}


def _fields(vote: Vote, names: Mapping[ContenderKey, str]) -> dict[str, Any]:
    low, high = names.get((vote.board, vote.low)), names.get((vote.board, vote.high))
    return {
        "board": vote.board,
        "voter": vote.voter,
        "number": vote.number,
        "pair": [low, high],
        "verdict": {PairVerdict.TIE: "tie", PairVerdict.SKIP: "skip"}.get(vote.verdict, "win"),
        "winner": {PairVerdict.LOW_WINS: low, PairVerdict.HIGH_WINS: high}.get(vote.verdict),
        "at": iso(vote.at),
        "void": vote.void,
    }
