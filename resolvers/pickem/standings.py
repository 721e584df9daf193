"""Standings of a season, with their ranks."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

from datastore.dynamo import Page, Window, page_of, page_size
from datastore.people.profiles import Profile
from datastore.pickem.events import Event
from datastore.pickem.leagues import League
from datastore.pickem.predictions import prediction_position, read_predictions
from datastore.pickem.standings import Standing, read_standing, read_standings, read_standings_page, standing_position
from datastore.refusals import InvalidInput, NotFound
from resolvers.loading import batched
from resolvers.people.visibility import ShownProfile, authors
from resolvers.pickem import visibility
from resolvers.pickem.cache import Entries, LeagueCache, PickemCache, RosterKey, pickem_cache
from resolvers.pickem.events import EventId
from resolvers.pickem.leagues import LeagueId
from resolvers.pickem.rules import validate_season
from resolvers.requests.context import Context, Services

# ── standings ──


async def standings(ctx: Context, /, *, season: str, window: Window) -> Page[visibility.StandingView]:
    """By points, then correct picks, then nearer guesses, then time of joining. Equal points share a rank."""
    name = validate_season(season, "season")
    cache, reading = pickem_cache(ctx), read_standings_page(ctx.table, name, window)
    if window.cursor is None:
        reading = cache.with_prefetched_profiles(f"standings of {name}", reading)
    page, (season_record, histogram) = await asyncio.gather(reading, cache.season_ranks(name))
    if not histogram.total:
        none: Page[visibility.StandingView] = Page.cut((), page.request)
        return none.counted(0)
    return page.map([visibility.show_ranked(standing, histogram) for standing in page.nodes]).counted(
        season_record.members
    )


async def season_standings(
    ctx: Context, season: visibility.SeasonView, /, *, window: Window
) -> Page[visibility.StandingView]:
    return await standings(ctx, season=season.name, window=window)


async def user_standings(ctx: Context, profile: Profile, /) -> list[visibility.StandingView]:
    """One standing for each season, in descending order of the seasons' names."""
    cache = pickem_cache(ctx)
    member = await cache.members.load((profile.user, None))
    standings = member.standings if member else ()
    seasons = await asyncio.gather(*(cache.season_ranks(standing.season) for standing in standings))
    shown = map(visibility.show_ranked, standings, (histogram for _, histogram in seasons))
    return [standing for standing in shown if standing is not None]


async def user_standing(ctx: Context, profile: Profile, /, *, season: str) -> visibility.StandingView | None:
    name = validate_season(season, "season")
    standing, (_, histogram) = await asyncio.gather(
        read_standing(ctx.table, profile.user, name), pickem_cache(ctx).season_ranks(name)
    )
    return visibility.show_ranked(standing, histogram) if standing else None


@batched
async def standing_users(ctx: Context, standings: Sequence[visibility.StandingView], /) -> list[ShownProfile]:
    return await authors(ctx, [standing.user for standing in standings])


async def standings_changed(
    ctx: Context, /, *, season: str, league: LeagueId | None = None, first: int | None = None
) -> AsyncGenerator[list[visibility.StandingView]]:
    """The first rows, of the season or of a league, immediately; then again after each change."""
    name, size = validate_season(season, "season"), page_size(first)
    if league is not None:
        async with aclosing(league_standings_changed(ctx, season=name, league=league, size=size)) as changes:
            async for rows_of_league in changes:
                yield rows_of_league
        return
    services = ctx.services
    cache = services.get(PickemCache)
    if not await cache.season_entries.load(name):  # else anyone could have this process read invented seasons forever
        raise NotFound("There is no event in this season.", path=("season",))

    async def read_rows(number: int) -> list[visibility.StandingView]:
        page = await read_standings_page(services.table, name, Window(number, services.seal))
        _, histogram = await cache.season_ranks(name)
        shown = (visibility.show_ranked(standing, histogram) for standing in page.nodes)
        return [standing for standing in shown if standing is not None]

    async for rows in services.live.rows(("standings", name), read_rows, size, ctx.address):
        yield list(rows)


# ── league pages ──
# Standings and events of a league: the season's own sums and predictions, of its members.
#
# Nothing is stored for them. A process remembers the members' standings for a revision of the league and of the season,
# and who has submitted: for `_OPEN_AGE` seconds while an event takes predictions, and for the event's version after
# that.
_AGE = 60.0
_OPEN_AGE = 5.0
_LEAGUES = 32
"""How many leagues' rows are remembered: some 500 kB for 1,000 members."""


class StandingsKey(NamedTuple):
    roster: RosterKey
    season: str
    published: int


class EntriesKey(NamedTuple):
    roster: RosterKey
    event: str
    version: int
    is_scored: bool


class LeagueStandings(NamedTuple):
    """The standings of a league's members, best first."""

    positions: tuple[str, ...]
    rows: tuple[visibility.StandingView, ...]


class LeaguePages:
    """The reads of leagues' standings and entries."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._rosters = services.get(LeagueCache).rosters
        self._standings = services.cache.each("league_standings", self._read_standings, age=_AGE, most=_LEAGUES)
        self._entries = services.cache.each("league_entries", self._read_entries, age=_AGE, most=_LEAGUES)

    async def standings(self, league: visibility.LeagueView) -> LeagueStandings:
        if not league.season_record.members:  # nobody has a rank before everybody was counted
            return LeagueStandings((), ())
        key = StandingsKey(roster_key(league), league.season, league.season_record.published)
        return await self._standings.load(key) or LeagueStandings((), ())

    async def entries(self, league: visibility.LeagueView, event: Event) -> Entries:
        key = EntriesKey(roster_key(league), event.id, event.version, bool(event.scored))
        return await self._entries.load(key, _AGE if event.revealed else _OPEN_AGE) or Entries()

    async def _read_standings(self, key: StandingsKey) -> LeagueStandings:
        users = await self._rosters.load(key.roster) or ()
        standings = await read_standings(self._services.table, key.season, users)
        return _ranked(list(standings.values()))

    async def _read_entries(self, key: EntriesKey) -> Entries:
        users = await self._rosters.load(key.roster) or ()
        predictions = await read_predictions(self._services.table, key.event, users)
        position = partial(prediction_position, is_scored=key.is_scored)
        placed = sorted((position(prediction), prediction.user) for prediction in predictions)
        return Entries(tuple(position for position, _ in placed), tuple(user for _, user in placed))


def roster_key(league: visibility.LeagueView) -> RosterKey:
    return RosterKey(league.id, league.revision)


def _ranked(standings: Sequence[Standing]) -> LeagueStandings:
    """In the season's order. A rank is one more than the number of members with more points."""
    placed = sorted((standing_position(standing), standing) for standing in standings)
    rows: list[visibility.StandingView] = []
    for index, (_, standing) in enumerate(placed):
        shared = rows[-1].rank if rows and rows[-1].points == standing.points else index + 1
        rows.append(visibility.show_standing(standing, shared))
    return LeagueStandings(tuple(position for position, _ in placed), tuple(rows))


async def league_standings(ctx: Context, league: League, /, *, window: Window) -> Page[visibility.StandingView] | None:
    view = await visibility.current_view(ctx, league)
    if view is None or not view.is_visible:
        return None
    request = window.open(f"league standings:{view.id}")
    ranked = await ctx.services.get(LeaguePages).standings(view)
    return page_of(ranked.positions, ranked.rows, request).counted(len(ranked.rows))


async def league_standings_changed(
    ctx: Context, *, season: str, league: str, size: int
) -> AsyncGenerator[list[visibility.StandingView]]:
    """The league's first rows, then again after each change, for as long as the viewer may see them."""
    view = await visibility.load_league(ctx, league)
    if view is None or not view.is_visible:
        raise NotFound("There is no such league, or you are not a member of it.", path=("league",))
    if view.season != season:
        raise InvalidInput(f"This league's season is {view.season}.", path=("league",))
    services = ctx.services
    cache, pages = services.get(LeagueCache), services.get(LeaguePages)

    async def read_rows(number: int) -> Sequence[visibility.StandingView | None]:
        """The rows of a league; of one that is gone, a row that no league has, so that listeners see a change."""
        found = await cache.leagues.load((league, None))
        return (await pages.standings(visibility.show_league(found))).rows[:number] if found else (None,)

    async for rows in services.live.rows(("league standings", league), read_rows, size, ctx.address):
        view = await visibility.load_league(ctx, league)
        if view is None or not view.is_visible:
            raise NotFound("You are not a member of this league any more.", path=("league",))
        yield [row for row in rows if row is not None]


async def league_event(ctx: Context, league: League, /, *, event: EventId) -> visibility.LeagueEvent | None:
    """None for an event of another season, and for those who may not see the league."""
    view, found = await asyncio.gather(visibility.current_view(ctx, league), visibility.load_event(ctx, event))
    if view is None or found is None or not view.is_visible or found.season != view.season:
        return None
    return view.with_event(found, await ctx.services.get(LeaguePages).entries(view, found))


async def league_predictions(
    ctx: Context, league_event: visibility.LeagueEvent, /, *, window: Window
) -> Page[visibility.PredictionView]:
    """Of the members, in the event's order; none before picks are public."""
    event, entries = league_event.event, league_event.entries
    request = window.open(f"league predictions:{league_event.league.id}:{event.id}:{event.scored}")
    if not event.revealed:
        return Page.cut([], request)
    users = page_of(entries.positions, entries.users, request)
    predictions = await read_predictions(ctx.table, event.id, users.nodes)
    by_user = {prediction.user: visibility.show_prediction(event, prediction) for prediction in predictions}
    return users.map(by_user.get(user) for user in users.nodes)  # all are there, unless a member was erased since
