"""Boards, contenders, the leaderboard and head-to-head records: one function per field."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, NamedTuple

from datastore.dynamo import Page, Window, page_size
from datastore.refusals import InvalidInput, NotFound, require_revision
from datastore.values.folding import MOST_MARKS
from datastore.voting import boards as board_store
from datastore.voting import contenders as contender_store
from datastore.voting import editing, votes
from datastore.voting.boards import MAIN, Board, Electorate, ResultsVisible
from datastore.voting.editing import ContenderChange
from resolvers.loading import batched
from resolvers.people.identities import look_again
from resolvers.requests.context import UNSET, Context, NodeOf, Role, Unset, parse_given
from resolvers.values.texts import is_line, parse_image_address, parse_line, parse_lines, parse_link
from resolvers.voting import visibility
from resolvers.voting.rules import is_open, is_over, validate_electorate, validate_hours, with_electorate, with_hours
from resolvers.voting.settling import version_key
from resolvers.voting.svg import PicturePreview, parse_picture, preview_picture

# ── ids ──

ContenderId = Annotated[str, NodeOf("Contender")]

PREVIEW_RATE = "120/minute"
"""Pictures that one editor may preview in each process: each takes up to a tenth of a second."""
_CONTENDER_KEY = re.compile(r"([a-z0-9-]{1,64})/(0|[1-9][0-9]{0,3})")
"""A board has at most 10,000 contenders: there are no results to read of others."""


def parse_contender_key(key: str) -> tuple[str, int] | None:
    """The board and ordinal in the key of a contender's id."""
    match = _CONTENDER_KEY.fullmatch(key)
    return (match[1], int(match[2])) if match else None


# ── boards ──


async def board(ctx: Context, /, *, slug: str = MAIN) -> visibility.ShownBoard | None:
    found = await _load_results(ctx, slug)
    return found.board if found else None


async def _load_results(ctx: Context, slug: str) -> visibility.Results | None:
    """A board's results, which include all votes of two seconds ago; None if there is no such board."""
    return await visibility.settled_results(ctx, slug) if board_store.is_slug(slug) else None


async def boards(ctx: Context, /, *, window: Window) -> Page[visibility.ShownBoard]:
    """Each board is read again, since the index is not settled; if that fails, it is shown as the index has it."""
    page = await board_store.read_boards_page(ctx.table, window)
    found = await asyncio.gather(
        *(visibility.settled_results(ctx, each.slug) for each in page.nodes), return_exceptions=True
    )
    return page.map(
        [
            (settled if isinstance(settled, visibility.Results) else await visibility.results(ctx, listed)).board
            for listed, settled in zip(page.nodes, found, strict=True)
        ]
    )


def closed(ctx: Context, board: visibility.ShownBoard, /) -> bool:
    return not is_open(board, ctx.now())


async def contender_board(ctx: Context, contender: visibility.ShownContender, /) -> visibility.ShownBoard:
    return (await visibility.results_of(ctx, contender.board)).board


# ── contenders ──


async def contender(ctx: Context, /, *, id: ContenderId) -> visibility.ShownContender | None:  # noqa: A002 - the argument's public name
    key = parse_contender_key(id)
    of_board = await _load_results(ctx, key[0]) if key else None
    return await of_board.contender(key[1]) if key and of_board else None


async def contenders(ctx: Context, /, *, board: str = MAIN, window: Window) -> Page[visibility.ShownContender]:
    request = contender_store.contenders_request(board, window)
    of_board = await _load_results(ctx, board)
    return await of_board.contenders(request) if of_board else Page.cut((), request).counted(0)


async def board_contenders(
    ctx: Context, board: visibility.ShownBoard, /, *, window: Window
) -> Page[visibility.ShownContender]:
    return await (await visibility.results(ctx, board)).contenders(
        contender_store.contenders_request(board.slug, window)
    )


async def svg(ctx: Context, contender: visibility.ShownContender, /) -> str | None:
    return await visibility.board_cache(ctx).pictures.load(version_key(contender)) or None


async def description(ctx: Context, contender: visibility.ShownContender, /) -> str | None:
    return (await _details(ctx, contender)).description


async def link(ctx: Context, contender: visibility.ShownContender, /) -> str | None:
    return (await _details(ctx, contender)).link


async def image_url(ctx: Context, contender: visibility.ShownContender, /) -> str | None:
    return (await _details(ctx, contender)).image_url


async def _details(ctx: Context, contender: visibility.ShownContender) -> contender_store.Details:
    found = await visibility.board_cache(ctx).details.load(version_key(contender))
    return found or contender_store.Details(contender.board, contender.ordinal)


# ── the leaderboard ──


async def leaderboard(ctx: Context, /, *, board: str = MAIN, window: Window) -> visibility.LeaderboardPage:
    request = contender_store.leaderboard_request(board, window)
    of_board = await _load_results(ctx, board)
    return await of_board.leaderboard(request) if of_board else visibility.empty_leaderboard(request)


async def board_leaderboard(
    ctx: Context, board: visibility.ShownBoard, /, *, window: Window
) -> visibility.LeaderboardPage:
    return await (await visibility.results(ctx, board)).leaderboard(
        contender_store.leaderboard_request(board.slug, window)
    )


class _Moment(NamedTuple):
    """What decides, besides their own votes, whether viewers see results. It changes with each settling."""

    results_visible: ResultsVisible
    over: bool
    settled: int


async def leaderboard_changed(
    ctx: Context, /, *, board: str = MAIN, first: int | None = None
) -> AsyncGenerator[list[visibility.LeaderboardRow]]:
    """The first rows now, and again after each change; nothing while they are hidden."""
    size = page_size(first)
    if await _load_results(ctx, board) is None:
        raise board_store.board_not_found(board)
    cache = visibility.board_cache(ctx)

    async def read(number: int) -> Sequence[tuple[_Moment | None, contender_store.CountedContender]]:
        current = await cache.board(board)
        if current is None:
            return ()
        moment = None
        if current.results_visible is not ResultsVisible.ALWAYS:
            moment = _Moment(current.results_visible, is_over(current, ctx.now()), current.settled)
        return [(moment, leader) for leader in (await cache.results(current)).leaders(None, number)]

    shown = None
    async for leaders in ctx.services.live.rows(("leaderboard", board), read, size, ctx.address):
        look_again(ctx)
        cache.may_have_voted(ctx.viewer.id, board)
        of_board = await visibility.results_of(ctx, board)
        rows = None if of_board.hidden else visibility.from_the_top([leader for _, leader in leaders])
        if rows is not None and rows != shown:
            yield rows
        shown = rows


# ── head to head ──


async def matchup(ctx: Context, /, *, left: ContenderId, right: ContenderId) -> visibility.Matchup | None:
    first, second = parse_contender_key(left), parse_contender_key(right)
    if first is None or second is None or first[0] != second[0]:
        return None
    if first == second:
        raise InvalidInput("Name two different contenders.", path=("right",))
    if None in await visibility.board_cache(ctx).contenders.load_many([first, second]):
        return None
    return await (await visibility.results_of(ctx, first[0])).matchup(first[1], second[1])


async def matchups(
    ctx: Context, /, *, board: str = MAIN, contender: ContenderId | None = None, window: Window
) -> Page[visibility.Matchup]:
    """The pairs with votes: a board's in the order of joining, or one contender's."""
    if contender is not None:
        return await _matchups_of(ctx, parse_contender_key(contender), window)
    request = window.open(f"matchups {board}")
    of_board = await _load_results(ctx, board)
    return await of_board.matchups(request) if of_board else Page.cut((), request).counted(0)


async def _matchups_of(ctx: Context, key: tuple[str, int] | None, window: Window) -> Page[visibility.Matchup]:
    request = votes.contender_pairs_request(*key or ("", 0), window)
    found = await visibility.board_cache(ctx).contenders.load(key) if key else None
    if found is None:
        return Page.cut((), request).counted(0)
    return await (await visibility.results_of(ctx, found.board)).matchups_of(found, request)


async def contender_matchups(
    ctx: Context, contender: visibility.ShownContender, /, *, window: Window
) -> Page[visibility.Matchup]:
    request = votes.contender_pairs_request(contender.board, contender.ordinal, window)
    return await (await visibility.results_of(ctx, contender.board)).matchups_of(contender, request)


@batched
async def matchup_left(_: Context, matchups: Sequence[visibility.Matchup], /) -> list[visibility.ShownContender]:
    return await visibility.contenders_of([(each.results, each.left_ordinal) for each in matchups])


@batched
async def matchup_right(_: Context, matchups: Sequence[visibility.Matchup], /) -> list[visibility.ShownContender]:
    return await visibility.contenders_of([(each.results, each.right_ordinal) for each in matchups])


# ── changing boards ──
# What editors change: boards and their hours, contenders, their retirement. One function per mutation.


async def create_board(
    ctx: Context,
    /,
    *,
    slug: str,
    title: str,
    opens_at: datetime | None = None,
    closes_at: datetime | None = None,
    electorate: Electorate = Electorate.EVERYBODY,
    members_since: datetime | None = None,
    results_visible: ResultsVisible = ResultsVisible.ALWAYS,
) -> Board:
    ctx.with_role(Role.EDITOR)
    if not board_store.is_slug(slug):
        raise InvalidInput(
            "A slug has 1 to 64 lowercase letters, digits and dashes, and neither begins nor ends with a dash.",
            path=("input", "slug"),
        )
    plain = Board(slug, parse_title(title), ctx.now(), results_visible=results_visible)
    new = with_electorate(with_hours(plain, opens_at, closes_at), electorate, members_since)
    validate_hours(new, None, ctx.now())
    validate_electorate(new)
    created = await board_store.create_board(ctx.table, new, ctx.unit)
    visibility.board_cache(ctx).changed(slug)
    return created


async def update_board(  # noqa: PLR0913 - the arguments of the mutation
    ctx: Context,
    /,
    *,
    slug: str,
    title: str | None = None,
    opens_at: datetime | Unset | None = UNSET,
    closes_at: datetime | Unset | None = UNSET,
    electorate: Electorate | None = None,
    members_since: datetime | Unset | None = UNSET,
    results_visible: ResultsVisible | None = None,
    revision: int | None = None,
) -> Board:
    """Change the given fields. A null time is no limit."""
    ctx.with_role(Role.EDITOR)
    if not board_store.is_slug(slug):
        raise board_store.board_not_found(slug, "slug")
    new_title = None if title is None else parse_title(title)

    def change(board: Board) -> Board:
        require_revision(board.revision, revision)
        changed = with_electorate(with_hours(board, opens_at, closes_at), electorate, members_since)
        visible = results_visible or board.results_visible
        return replace(changed, title=new_title or board.title, results_visible=visible)

    def check(before: Board, after: Board) -> None:
        validate_hours(after, before, ctx.now())
        validate_electorate(after)

    changed = await editing.change_board(ctx.table, slug, change, check, ctx.unit)
    visibility.board_cache(ctx).changed(slug)
    return changed


# ── changing contenders ──


async def add_contender(
    ctx: Context,
    /,
    *,
    board: str = MAIN,
    name: str,
    svg: str | None = None,
    description: str | None = None,
    link: str | None = None,
    image_url: str | None = None,
) -> contender_store.Contender:
    ctx.with_role(Role.EDITOR)
    if not board_store.is_slug(board):
        raise board_store.board_not_found(board)
    change = ContenderChange(
        ctx.new_id(),
        parse_name(name),
        None if svg is None else await asyncio.to_thread(parse_picture, svg),
        details=parse_details(ctx.services.policy.image_hosts, description, link, image_url),
    )
    added = await editing.add_contender(ctx.table, board, change, ctx.now(), ctx.unit)
    visibility.board_cache(ctx).changed(board, added, change)
    return added


async def preview_contender(ctx: Context, /, *, svg: str) -> PicturePreview:
    viewer = ctx.with_role(Role.EDITOR)
    ctx.services.rates.hit(PREVIEW_RATE, "pictures", viewer.id)
    return await asyncio.to_thread(preview_picture, svg)


async def update_contender(
    ctx: Context,
    /,
    *,
    contender: ContenderId,
    name: str | None = None,
    svg: str | Unset | None = UNSET,
    description: str | Unset | None = UNSET,
    link: str | Unset | None = UNSET,
    image_url: str | Unset | None = UNSET,
    revision: int | None = None,
) -> contender_store.Contender:
    """Change the given fields. Null removes all but the name."""
    ctx.with_role(Role.EDITOR)
    change = ContenderChange(
        ctx.new_id(),
        None if name is None else parse_name(name),
        await asyncio.to_thread(parse_picture, svg) if isinstance(svg, str) else None,
        replaces_picture=svg is not UNSET,
        revision=revision,
        details=parse_details(ctx.services.policy.image_hosts, description, link, image_url),
    )
    changed = await editing.change_contender(ctx.table, _parse_contender(contender), change, ctx.unit)
    visibility.board_cache(ctx).changed(changed.board, changed, change)
    return changed


def parse_details(
    image_hosts: tuple[str, ...],
    description: str | Unset | None,
    link: str | Unset | None,
    image_url: str | Unset | None,
) -> Mapping[str, str | None]:
    """The fields of `Details` that are set."""
    return parse_given(
        description=(description, parse_description),
        link=(link, lambda text: parse_link(text, ("input", "link"))),
        image_url=(image_url, lambda text: parse_image_address(text, image_hosts, ("input", "imageUrl"))),
    )


async def retire_contender(ctx: Context, /, *, contender: ContenderId) -> contender_store.Contender:
    return await _set_retired(ctx, contender, retired=True)


async def restore_contender(ctx: Context, /, *, contender: ContenderId) -> contender_store.Contender:
    return await _set_retired(ctx, contender, retired=False)


async def _set_retired(ctx: Context, contender: str, *, retired: bool) -> contender_store.Contender:
    ctx.with_role(Role.EDITOR)
    changed = await editing.set_retired(ctx.table, _parse_contender(contender), ctx.unit, retired=retired)
    visibility.board_cache(ctx).changed(changed.board, changed)
    return changed


def _parse_contender(key: str) -> tuple[str, int]:
    contender_key = parse_contender_key(key)
    if contender_key is None:
        raise NotFound(path=("input", "contender"))
    return contender_key


# ── texts ──
# Rules for what editors write about boards and contenders. All of them raise InvalidInput.

LONGEST_NAME = 80
LONGEST_FOLDED = 800
"""Bytes of a normalised name, which is part of a key of at most 1,024: one Arabic ligature becomes 18 letters."""
LONGEST_TITLE = 120
LONGEST_DESCRIPTION = 500
_CHARACTERS = f"no invisible ones, and no more than {MOST_MARKS} accents or other marks in a row"
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u2060-\u2065\ufeff]")
"""What would make two names look the same."""


def parse_title(text: str) -> str:
    return parse_line(text, LONGEST_TITLE, "A title", ("input", "title"))


def parse_name(text: str) -> str:
    name = " ".join(text.split())
    if not is_line(name, LONGEST_NAME) or _INVISIBLE.search(name):
        raise InvalidInput(f"A name has 1 to {LONGEST_NAME} characters, {_CHARACTERS}.", path=("input", "name"))
    if len(contender_store.folded_for_keys(name).encode()) > LONGEST_FOLDED:
        raise InvalidInput(
            "This name is too long once its ligatures are spelled out. Choose a shorter one.", path=("input", "name")
        )
    return name


def parse_description(text: str) -> str:
    return parse_lines(text, LONGEST_DESCRIPTION, "A description", ("input", "description"))
