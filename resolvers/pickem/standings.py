"""Standings of a season, with their ranks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from datastore import pickem as pickem_store
from datastore.dynamo import Page, Window
from datastore.people.profiles import Profile
from datastore.refusals import InvalidInput, NotFound
from resolvers.loading.batched import batched
from resolvers.people.visibility import ShownProfile, authors
from resolvers.pickem import rules
from resolvers.pickem.cache import PickemCache, pickem_cache
from resolvers.pickem.league_pages import league_standings_changed
from resolvers.pickem.leagues import LeagueId
from resolvers.pickem.visibility import StandingView, show_ranked
from resolvers.requests.context import Context

PAGE_SIZE = 20
LARGEST_PAGE = 100


async def standings(ctx: Context, /, *, season: str, window: Window) -> Page[StandingView]:
    """By points, then by correct picks, then by time of joining. Equal points share a rank."""
    name = _validate_season(season)
    cache, reading = pickem_cache(ctx), pickem_store.read_standings_page(ctx.table, name, window)
    if window.cursor is None:
        reading = cache.with_prefetched_profiles(f"standings of {name}", reading)
    page, (season_record, histogram) = await asyncio.gather(reading, cache.season_ranks(name))
    return page.map([show_ranked(standing, histogram) for standing in page.nodes]).counted(season_record.members)


async def user_standings(ctx: Context, profile: Profile, /) -> list[StandingView]:
    """One for each season, in descending order of their names."""
    cache = pickem_cache(ctx)
    member = await cache.members.load((profile.user, None))
    standings = member.standings if member else ()
    seasons = await asyncio.gather(*(cache.season_ranks(standing.season) for standing in standings))
    return [show_ranked(standing, histogram) for standing, (_, histogram) in zip(standings, seasons, strict=True)]


async def user_standing(ctx: Context, profile: Profile, /, *, season: str) -> StandingView | None:
    name = _validate_season(season)
    standing, (_, histogram) = await asyncio.gather(
        pickem_store.read_standing(ctx.table, profile.user, name), pickem_cache(ctx).season_ranks(name)
    )
    return show_ranked(standing, histogram) if standing else None


@batched
async def standing_users(ctx: Context, standings: Sequence[StandingView], /) -> list[ShownProfile]:
    return await authors(ctx, [standing.user for standing in standings])


async def standings_changed(
    ctx: Context, /, *, season: str, league: LeagueId | None = None, first: int | None = None
) -> AsyncGenerator[list[StandingView]]:
    """The first rows, of the season or of a league, immediately; then again after each change."""
    name, size = _validate_season(season), PAGE_SIZE if first is None else first
    if not 1 <= size <= LARGEST_PAGE:
        raise InvalidInput(f"`first` is 1 to {LARGEST_PAGE}.", path=("first",))
    if league is not None:
        async with aclosing(league_standings_changed(ctx, season=name, league=league, size=size)) as changes:
            async for rows_of_league in changes:
                yield rows_of_league
        return
    services = ctx.services
    cache = services.get(PickemCache)
    if not await cache.has_event(name):  # else anyone could have this process read invented seasons forever
        raise NotFound("There is no event in this season.", path=("season",))

    async def read_rows(number: int) -> list[StandingView]:
        page = await pickem_store.read_standings_page(services.table, name, Window(number, services.seal))
        _, histogram = await cache.season_ranks(name)
        return [show_ranked(standing, histogram) for standing in page.nodes]

    async for rows in services.live.rows(("standings", name), read_rows, size, ctx.address):
        yield list(rows)


def _validate_season(text: str) -> str:
    """A season's name as it is stored. The error names the query's argument instead of an input field."""
    try:
        return rules.validate_season(text)
    except InvalidInput as refused:
        raise InvalidInput(refused.message, path=("season",)) from None
