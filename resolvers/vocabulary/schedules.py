"""Days and streaks: pure rules.

A day begins at the operator's hour in the member's time zone, so that a quiz after midnight can still belong to the
previous day. A streak is a run of days, each with a quiz or a sentence. It is current while its last day is today or
yesterday, or farther back if freezes cover the days missed since: a day without a quiz breaks it only when that day is
over.

Each seventh active day in a row earns a freeze, of which a member has two at most. A missed day spends one in place of
breaking the streak, and does not lengthen it. When a streak breaks, its freezes are spent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import Enum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import fsrs

from datastore.dynamo import to_the_millisecond
from datastore.vocabulary.quizzes import Card

# ── days and streaks ──

ONE_DAY = timedelta(days=1)
_FIRST_ZONE = timedelta(hours=14)
"""How far ahead of UTC a date begins where it begins first."""
DAYS_PER_FREEZE = 7
MOST_FREEZES = 2
MOST_AHEAD = timedelta(days=3)
"""How far ahead of today an active day may be: two time zones may be two dates apart, and a day may begin late."""


@dataclass(frozen=True, slots=True)
class Streak:
    """Numbers of consecutive active days, as of one of the member's days."""

    current: int
    longest: int
    last_active_on: date | None
    freezes: int = 0


def time_zone(name: str | None) -> tzinfo:
    """A member's time zone; UTC if they set none, or if this machine's time zone data does not contain it."""
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):  # TypeError: "Europe/__init__/Vienna" before 3.13
        return UTC


def newest_date(now: datetime) -> date:
    """The latest date that has begun anywhere."""
    return (now.astimezone(UTC) + _FIRST_ZONE).date()


def local_day(now: datetime, zone: tzinfo, begins_at: int = 0) -> date:
    """The day that a time belongs to, where days begin at an hour of local time."""
    local = now.astimezone(zone)
    return local.date() - ONE_DAY if local.hour < begins_at else local.date()


def compute_streak(days: Sequence[date], today: date) -> Streak:
    """The streaks of active days, given in order and without repeats.

    A day that is too far ahead is of a clock that was wrong: it counts when it comes.
    """
    longest = length = freezes = 0
    previous: date | None = None
    for day in days:
        if day > today + MOST_AHEAD:
            break
        left = _freezes_after(previous, day, freezes)
        length, freezes = (1, 0) if left is None else (length + 1, left)
        if length % DAYS_PER_FREEZE == 0:
            freezes = min(freezes + 1, MOST_FREEZES)
        longest = max(longest, length)
        previous = day
    left = _freezes_after(previous, today, freezes)
    return Streak(0, longest, previous) if left is None else Streak(length, longest, previous, left)


def _freezes_after(previous: date | None, day: date, freezes: int) -> int | None:
    """The freezes that are left if a streak reaches from one day to another; None if it does not."""
    if previous is None:
        return None
    missed = max(0, (day - previous).days - 1)
    return freezes - missed if missed <= freezes else None


# ── scheduling ──
# When to ask for a word again: FSRS, as the package `fsrs` computes it with its default parameters.
#
# Intervals are not made fuzzy, so that the same reviews give the same dates.

_SCHEDULER = fsrs.Scheduler(enable_fuzzing=False)


class Grade(Enum):
    """How well a member knew a word."""

    AGAIN = "AGAIN"
    HARD = "HARD"
    GOOD = "GOOD"
    EASY = "EASY"


_RATINGS = {grade: fsrs.Rating[grade.value.capitalize()] for grade in Grade}


def reviewed(before: Card | None, user: str, word: tuple[str, int], grade: Grade, now: datetime) -> Card:
    """The card after a review, its first one if there was none before."""
    state = fsrs.Card(card_id=0, due=now) if before is None else _fsrs_card(before)
    after, _ = _SCHEDULER.review_card(state, _RATINGS[grade], now)
    list_id, ordinal = word
    return Card(
        user=user,
        list=list_id,
        ordinal=ordinal,
        due=to_the_millisecond(after.due),
        stability=after.stability or 0.0,
        difficulty=after.difficulty or 0.0,
        state=after.state.value,
        reviewed_at=now,
        reviews=(before.reviews if before else 0) + 1,
        step=after.step,
    )


def _fsrs_card(card: Card) -> fsrs.Card:
    return fsrs.Card(
        card_id=0,
        state=fsrs.State(card.state),
        step=card.step,
        stability=card.stability,
        difficulty=card.difficulty,
        due=card.due,
        last_review=card.reviewed_at,
    )
