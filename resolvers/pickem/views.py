"""Records as fields show them: together with what they stand in."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

from datastore.pickem import Event, Histogram, Match, Prediction, Result, Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchView(Match):
    """A match where it stands on its event's card."""

    order: int
    result: Result | None = None
    revealed: bool = False


def match_view(event: Event, match: Match) -> MatchView:
    own = {field.name: getattr(match, field.name) for field in fields(Match)}
    return MatchView(
        **own,
        order=event.card.index(match.id) + 1,
        result=event.results.get(match.id),
        revealed=event.revealed,
    )


@dataclass(frozen=True, slots=True)
class MatchAndEvent:
    """What adding a match answers with."""

    match: MatchView
    event: Event


@dataclass(frozen=True, slots=True)
class PredictionView:
    """A prediction together with its event, which decides what may be seen of it."""

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
    """A standing and its place among all of the season."""

    user: str
    season: str
    rank: int
    points: int
    correct: int
    events_played: int


def standing_view(standing: Standing, histogram: Histogram) -> StandingView:
    return StandingView(
        standing.user,
        standing.season,
        histogram.rank(standing.points),
        standing.points,
        standing.correct,
        standing.events_played,
    )


@dataclass(frozen=True, slots=True)
class Scored:
    """What scoring an event answers with."""

    event: Event
    predictions_scored: int
