"""Records as fields show them: with the event or the ranking that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

from datastore.pickem import Event, Histogram, Match, Prediction, Result, Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchView(Match):
    """A match with its position on the card and its result."""

    order: int
    result: Result | None = None
    revealed: bool = False


def match_view(event: Event, match: Match) -> MatchView:
    values = {field.name: getattr(match, field.name) for field in fields(Match)}
    return MatchView(
        **values,
        order=event.card.index(match.id) + 1,
        result=event.results.get(match.id),
        revealed=event.revealed,
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
        return self.prediction.points

    @property
    def correct(self) -> int | None:
        return self.prediction.correct


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


@dataclass(frozen=True, slots=True)
class Scored:
    """The answer to scoring an event."""

    event: Event
    predictions_scored: int
