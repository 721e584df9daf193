"""Days and streaks: pure rules.

A day begins at the operator's hour in the member's time zone, so that a quiz after midnight can still belong to the
previous day. A streak is a run of days, each with a quiz or a sentence. It is current while its last day is today or
yesterday: a day without a quiz breaks it only when that day is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Streak:
    """Numbers of consecutive active days, as of one of the member's days."""

    current: int
    longest: int
    last_active_on: date | None


def time_zone(name: str | None) -> tzinfo:
    """A member's time zone; UTC if they set none, or if this machine's time zone data does not contain it."""
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def local_day(now: datetime, zone: tzinfo, begins_at: int = 0) -> date:
    """The day that a time belongs to, where days begin at an hour of local time."""
    local = now.astimezone(zone)
    return local.date() - ONE_DAY if local.hour < begins_at else local.date()


def compute_streak(days: Sequence[date], today: date) -> Streak:
    """The streaks of active days, given in order and without repeats."""
    longest = length = 0
    previous: date | None = None
    for day in days:
        length = length + 1 if previous is not None and day - previous == ONE_DAY else 1
        longest = max(longest, length)
        previous = day
    current = length if previous is not None and previous >= today - ONE_DAY else 0
    return Streak(current, longest, previous)
