"""Standings of a season, with their ranks."""

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
from resolvers.pickem.cache import PickemCache, pickem_cache
from resolvers.pickem.views import StandingView, standing_view

PAGE_SIZE = 20
LARGEST_PAGE = 100


async def standings(ctx: Context, /, *, season: str, window: Window) -> Page[StandingView]:
    """By points, then by correct picks, then by time of joining. Equal points share a rank."""
    name = _validate_season(season)
    page, (season_record, histogram) = await asyncio.gather(
        pickem_store.read_standings_page(ctx.table, name, window), pickem_cache(ctx).season_ranks(name)
    )
    return page.map([standing_view(standing, histogram) for standing in page.nodes]).counted(season_record.members)


async def user_standings(ctx: Context, profile: Profile, /) -> list[StandingView]:
    """One for each season, in descending order of their names."""
    cache = pickem_cache(ctx)
    member = await cache.members.load((profile.user, None))
    standings = member.standings if member else ()
    seasons = await asyncio.gather(*(cache.season_ranks(standing.season) for standing in standings))
    return [standing_view(standing, histogram) for standing, (_, histogram) in zip(standings, seasons, strict=True)]


async def user_standing(ctx: Context, profile: Profile, /, *, season: str) -> StandingView | None:
    name = _validate_season(season)
    standing, (_, histogram) = await asyncio.gather(
        pickem_store.read_standing(ctx.table, profile.user, name), pickem_cache(ctx).season_ranks(name)
    )
    return standing_view(standing, histogram) if standing else None


@batched
async def standing_users(ctx: Context, standings: Sequence[StandingView], /) -> list[Profile]:
    return await authors(ctx, [standing.user for standing in standings])


async def standings_changed(
    ctx: Context, /, *, season: str, first: int | None = None
) -> AsyncIterator[list[StandingView]]:
    """The first rows immediately, then again after each change."""
    name, size = _validate_season(season), PAGE_SIZE if first is None else first
    if not 1 <= size <= LARGEST_PAGE:
        raise InvalidInput(f"`first` is 1 to {LARGEST_PAGE}.", path=("first",))
    services = ctx.services
    cache = services.get(PickemCache)
    window = Window(size, services.seal)

    async def read_rows() -> list[StandingView]:
        page = await pickem_store.read_standings_page(services.table, name, window)
        _, histogram = await cache.season_ranks(name)
        return [standing_view(standing, histogram) for standing in page.nodes]

    async for rows in services.live.changes(("standings", name, size), read_rows):
        yield rows


def _validate_season(text: str) -> str:
    """A season's name as it is stored. The error names the query's argument instead of an input field."""
    try:
        return rules.validate_season(text)
    except InvalidInput as refused:
        raise InvalidInput(refused.message, path=("season",)) from None
