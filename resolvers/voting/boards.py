"""Boards, contenders, the leaderboard and head-to-head records: one function per field."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated

from datastore import voting as voting_store
from datastore.dynamo import Page, Window
from datastore.refusals import InvalidInput
from datastore.voting import MAIN, Board, CountedContender, Details
from resolvers.requests.context import Context, NodeOf
from resolvers.voting.hours import is_open
from resolvers.voting.visibility import (
    LeaderboardRow,
    Matchup,
    Results,
    ShownBoard,
    ShownContender,
    board_cache,
    results,
    results_of,
)

ContenderId = Annotated[str, NodeOf("Contender")]

_CONTENDER_KEY = re.compile(r"([a-z0-9-]{1,64})/(0|[1-9][0-9]{0,5})")
_LARGEST_PAGE = 100
_USUAL_PAGE = 20


def parse_contender_key(key: str) -> tuple[str, int] | None:
    """The board and ordinal in the key of a contender's id."""
    match = _CONTENDER_KEY.fullmatch(key)
    return (match[1], int(match[2])) if match else None


# ── boards ──


async def board(ctx: Context, /, *, slug: str = MAIN) -> ShownBoard | None:
    found = await _load_results(ctx, slug)
    return found.board if found else None


async def _load_results(ctx: Context, slug: str) -> Results | None:
    """A board's results, which include all votes of two seconds ago; None if there is no such board."""
    current = await board_cache(ctx).board(slug) if voting_store.is_slug(slug) else None
    return await results(ctx, current) if current else None


async def boards(ctx: Context, /, *, window: Window) -> Page[ShownBoard]:
    """Each board is read again, since the index settles nothing; as the index shows it if that fails."""
    page, cache = await voting_store.read_boards_page(ctx.table, window), board_cache(ctx)
    found = await asyncio.gather(*(cache.board(listed.slug) for listed in page.nodes), return_exceptions=True)
    current = [
        settled if isinstance(settled, Board) else listed for listed, settled in zip(page.nodes, found, strict=True)
    ]
    return page.map([(await results(ctx, each)).board for each in current])


def closed(ctx: Context, board: ShownBoard, /) -> bool:
    return not is_open(board, ctx.now())


async def contender_board(ctx: Context, contender: ShownContender, /) -> ShownBoard:
    return (await results_of(ctx, contender.board)).board


# ── contenders ──


async def contender(ctx: Context, /, *, id: ContenderId) -> ShownContender | None:  # noqa: A002 - the argument's public name
    key = parse_contender_key(id)
    of_board = await _load_results(ctx, key[0]) if key else None
    return await of_board.contender(key[1]) if key and of_board else None


async def contenders(ctx: Context, /, *, board: str = MAIN, window: Window) -> Page[ShownContender]:
    request = voting_store.contenders_request(board, window)
    of_board = await _load_results(ctx, board)
    return await of_board.contenders(request) if of_board else Page.cut((), request).counted(0)


async def board_contenders(ctx: Context, board: ShownBoard, /, *, window: Window) -> Page[ShownContender]:
    return await (await results(ctx, board)).contenders(voting_store.contenders_request(board.slug, window))


async def svg(ctx: Context, contender: ShownContender, /) -> str | None:
    return await board_cache(ctx).pictures.load((contender.board, contender.ordinal)) or None


async def description(ctx: Context, contender: ShownContender, /) -> str | None:
    return (await _details(ctx, contender)).description


async def link(ctx: Context, contender: ShownContender, /) -> str | None:
    return (await _details(ctx, contender)).link


async def image_url(ctx: Context, contender: ShownContender, /) -> str | None:
    return (await _details(ctx, contender)).image_url


async def _details(ctx: Context, contender: ShownContender) -> Details:
    key = (contender.board, contender.ordinal)
    return await board_cache(ctx).details.load(key) or Details(*key)


# ── the leaderboard ──


async def leaderboard(ctx: Context, /, *, board: str = MAIN, window: Window) -> Page[LeaderboardRow]:
    request = voting_store.leaderboard_request(board, window)
    of_board = await _load_results(ctx, board)
    return await of_board.leaderboard(request) if of_board else Page.cut((), request).counted(0)


async def board_leaderboard(ctx: Context, board: ShownBoard, /, *, window: Window) -> Page[LeaderboardRow]:
    return await (await results(ctx, board)).leaderboard(voting_store.leaderboard_request(board.slug, window))


async def leaderboard_changed(
    ctx: Context, /, *, board: str = MAIN, first: int | None = None
) -> AsyncGenerator[list[LeaderboardRow]]:
    """The first rows now, and again after each change."""
    size = _USUAL_PAGE if first is None else first
    if not 1 <= size <= _LARGEST_PAGE:
        raise InvalidInput(f"`first` is 1 to {_LARGEST_PAGE}.", path=("first",))
    if await _load_results(ctx, board) is None:
        raise InvalidInput(f"There is no board called {board[:64]}.", path=("board",))
    cache = board_cache(ctx)

    async def look(number: int) -> Sequence[CountedContender]:
        current = await cache.board(board)
        return (await cache.results(current)).leaders(None, number) if current else ()

    async for leaders in ctx.services.live.rows(("leaderboard", board), look, size, ctx.address):
        of_board = await _load_results(ctx, board)
        yield of_board.from_the_top(leaders) if of_board else []


# ── head to head ──


async def matchup(ctx: Context, /, *, left: ContenderId, right: ContenderId) -> Matchup | None:
    first, second = parse_contender_key(left), parse_contender_key(right)
    if first is None or second is None or first[0] != second[0]:
        return None
    if first == second:
        raise InvalidInput("Name two different contenders.", path=("right",))
    if None in await board_cache(ctx).contenders.load_many([first, second]):
        return None
    return await (await results_of(ctx, first[0])).matchup(first[1], second[1])


async def matchups(
    ctx: Context, /, *, board: str = MAIN, contender: ContenderId | None = None, window: Window
) -> Page[Matchup]:
    """The pairs with votes: of a board in the order of joining, or of one contender on its own board."""
    if contender is not None:
        return await _matchups_of(ctx, parse_contender_key(contender), window)
    request = voting_store.pairs_request(board, window)
    of_board = await _load_results(ctx, board)
    return await of_board.matchups(request) if of_board else Page.cut((), request).counted(0)


async def _matchups_of(ctx: Context, key: tuple[str, int] | None, window: Window) -> Page[Matchup]:
    request = voting_store.contender_pairs_request(*key or ("", 0), window)
    found = await board_cache(ctx).contenders.load(key) if key else None
    if found is None:
        return Page.cut((), request).counted(0)
    return await (await results_of(ctx, found.board)).matchups_of(found, request)


async def contender_matchups(ctx: Context, contender: ShownContender, /, *, window: Window) -> Page[Matchup]:
    request = voting_store.contender_pairs_request(contender.board, contender.ordinal, window)
    return await (await results_of(ctx, contender.board)).matchups_of(contender, request)


async def matchup_left(_: Context, matchup: Matchup, /) -> ShownContender:
    return await matchup.results.contender_at(matchup.left_ordinal)


async def matchup_right(_: Context, matchup: Matchup, /) -> ShownContender:
    return await matchup.results.contender_at(matchup.right_ordinal)
