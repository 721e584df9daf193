"""Standings of a season, with the rank of each among all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from datastore import pickem as pickem_store
from datastore.dynamo import Page, Window
from datastore.people import Profile
from datastore.refusals import InvalidInput
from resolvers.context import Context
from resolvers.loading.batched import batched
from resolvers.people import authors
from resolvers.pickem import rules
from resolvers.pickem.cache import Pickem, pickem_cache
from resolvers.pickem.views import StandingView, standing_view

PAGE_SIZE = 20
LARGEST_PAGE = 100


async def standings(ctx: Context, /, *, season: str, window: Window) -> Page[StandingView]:
    """By points, then by correct picks, then who joined first. The same points share a rank."""
    name = _season(season)
    page, (about, histogram) = await asyncio.gather(
        pickem_store.read_standings_page(ctx.table, name, window), pickem_cache(ctx).season_ranks(name)
    )
    return page.map([standing_view(one, histogram) for one in page.nodes]).counted(about.members)


async def user_standings(ctx: Context, profile: Profile, /) -> list[StandingView]:
    """One for each season the member has played in, the last by name first."""
    kept = pickem_cache(ctx)
    loaded = await kept.members.load((profile.user, None))
    found = loaded.standings if loaded else ()
    seasons = await asyncio.gather(*(kept.season_ranks(one.season) for one in found))
    return [standing_view(one, histogram) for one, (_, histogram) in zip(found, seasons, strict=True)]


async def user_standing(ctx: Context, profile: Profile, /, *, season: str) -> StandingView | None:
    name = _season(season)
    found, (_, histogram) = await asyncio.gather(
        pickem_store.read_standing(ctx.table, profile.user, name), pickem_cache(ctx).season_ranks(name)
    )
    return standing_view(found, histogram) if found else None


@batched
async def standing_users(ctx: Context, rows: Sequence[StandingView], /) -> list[Profile]:
    return await authors(ctx, [row.user for row in rows])


async def standings_changed(
    ctx: Context, /, *, season: str, first: int | None = None
) -> AsyncIterator[list[StandingView]]:
    """The first rows now, and again after each change."""
    name, size = _season(season), PAGE_SIZE if first is None else first
    if not 1 <= size <= LARGEST_PAGE:
        message = f"`first` is 1 to {LARGEST_PAGE}."
        raise InvalidInput(message, path=("first",))
    services = ctx.services
    kept = services.get(Pickem)
    window = Window(size, services.seal)

    async def look() -> list[StandingView]:
        page = await pickem_store.read_standings_page(services.table, name, window)
        _, histogram = await kept.season_ranks(name)
        return [standing_view(one, histogram) for one in page.nodes]

    async for rows in services.live.changes(("standings", name, size), look):
        yield rows


def _season(text: str) -> str:
    """A season's name as it is stored; one that no season can have is a mistake of the question."""
    try:
        return rules.validate_season(text)
    except InvalidInput as refused:
        raise InvalidInput(refused.message, path=("season",)) from None
