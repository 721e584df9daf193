"""Records as fields show them: with the event or the ranking that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

from datastore.pickem import (
    Event,
    Histogram,
    League,
    LeagueMember,
    Match,
    Membership,
    Prediction,
    Result,
    Season,
    Standing,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchView(Match):
    """A match with its position on the card and its result."""

    order: int
    result: Result | None = None
    revealed: bool = False
    event_version: int = 0


def match_view(event: Event, match: Match) -> MatchView:
    values = {field.name: getattr(match, field.name) for field in fields(Match)}
    return MatchView(
        **values,
        order=event.card.index(match.id) + 1,
        result=event.results.get(match.id),
        revealed=event.revealed,
        event_version=event.version,
    )


@dataclass(frozen=True, slots=True)
class MatchAndEvent:
    """The answer to adding a match."""

    match: MatchView
    event: Event


@dataclass(frozen=True, slots=True)
class PredictionView:
    """A prediction with its event, which decides whether others may see the picks."""

    prediction: Prediction
    event: Event

    @property
    def node_key(self) -> str:
        return self.prediction.node_key

    @property
    def submitted_at(self) -> datetime:
        return self.prediction.submitted_at

    @property
    def points(self) -> int | None:
        """Not before all predictions of the event have their points, or after they lost them."""
        return None if self.event.scored is None else self.prediction.points

    @property
    def correct(self) -> int | None:
        return None if self.event.scored is None else self.prediction.correct


@dataclass(frozen=True, slots=True)
class Pick:
    """A member's choice in one match."""

    event: str
    match: str
    team: int
    correct: bool | None


@dataclass(frozen=True, slots=True)
class StandingView:
    """A standing with its rank in the season."""

    user: str
    season: str
    rank: int
    points: int
    correct: int
    events_played: int


def standing_view(standing: Standing, histogram: Histogram) -> StandingView:
    return StandingView(
        user=standing.user,
        season=standing.season,
        rank=histogram.rank(standing.points),
        points=standing.points,
        correct=standing.correct,
        events_played=standing.events_played,
    )


# ── leagues ──


@dataclass(frozen=True, slots=True, kw_only=True)
class LeagueView(League):
    """A league as the viewer stands to it, with the season's revision that was read beside it."""

    place: LeagueMember | None
    season_record: Season

    @classmethod
    def of(cls, league: League, place: LeagueMember | None, season: Season) -> LeagueView:
        values = {field.name: getattr(league, field.name) for field in fields(League)}
        return cls(**values, place=place, season_record=season)

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


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer to joining a league."""

    league: League
    membership: Membership


@dataclass(frozen=True, slots=True)
class Admitted:
    """The answer to admitting a member."""

    league: League
    member: LeagueMember


@dataclass(frozen=True, slots=True)
class LeagueEvent:
    """An event for a league's members: how many of them have submitted, and who."""

    league: LeagueView
    event: Event
    entries: Entries

    @property
    def submitted(self) -> int:
        return len(self.entries.users)

    @property
    def missing(self) -> int:
        return max(0, self.league.members - self.submitted)


@dataclass(frozen=True, slots=True)
class Entries:
    """The members of a league who have a prediction for an event, best first once it is scored."""

    positions: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
