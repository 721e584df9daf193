"""Records as fields show them: together with what they stand in."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

from datastore.pickem.events import Event, Match, Result
from datastore.pickem.histograms import Histogram
from datastore.pickem.predictions import Prediction
from datastore.pickem.standings import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Bout(Match):
    """A match where it stands on its event's card."""

    order: int
    result: Result | None = None
    revealed: bool = False


def bout(event: Event, match: Match) -> Bout:
    own = {field.name: getattr(match, field.name) for field in fields(Match)}
    return Bout(
        **own,
        order=event.card.index(match.id) + 1,
        result=event.results.get(match.id),
        revealed=event.revealed,
    )


@dataclass(frozen=True, slots=True)
class BoutAndEvent:
    """What adding a match answers with."""

    match: Bout
    event: Event


@dataclass(frozen=True, slots=True)
class Entry:
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
class Ranked:
    """A standing and its place among all of the season."""

    user: str
    season: str
    rank: int
    points: int
    correct: int
    events_played: int


def ranked(standing: Standing, histogram: Histogram) -> Ranked:
    return Ranked(
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
