"""Boards, contenders, the leaderboard and head-to-head records: one function per field."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from datastore import voting as voting_store
from datastore.dynamo import Page, PageRequest, Window
from datastore.refusals import InvalidInput, NotFound
from datastore.voting import MAIN, Board, Contender, Details, PairTally
from resolvers.context import Context, NodeOf
from resolvers.voting.board_cache import BoardCache
from resolvers.voting.hours import is_open

ContenderId = Annotated[str, NodeOf("Contender")]

_CONTENDER_KEY = re.compile(r"([a-z0-9-]{1,64})/(0|[1-9][0-9]{0,5})")
_LARGEST_PAGE = 100
_USUAL_PAGE = 20


class LeaderboardRow(NamedTuple):
    """A contender and its rank."""

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


def board_cache(ctx: Context) -> BoardCache:
    return ctx.services.get(BoardCache)


def parse_contender_key(key: str) -> tuple[str, int] | None:
    """The board and ordinal in the key of a contender's id."""
    match = _CONTENDER_KEY.fullmatch(key)
    return (match[1], int(match[2])) if match else None


# ── boards ──


async def board(ctx: Context, /, *, slug: str = MAIN) -> Board | None:
    return await _load_board(ctx, slug)


async def _load_board(ctx: Context, slug: str) -> Board | None:
    return await board_cache(ctx).board(slug) if voting_store.is_slug(slug) else None


async def boards(ctx: Context, /, *, window: Window) -> Page[Board]:
    """Each board is read again, since the index settles nothing; as the index shows it if that fails."""
    page, cache = await voting_store.read_boards_page(ctx.table, window), board_cache(ctx)
    found = await asyncio.gather(*(cache.board(listed.slug) for listed in page.nodes), return_exceptions=True)
    return page.map(
        settled if isinstance(settled, Board) else listed for listed, settled in zip(page.nodes, found, strict=True)
    )


def closed(ctx: Context, board: Board, /) -> bool:
    return not is_open(board, ctx.now())


async def contender_board(ctx: Context, contender: Contender, /) -> Board:
    cached = await board_cache(ctx).boards.load(contender.board)
    if cached is None:
        raise NotFound
    return cached.board


# ── contenders ──


async def contender(ctx: Context, /, *, id: ContenderId) -> Contender | None:  # noqa: A002 - the argument's public name
    key = parse_contender_key(id)
    if key is None or await board_cache(ctx).board(key[0]) is None:
        return None
    return await board_cache(ctx).contenders.load(key)


async def contenders(ctx: Context, /, *, board: str = MAIN, window: Window) -> Page[Contender]:
    request = voting_store.contenders_request(board, window)
    current = await _load_board(ctx, board)
    return await _contenders(ctx, current, request) if current else Page.cut((), request).counted(0)


async def board_contenders(ctx: Context, board: Board, /, *, window: Window) -> Page[Contender]:
    return await _contenders(ctx, board, voting_store.contenders_request(board.slug, window))


async def _contenders(ctx: Context, board: Board, request: PageRequest) -> Page[Contender]:
    page = await voting_store.read_contenders_page(ctx.table, board, request)
    return page.counted(board.size)


async def svg(ctx: Context, contender: Contender, /) -> str | None:
    return await board_cache(ctx).pictures.load((contender.board, contender.ordinal)) or None


async def description(ctx: Context, contender: Contender, /) -> str | None:
    return (await _details(ctx, contender)).description


async def link(ctx: Context, contender: Contender, /) -> str | None:
    return (await _details(ctx, contender)).link


async def image_url(ctx: Context, contender: Contender, /) -> str | None:
    return (await _details(ctx, contender)).image_url


async def _details(ctx: Context, contender: Contender) -> Details:
    key = (contender.board, contender.ordinal)
    return await board_cache(ctx).details.load(key) or Details(*key)


async def rank(ctx: Context, contender: Contender, /) -> int | None:
    if contender.retired:
        return None
    return await board_cache(ctx).rank(await contender_board(ctx, contender), contender.score)


# ── the leaderboard ──


async def leaderboard(ctx: Context, /, *, board: str = MAIN, window: Window) -> Page[LeaderboardRow]:
    request = voting_store.leaderboard_request(board, window)
    current = await _load_board(ctx, board)
    return await _leaderboard(ctx, current, request) if current else Page.cut((), request).counted(0)


async def board_leaderboard(ctx: Context, board: Board, /, *, window: Window) -> Page[LeaderboardRow]:
    return await _leaderboard(ctx, board, voting_store.leaderboard_request(board.slug, window))


async def _leaderboard(ctx: Context, board: Board, request: PageRequest) -> Page[LeaderboardRow]:
    cache = board_cache(ctx)
    leaders = await cache.leaders(board, request.position, request.wanted)
    page = Page.cut(leaders.items, request)
    if request.position is None:
        rows = rank_from_top(page.nodes)
    else:
        rows = [LeaderboardRow(await cache.rank(board, contender.score), contender) for contender in page.nodes]
    return page.map(rows).counted(board.contender_count)


def rank_from_top(contenders: Sequence[Contender]) -> list[LeaderboardRow]:
    """Leaderboard rows with shared ranks, best first: 1, 1, 3."""
    rows: list[LeaderboardRow] = []
    rank, score_above = 1, None
    for position, contender in enumerate(contenders, 1):
        score = contender.score
        if score != score_above:
            rank, score_above = position, score
        rows.append(LeaderboardRow(rank, contender))
    return rows


async def leaderboard_changed(
    ctx: Context, /, *, board: str = MAIN, first: int | None = None
) -> AsyncGenerator[list[LeaderboardRow]]:
    """The first rows now, and again after each change."""
    size = _USUAL_PAGE if first is None else first
    if not 1 <= size <= _LARGEST_PAGE:
        raise InvalidInput(f"`first` is 1 to {_LARGEST_PAGE}.", path=("first",))
    cache = board_cache(ctx)
    if not voting_store.is_slug(board) or await cache.board(board) is None:
        raise InvalidInput(f"There is no board called {board[:64]}.", path=("board",))

    async def look(number: int) -> list[LeaderboardRow]:
        current = await cache.board(board)
        return rank_from_top((await cache.leaders(current, None, number)).records) if current else []

    async for rows in ctx.services.live.rows(("leaderboard", board), look, size, ctx.address):
        yield list(rows)


# ── head to head ──


async def matchup(ctx: Context, /, *, left: ContenderId, right: ContenderId) -> Matchup | None:
    first, second = parse_contender_key(left), parse_contender_key(right)
    if first is None or second is None or first[0] != second[0]:
        return None
    if first == second:
        raise InvalidInput("Name two different contenders.", path=("right",))
    if None in await board_cache(ctx).contenders.load_many([first, second]):
        return None
    return await load_matchup(ctx, first[0], first[1], second[1])


async def load_matchup(ctx: Context, slug: str, left: int, right: int) -> Matchup:
    cached = await board_cache(ctx).boards.load(slug)
    if cached is None:
        raise NotFound
    pair = (min(left, right), max(left, right))
    record = await voting_store.read_pair_record(ctx.table, cached.board, *pair)
    return Matchup.of(record, low_is_left=left < right)


async def matchups(
    ctx: Context, /, *, board: str = MAIN, contender: ContenderId | None = None, window: Window
) -> Page[Matchup]:
    """The pairs with votes: of a board in the order of joining, or of one contender on its own board."""
    if contender is not None:
        return await _contender_matchups(ctx, parse_contender_key(contender), window)
    request = voting_store.pairs_request(board, window)
    current = await _load_board(ctx, board)
    if current is None:
        return Page.cut((), request).counted(0)
    page = await voting_store.read_pairs_page(ctx.table, current, request)
    return page.map([Matchup.of(record, low_is_left=True) for record in page.nodes])


async def _contender_matchups(ctx: Context, key: tuple[str, int] | None, window: Window) -> Page[Matchup]:
    request = voting_store.contender_pairs_request(*key or ("", 0), window)
    contender = await board_cache(ctx).contenders.load(key) if key else None
    return await _matchups(ctx, contender, request) if contender else Page.cut((), request).counted(0)


async def contender_matchups(ctx: Context, contender: Contender, /, *, window: Window) -> Page[Matchup]:
    """The matchups with this contender on the left, in the order in which the others joined."""
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
    """A contender that a record names. One that has just joined through another process is read consistently."""
    contender = await board_cache(ctx).contender(board, ordinal)
    if contender is None:
        contender = await voting_store.read_contender(ctx.table, board, ordinal)
    if contender is None:
        raise NotFound
    return contender
