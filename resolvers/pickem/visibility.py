"""What a viewer sees of pick'em: every record becomes one of the types here before a field shows it.

Picks are hidden from others until their event is locked, and counted then; points until it is scored. Everybody sees a
league's name, season and entry; all else of a private league (CODE, APPROVAL) is null for those who are not members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Final, NewType

from datastore.dynamo import Page, Window
from datastore.pickem import leagues
from datastore.pickem.events import THOUSAND, Event, Match, PickCounts, Result, SeasonEntry
from datastore.pickem.leagues import League, LeagueMember, Membership
from datastore.pickem.predictions import Prediction
from datastore.pickem.standings import Histogram, Season, Standing
from resolvers.pickem import rules
from resolvers.pickem.cache import Entries, LeagueRecords, league_cache, pickem_cache
from resolvers.pickem.rules import spelled
from resolvers.requests.context import Context

AS_STORED: Final[Mapping[str, str]] = {
    "Team": "A part of its match.",
    "MatchResult": "A part of its match.",
    "TieBreak": "A part of its event.",
    "Pick.match": "An id.",
}
"""What fields show without passing here, and why that gives nothing away."""

# ── events ──

ShownEvent = NewType("ShownEvent", Event)


async def show_event(ctx: Context, event: Event) -> ShownEvent:
    """Locked from its start on, even while the lock is still being stored."""
    return ShownEvent(await pickem_cache(ctx).shown(event))


async def load_event(ctx: Context, event_id: str) -> ShownEvent | None:
    """The current event."""
    event = await pickem_cache(ctx).events.load(event_id)
    return None if event is None else await show_event(ctx, event)


def show_changed(event: Event) -> ShownEvent:
    """An event after a change of it. It is locked first if that is due."""
    return ShownEvent(event)


async def show_answer(ctx: Context, event: Event) -> ShownEvent:
    """The event of a mutation's answer, read again: the receipt of a lock is older than the lock's last write."""
    return await show_event(ctx, event) if event.is_locking else show_changed(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchView(Match):
    """A match with its position on the card and its result."""

    order: int
    result: Result | None = None
    revealed: bool = False
    event_version: int = 0

    @property
    def revision(self) -> int:
        """The event's version that last changed the match or its result."""
        return max(self.version, self.result.version if self.result else 0)


def show_match(event: Event, match: Match) -> MatchView:
    values = {field.name: getattr(match, field.name) for field in fields(Match)}
    return MatchView(
        **values,
        order=event.card.index(match.id) + 1,
        result=event.results.get(match.id),
        revealed=event.revealed,
        event_version=event.version,
    )


async def pick_counts(ctx: Context, match: MatchView, /) -> list[int] | None:
    """Picks per team; None until the lock."""
    if not match.revealed:
        return None
    counts = await pickem_cache(ctx).pick_counts.load((match.event, match.event_version)) or PickCounts()
    return [counts.count(match.number, team) for team in range(len(match.teams))]


# ── predictions ──


@dataclass(frozen=True, slots=True)
class PredictionView:
    """A prediction with its event, which decides whether others may see the picks."""

    prediction: Prediction
    event: ShownEvent

    @property
    def node_key(self) -> str:
        return self.prediction.node_key

    @property
    def submitted_at(self) -> datetime:
        return self.prediction.submitted_at

    @property
    def points(self) -> int | None:
        """None until all predictions of the event have their points, and once they have lost them."""
        return self.prediction.points if self.event.scored else None

    @property
    def correct(self) -> int | None:
        return self.prediction.correct if self.event.scored else None


def show_prediction(event: Event, prediction: Prediction) -> PredictionView:
    return PredictionView(prediction, ShownEvent(event))


@dataclass(frozen=True, slots=True)
class Pick:
    """A member's choice in one match."""

    event: str
    match: str
    team: int
    correct: bool | None


def picks(ctx: Context, view: PredictionView, /) -> list[Pick] | None:
    """In the card's order; None for others until the lock."""
    event, prediction = view.event, view.prediction
    if not _may_see_picks(ctx, view):
        return None
    return [
        Pick(event.id, match, team, rules.is_correct(event, match, team))
        for match in event.card
        if (team := prediction.picks.get(match)) is not None
    ]


def prediction_guess(ctx: Context, view: PredictionView, /) -> float | None:
    """The guess, which is shown to whoever sees the picks."""
    guess = view.prediction.guess_for(view.event)
    return guess / THOUSAND if _may_see_picks(ctx, view) and guess is not None else None


def _may_see_picks(ctx: Context, view: PredictionView) -> bool:
    return view.event.revealed or ctx.viewer.is_user(view.prediction.user)


async def prediction_rank(ctx: Context, view: PredictionView, /) -> int | None:
    """The rank among the event's predictions by points; equal points share a rank."""
    points = view.points
    if points is None:
        return None
    histogram = await pickem_cache(ctx).event_ranks(view.event)
    return histogram.rank(points) if histogram else None


# ── seasons and standings ──


_LAST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class SeasonView:
    """A season's events in numbers."""

    name: str
    events: int
    latest_event_at: datetime


def show_seasons(entries: Sequence[SeasonEntry]) -> tuple[list[str], list[SeasonView]]:
    """The seasons with their positions, the one with the latest event first."""
    starts: dict[str, list[datetime]] = {}
    for entry in entries:
        starts.setdefault(entry.season, []).append(entry.starts_at)
    views = [SeasonView(name, len(moments), max(moments)) for name, moments in starts.items()]
    placed = sorted((f"{_LAST - view.latest_event_at.timestamp():016.3f}#{view.name}", view) for view in views)
    return [position for position, _ in placed], [view for _, view in placed]


@dataclass(frozen=True, slots=True)
class StandingView:
    """A standing with its rank in the season."""

    user: str
    season: str
    rank: int
    points: int
    correct: int
    events_played: int


def show_standing(standing: Standing, rank: int) -> StandingView:
    return StandingView(
        user=standing.user,
        season=standing.season,
        rank=rank,
        points=standing.points,
        correct=standing.correct,
        events_played=standing.events_played,
    )


def show_ranked(standing: Standing, histogram: Histogram) -> StandingView | None:
    """A standing with its rank; None while the first event of its season is being scored: nobody was counted yet."""
    return show_standing(standing, histogram.rank(standing.points)) if histogram.total else None


# ── leagues ──

ShownLeague = NewType("ShownLeague", League)
"""A league as everybody sees it: a mutation's answer, or its receipt. Fields that show more read the league again."""
ShownLeagueMember = NewType("ShownLeagueMember", LeagueMember)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeagueView(League):
    """A league, the viewer's membership, and the season's revision that was read with them."""

    place: LeagueMember | None
    season_record: Season

    @property
    def is_captain(self) -> bool:
        return self.place is not None and self.place.membership is Membership.CAPTAIN

    @property
    def is_member(self) -> bool:
        return self.place is not None and self.place.membership is not Membership.WAITING

    @property
    def is_visible(self) -> bool:
        """Whether the viewer may see more than its name."""
        return self.is_member or not self.is_private

    def with_event(self, event: ShownEvent, entries: Entries) -> LeagueEvent:
        return LeagueEvent(self, event, entries)


def show_league(found: LeagueRecords) -> LeagueView:
    values = {field.name: getattr(found.league, field.name) for field in fields(League)}
    return LeagueView(**values, place=found.place, season_record=found.season)


async def load_league(ctx: Context, league_id: str) -> LeagueView | None:
    """A league and the viewer's membership; None if there is none, or none any more."""
    found = await league_cache(ctx).leagues.load((league_id, ctx.viewer.member_id))
    return None if found is None else show_league(found)


async def current_view(ctx: Context, league: League) -> LeagueView | None:
    """The league as it is now: a mutation's answer, or its receipt, may be older. None if it was deleted."""
    return league if isinstance(league, LeagueView) else await load_league(ctx, league.id)


def show_to_everybody(league: League) -> ShownLeague:
    """Without what only members may see: this is stored in a receipt."""
    values = {name: getattr(league, name) for name in ("id", "name", "season", "entry", "created_at")}
    return ShownLeague(League(**values))


def show_to_captain(member: LeagueMember) -> ShownLeagueMember:
    return ShownLeagueMember(member)


@dataclass(frozen=True, slots=True)
class LeagueEvent:
    """An event for a league's members: how many of them have submitted, and who."""

    league: LeagueView
    event: ShownEvent
    entries: Entries

    @property
    def submitted(self) -> int:
        return len(self.entries.users)

    @property
    def missing(self) -> int:
        return max(0, self.league.members - self.submitted)


async def viewer_membership(ctx: Context, league: League, /) -> Membership | None:
    view = await current_view(ctx, league)
    return view.place.membership if view and view.place else None


async def member_count(ctx: Context, league: League, /) -> int | None:
    view = await current_view(ctx, league)
    return view.members if view and view.is_visible else None


async def code(ctx: Context, league: League, /) -> str | None:
    view = await current_view(ctx, league)
    return spelled(view.code) if view and view.is_captain and view.code else None


async def members(ctx: Context, league: League, /, *, window: Window) -> Page[ShownLeagueMember] | None:
    """In the order of their ids. Captains also see who is waiting."""
    view = await current_view(ctx, league)
    if view is None or not view.is_visible:
        return None
    page = await leagues.read_members(ctx.table, view.id, window, with_waiting=view.is_captain)
    return page.map(map(ShownLeagueMember, page.nodes))
