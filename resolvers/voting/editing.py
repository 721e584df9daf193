"""What editors change: boards and their hours, contenders, their retirement. One function per mutation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from datastore import voting as voting_store
from datastore.refusals import InvalidInput, NotFound
from datastore.voting import MAIN, Board, Contender, ContenderChange
from resolvers.requests.context import UNSET, Context, Unset
from resolvers.requests.viewer import Role
from resolvers.values.texts import parse_image_address, parse_link
from resolvers.voting.boards import ContenderId, parse_contender_key
from resolvers.voting.hours import validate_hours, with_hours
from resolvers.voting.svg import parse_picture
from resolvers.voting.texts import parse_description, parse_name, parse_title
from resolvers.voting.visibility import board_cache

# ── boards ──


async def create_board(
    ctx: Context,
    /,
    *,
    slug: str,
    title: str,
    opens_at: datetime | None = None,
    closes_at: datetime | None = None,
) -> Board:
    ctx.with_role(Role.EDITOR)
    if not voting_store.is_slug(slug):
        raise InvalidInput(
            "A slug has 1 to 64 lowercase letters, digits and dashes, and neither begins nor ends with a dash.",
            path=("input", "slug"),
        )
    new = Board(slug, parse_title(title), ctx.now(), opens_at=opens_at, closes_at=closes_at)
    validate_hours(new, None, ctx.now())
    created = await voting_store.create_board(ctx.table, new, ctx.unit)
    board_cache(ctx).changed(slug)
    return created


async def update_board(
    ctx: Context,
    /,
    *,
    slug: str,
    title: str | None = None,
    opens_at: datetime | Unset | None = UNSET,
    closes_at: datetime | Unset | None = UNSET,
) -> Board:
    """Change the given fields. A null time is no limit."""
    ctx.with_role(Role.EDITOR)
    if not voting_store.is_slug(slug):
        raise voting_store.board_not_found(slug, "slug")
    new_title = None if title is None else parse_title(title)

    def change(board: Board) -> Board:
        return replace(with_hours(board, opens_at, closes_at), title=new_title or board.title)

    def check(before: Board, after: Board) -> None:
        validate_hours(after, before, ctx.now())

    changed = await voting_store.change_board(ctx.table, slug, change, check, ctx.unit)
    board_cache(ctx).changed(slug)
    return changed


# ── contenders ──


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
) -> Contender:
    ctx.with_role(Role.EDITOR)
    if not voting_store.is_slug(board):
        raise voting_store.board_not_found(board)
    change = ContenderChange(
        ctx.new_id(),
        parse_name(name),
        None if svg is None else await asyncio.to_thread(parse_picture, svg),
        details=parse_details(ctx.services.policy.image_hosts, description, link, image_url),
    )
    added = await voting_store.add_contender(ctx.table, board, change, ctx.now(), ctx.unit)
    board_cache(ctx).changed(board, added, change)
    return added


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
) -> Contender:
    """Change the given fields. Null removes all but the name."""
    ctx.with_role(Role.EDITOR)
    change = ContenderChange(
        ctx.new_id(),
        None if name is None else parse_name(name),
        await asyncio.to_thread(parse_picture, svg) if isinstance(svg, str) else None,
        replaces_picture=svg is not UNSET,
        details=parse_details(ctx.services.policy.image_hosts, description, link, image_url),
    )
    changed = await voting_store.change_contender(ctx.table, _parse_contender(contender), change, ctx.unit)
    board_cache(ctx).changed(changed.board, changed, change)
    return changed


def parse_details(
    image_hosts: tuple[str, ...],
    description: str | Unset | None,
    link: str | Unset | None,
    image_url: str | Unset | None,
) -> Mapping[str, str | None]:
    """The fields of `Details` that are set."""
    parsed = {
        "description": parse_description(description) if isinstance(description, str) else description,
        "link": parse_link(link, ("input", "link")) if isinstance(link, str) else link,
        "image_url": parse_image_address(image_url, image_hosts, ("input", "imageUrl"))
        if isinstance(image_url, str)
        else image_url,
    }
    return {name: value for name, value in parsed.items() if not isinstance(value, Unset)}


async def retire_contender(ctx: Context, /, *, contender: ContenderId) -> Contender:
    ctx.with_role(Role.EDITOR)
    retired = await voting_store.retire_contender(ctx.table, _parse_contender(contender), unit=ctx.unit)
    board_cache(ctx).changed(retired.board, retired)
    return retired


async def restore_contender(ctx: Context, /, *, contender: ContenderId) -> Contender:
    ctx.with_role(Role.EDITOR)
    restored = await voting_store.restore_contender(ctx.table, _parse_contender(contender), unit=ctx.unit)
    board_cache(ctx).changed(restored.board, restored)
    return restored


def _parse_contender(key: str) -> tuple[str, int]:
    contender_key = parse_contender_key(key)
    if contender_key is None:
        raise NotFound(path=("input", "contender"))
    return contender_key
