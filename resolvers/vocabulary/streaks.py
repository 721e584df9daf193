"""Days and streaks: pure rules.

A day begins at the operator's hour in the member's own zone, so that a quiz after midnight can still belong to the
evening before. A streak is a run of days, each with a quiz or a sentence. It is current while its last day is today or
yesterday: before the first quiz of a day it is not yet broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Streak:
    """Runs of active days, as of a day of the member's."""

    current: int
    longest: int
    last_active_on: date | None


def time_zone(name: str | None) -> tzinfo:
    """A member's zone; UTC for those who named none, or one that this machine's data no longer knows."""
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def local_day(now: datetime, zone: tzinfo, begins_at: int = 0) -> date:
    """The day that a moment belongs to, where the day begins at an hour of the clock on the wall."""
    there = now.astimezone(zone)
    return there.date() - ONE_DAY if there.hour < begins_at else there.date()


def compute_streak(days: Sequence[date], today: date) -> Streak:
    """The streaks of active days, which are given in order and each once."""
    longest = run = 0
    before: date | None = None
    for day in days:
        run = run + 1 if before is not None and day - before == ONE_DAY else 1
        longest = max(longest, run)
        before = day
    current = run if before is not None and before >= today - ONE_DAY else 0
    return Streak(current, longest, before)
