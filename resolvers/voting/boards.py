"""Boards, contenders, the leaderboard and head-to-head records: one function per field."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from datastore import voting as voting_store
from datastore.dynamo import Page, PageRequest, Window
from datastore.refusals import InvalidInput, NotFound
from datastore.voting import MAIN, Board, Contender, ContenderChange, PairTally
from resolvers.context import UNSET, Context, NodeOf, Unset
from resolvers.viewer import Role
from resolvers.voting.board_cache import BoardCache
from resolvers.voting.svg import harmless

ContenderId = Annotated[str, NodeOf("Contender")]

LONGEST_NAME = 80
LONGEST_FOLDED = 800
"""Bytes of a name as it is compared, which is in a key of at most 1,024: one Arabic ligature becomes 18 letters."""
LONGEST_TITLE = 120
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u2069\ufeff]")
_CONTENDER_KEY = re.compile(r"([a-z0-9-]{1,64})/(0|[1-9][0-9]{0,5})")
_LARGEST_PAGE = 100
_USUAL_PAGE = 20


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """A contender in its place."""

    rank: int
    contender: Contender

    @property
    def wins(self) -> int:
        return self.contender.wins

    @property
    def losses(self) -> int:
        return self.contender.losses

    @property
    def ties(self) -> int:
        return self.contender.ties

    @property
    def score(self) -> int:
        return self.contender.score


@dataclass(frozen=True, slots=True)
class Matchup:
    """The head-to-head record of two contenders, as seen from one of them."""

    board: str
    left_ordinal: int
    right_ordinal: int
    left_wins: int
    right_wins: int
    ties: int

    @property
    def votes(self) -> int:
        return self.left_wins + self.right_wins + self.ties

    @classmethod
    def of(cls, record: PairTally, *, low_is_left: bool) -> Matchup:
        if low_is_left:
            return cls(record.board, record.low, record.high, record.low_wins, record.high_wins, record.ties)
        return cls(record.board, record.high, record.low, record.high_wins, record.low_wins, record.ties)


def standings(ctx: Context) -> BoardCache:
    return ctx.services.get(BoardCache)


def parse_contender_key(key: str) -> tuple[str, int] | None:
    """Board and ordinal in the key of a contender's id."""
    found = _CONTENDER_KEY.fullmatch(key)
    return (found[1], int(found[2])) if found else None


# ── boards ──


async def board(ctx: Context, /, *, slug: str = MAIN) -> Board | None:
    return await standings(ctx).board(slug) if voting_store.is_slug(slug) else None


async def boards(ctx: Context, /, *, window: Window) -> Page[Board]:
    return await voting_store.read_boards_page(ctx.table, window)


async def create_board(ctx: Context, /, *, slug: str, title: str) -> Board:
    ctx.with_role(Role.EDITOR)
    if not voting_store.is_slug(slug):
        message = "A slug has 1 to 64 small letters, digits and dashes, and neither begins nor ends with a dash."
        raise InvalidInput(message, path=("input", "slug"))
    new = Board(slug, line(title, "title", LONGEST_TITLE), ctx.now())
    created = await voting_store.create_board(ctx.table, new, ctx.once)
    standings(ctx).changed(slug)
    return created


async def contender_board(ctx: Context, contender: Contender, /) -> Board:
    now = await standings(ctx).boards.load(contender.board)
    if now is None:
        raise NotFound
    return now.board


# ── contenders ──


async def contender(ctx: Context, /, *, id: ContenderId) -> Contender | None:  # noqa: A002 - the argument's public name
    place = parse_contender_key(id)
    if place is None or await standings(ctx).board(place[0]) is None:
        return None
    return await standings(ctx).contenders.load(place)


async def contenders(ctx: Context, /, *, board: str = MAIN, window: Window) -> Page[Contender]:
    request = voting_store.contenders_request(board, window)
    found = await standings(ctx).board(board) if voting_store.is_slug(board) else None
    return await _contenders(ctx, found, request) if found else Page.cut((), request).counted(0)


async def board_contenders(ctx: Context, board: Board, /, *, window: Window) -> Page[Contender]:
    return await _contenders(ctx, board, voting_store.contenders_request(board.slug, window))


async def _contenders(ctx: Context, board: Board, request: PageRequest) -> Page[Contender]:
    page = await voting_store.read_contenders_page(ctx.table, board.slug, request)
    return page.counted(board.size)


async def svg(ctx: Context, contender: Contender, /) -> str | None:
    return await standings(ctx).pictures.load((contender.board, contender.ordinal)) or None


async def rank(ctx: Context, contender: Contender, /) -> int | None:
    if contender.retired:
        return None
    return await standings(ctx).rank(await contender_board(ctx, contender), contender.score)


async def add_contender(ctx: Context, /, *, board: str = MAIN, name: str, svg: str | None = None) -> Contender:
    ctx.with_role(Role.EDITOR)
    if not voting_store.is_slug(board):
        message = "There is no board of this name."
        raise NotFound(message, path=("input", "board"))
    added = await voting_store.add_contender(
        ctx.table,
        board,
        ContenderChange(ctx.new_id(), _contender_name(name), None if svg is None else harmless(svg)),
        ctx.now(),
        ctx.once,
    )
    standings(ctx).changed(board, added)
    return added


async def update_contender(
    ctx: Context, /, *, contender: ContenderId, name: str | None = None, svg: str | Unset | None = UNSET
) -> Contender:
    """Changes what is given; a picture given as null is taken away."""
    ctx.with_role(Role.EDITOR)
    change = ContenderChange(
        ctx.new_id(),
        None if name is None else _contender_name(name),
        harmless(svg) if isinstance(svg, str) else None,
        replaces_picture=svg is not UNSET,
    )
    changed = await voting_store.change_contender(ctx.table, _existing(contender), change, ctx.once)
    standings(ctx).changed(changed.board, changed)
    return changed


async def retire_contender(ctx: Context, /, *, contender: ContenderId) -> Contender:
    ctx.with_role(Role.EDITOR)
    retired = await voting_store.retire_contender(ctx.table, _existing(contender), once=ctx.once)
    standings(ctx).changed(retired.board, retired)
    return retired


def _existing(key: str) -> tuple[str, int]:
    place = parse_contender_key(key)
    if place is None:
        raise NotFound(path=("input", "contender"))
    return place


def _contender_name(text: str) -> str:
    name = line(text, "name", LONGEST_NAME)
    if len(voting_store.folded(name).encode()) > LONGEST_FOLDED:
        message = "This name is too long once its ligatures are spelled out. Choose a shorter one."
        raise InvalidInput(message, path=("input", "name"))
    return name


def line(text: str, name: str, longest: int) -> str:
    """One line of visible text."""
    tidy = " ".join(text.split())
    if not 1 <= len(tidy) <= longest or _UNPRINTABLE.search(tidy):
        message = f"A {name} has 1 to {longest} characters, and none that cannot be seen."
        raise InvalidInput(message, path=("input", name))
    return tidy


# ── the leaderboard ──


async def leaderboard(ctx: Context, /, *, board: str = MAIN, window: Window) -> Page[LeaderboardRow]:
    request = voting_store.leaderboard_request(board, window)
    found = await standings(ctx).board(board) if voting_store.is_slug(board) else None
    return await _leaderboard(ctx, found, request) if found else Page.cut((), request).counted(0)


async def board_leaderboard(ctx: Context, board: Board, /, *, window: Window) -> Page[LeaderboardRow]:
    return await _leaderboard(ctx, board, voting_store.leaderboard_request(board.slug, window))


async def _leaderboard(ctx: Context, board: Board, request: PageRequest) -> Page[LeaderboardRow]:
    known = standings(ctx)
    found = await known.leaders(board, request.position, request.wanted)
    page = Page.cut(found.items, request)
    if request.position is None:
        rows = ranked(page.nodes)
    else:
        rows = [LeaderboardRow(await known.rank(board, one.score), one) for one in page.nodes]
    return page.map(rows).counted(board.contender_count)


def ranked(contenders: Sequence[Contender]) -> list[LeaderboardRow]:
    """Shared ranks from the top, best first: 1, 1, 3."""
    rows: list[LeaderboardRow] = []
    rank, above = 1, None
    for place, one in enumerate(contenders, 1):
        score = one.score
        if score != above:
            rank, above = place, score
        rows.append(LeaderboardRow(rank, one))
    return rows


async def leaderboard_changed(
    ctx: Context, /, *, board: str = MAIN, first: int | None = None
) -> AsyncIterator[list[LeaderboardRow]]:
    """The first rows now, and again whenever they are others."""
    size = _USUAL_PAGE if first is None else first
    if not 1 <= size <= _LARGEST_PAGE:
        message = f"`first` is 1 to {_LARGEST_PAGE}."
        raise InvalidInput(message, path=("first",))
    known = standings(ctx)
    if not voting_store.is_slug(board) or await known.board(board) is None:
        message = f"There is no board called {board}."
        raise InvalidInput(message, path=("board",))

    async def look() -> list[LeaderboardRow]:
        now = await known.board(board)
        return ranked((await known.leaders(now, None, size)).records) if now else []

    async for rows in ctx.services.live.changes(("leaderboard", board, size), look):
        yield rows


# ── head to head ──


async def matchup(ctx: Context, /, *, left: ContenderId, right: ContenderId) -> Matchup | None:
    first, second = parse_contender_key(left), parse_contender_key(right)
    if first is None or second is None or first[0] != second[0]:
        return None
    if first == second:
        message = "Name two different contenders."
        raise InvalidInput(message, path=("right",))
    known = standings(ctx)
    there = await known.contenders.load_many([first, second])
    if None in there:
        return None
    return await load_matchup(ctx, first[0], first[1], second[1])


async def load_matchup(ctx: Context, slug: str, left: int, right: int) -> Matchup:
    now = await standings(ctx).boards.load(slug)
    if now is None:
        raise NotFound
    pair = (min(left, right), max(left, right))
    [record] = await voting_store.read_pair_records(ctx.table, now.board, [pair], consistent=True)
    return Matchup.of(record, low_is_left=left < right)


async def matchups(
    ctx: Context, /, *, board: str = MAIN, contender: ContenderId | None = None, window: Window
) -> Page[Matchup]:
    """Pairs that were voted on: the board's in the order of joining, or those of one contender, on its own board."""
    if contender is not None:
        return await _contender_matchups(ctx, parse_contender_key(contender), window)
    request = voting_store.pairs_request(board, window)
    found = await standings(ctx).board(board) if voting_store.is_slug(board) else None
    if found is None:
        return Page.cut((), request).counted(0)
    page = await voting_store.read_pairs_page(ctx.table, found, request)
    return page.map([Matchup.of(record, low_is_left=True) for record in page.nodes])


async def _contender_matchups(ctx: Context, place: tuple[str, int] | None, window: Window) -> Page[Matchup]:
    request = voting_store.contender_pairs_request(*place or ("", 0), window)
    there = await standings(ctx).contenders.load(place) if place else None
    return await _matchups(ctx, there, request) if there else Page.cut((), request).counted(0)


async def contender_matchups(ctx: Context, contender: Contender, /, *, window: Window) -> Page[Matchup]:
    """Those in which this contender stands left, by the others' order of joining."""
    request = voting_store.contender_pairs_request(contender.board, contender.ordinal, window)
    return await _matchups(ctx, contender, request)


async def _matchups(ctx: Context, contender: Contender, request: PageRequest) -> Page[Matchup]:
    board = await contender_board(ctx, contender)
    page = await voting_store.read_contender_pairs_page(ctx.table, board, contender.ordinal, request)
    return page.map([Matchup.of(record, low_is_left=record.low == contender.ordinal) for record in page.nodes])


async def matchup_left(ctx: Context, matchup: Matchup, /) -> Contender:
    return await contender_at(ctx, matchup.board, matchup.left_ordinal)


async def matchup_right(ctx: Context, matchup: Matchup, /) -> Contender:
    return await contender_at(ctx, matchup.board, matchup.right_ordinal)


async def contender_at(ctx: Context, board: str, ordinal: int) -> Contender:
    """Somebody whom a record names. Who has just joined, through another process, is read anew."""
    found = await standings(ctx).contenders.load((board, ordinal))
    if found is None:
        found = await voting_store.read_contender(ctx.table, board, ordinal, consistent=True)
    if found is None:
        raise NotFound
    return found
