"""Events with their results, and the matches on their cards.

An event's state, its card's order, its results and their generation are one item, so one read shows which results a
generation has.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.values.folding import in_form


class EventState(StrEnum):
    UPCOMING = "UPCOMING"
    LOCKED = "LOCKED"
    SCORED = "SCORED"
    CANCELLED = "CANCELLED"


class MatchOutcome(StrEnum):
    WON = "WON"
    DRAWN = "DRAWN"
    NO_CONTEST = "NO_CONTEST"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True)
class Result:
    """How a match ended. Only a match that was won has a winner: the index of a team."""

    outcome: MatchOutcome
    winner: int | None = None


THOUSAND = 1000
"""Answers and guesses are whole thousandths, so that sums of distances are exact."""


@dataclass(frozen=True, slots=True)
class TieBreak:
    """A number that an event asks for. `thousandths` is the answer, once it is known."""

    question: str
    unit: str | None = None
    thousandths: int | None = None
    number: int = 0
    """The event's version when the question replaced another one; 0 if it was the first. Guesses have it too.

    It cannot be a hash of the question: that would bring back guesses for an earlier one that is asked again.
    """

    @property
    def answer(self) -> float | None:
        return None if self.thousandths is None else self.thousandths / THOUSAND


@dataclass(frozen=True, slots=True)
class Event:
    """One evening of matches. `card` is the order of its matches; `generation` counts the changes of its results."""

    id: str
    name: str
    season: str
    starts_at: datetime
    created_at: datetime
    state: EventState = EventState.UPCOMING
    version: int = 1
    """Counts all changes: a change requires the version that it was decided from."""
    card: tuple[str, ...] = ()
    results: dict[str, Result] = field(default_factory=dict)
    generation: int = 1
    """Counts what changes points. It cannot be the version: a renamed event need not be scored again."""
    scored: int | None = None
    """The generation of the points that are shown; 0 after they were taken back, None if there never were any.

    The state does not tell it: points may be behind `generation`, and nobody sees them while they are taken back.
    """
    job: str | None = None
    """The job that gives points or takes them back, or that failed to. No other begins while it runs."""
    locked_at: datetime | None = None
    """When all gates refused predictions. The state does not tell it: picks are shown only after that."""
    description: str | None = None
    place: str | None = None
    image_url: str | None = None
    tie_break: TieBreak | None = None

    @property
    def node_key(self) -> str:
        return self.id

    @property
    def slug(self) -> str:
        """Derived from the name and the day."""
        return f"{self.starts_at:%Y-%m-%d}-{slugify(self.name)}"

    @property
    def revealed(self) -> bool:
        return self.locked_at is not None

    def is_due(self, now: datetime) -> bool:
        """Whether its start has passed and it is not locked yet."""
        return self.state is EventState.UPCOMING and self.starts_at <= now

    @property
    def missing_results(self) -> list[str]:
        """The matches of its card without a result, in order."""
        return [match for match in self.card if match not in self.results]

    @property
    def is_locking(self) -> bool:
        """Whether it is locked and its gates may accept what was decided before. Somebody will finish that."""
        return self.state is EventState.LOCKED and not self.revealed

    def changed(self, **changes: Any) -> Event:
        return replace(self, version=self.version + 1, **changes)

    def locked(self) -> Event:
        return self.changed(state=EventState.LOCKED)

    def reveal(self, now: datetime) -> Event:
        """The event once no gate accepts predictions any more."""
        return self.changed(locked_at=now)

    @property
    def may_have_points(self) -> bool:
        """Whether predictions may have points, seen or not. Then it cannot be cancelled."""
        return bool(self.scored) or self.job is not None

    def unscoring(self, job: str) -> Event:
        """While points are being taken back: in a generation of its own, the one before that of the next scoring."""
        return self.changed(generation=self.generation + 2, scored=0, job=job)

    @property
    def taken_back(self) -> int:
        """The generation in which points are taken back while its job does that."""
        return self.generation - 1


@dataclass(frozen=True, slots=True)
class Team:
    """One side of a match."""

    members: tuple[str, ...]
    name: str | None = None
    champion: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """Teams against each other, for points. The event has its place on the card and its result."""

    event: str
    id: str
    name: str
    points: int
    teams: tuple[Team, ...]
    championships: tuple[str, ...] = ()
    preshow: bool = False
    number: int = 0
    """The event's version that added it, so it is never given again: the gates count picks under it."""

    @property
    def node_key(self) -> str:
        return f"{self.event}:{self.id}"


EVENT = Entity(
    Event,
    Key("EVENT#{id}", "STATE"),
    gsi1=Key("SCHEDULE", "{starts_at}#{id}"),
    gsi2=Key("SCHEDULE#{state}", "{starts_at}#{id}"),
)
MATCH = Entity(Match, Key("EVENT#{event}", "MATCH#{id}"))


_ACCENTS = re.compile("[\u0300-\u036f\u200d\ufe00-\ufe0f]")
"""Left out, with what joins characters or chooses their look."""
_MARKS = ("Mn", "Mc")
"""Vowels, and other parts of words, in scripts such as Devanagari and Thai."""


def slugify(name: str) -> str:
    """A name for URLs: letters with their marks and digits of any script, hyphens for the rest."""
    plain = _ACCENTS.sub("", in_form("NFKD", name))
    folded = in_form("NFC", plain).casefold()
    words = "".join(each if each.isalnum() or unicodedata.category(each) in _MARKS else " " for each in folded)
    return "-".join(words.split()) or "event"
