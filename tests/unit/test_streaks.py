"""Days and streaks, by rules alone."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.vocabulary.learning import ActiveDays
from resolvers.vocabulary.schedules import Streak, compute_streak, local_day, time_zone

TODAY = date(2026, 11, 20)
DAYS = st.lists(st.dates(date(2026, 1, 1), TODAY), max_size=60)


def ago(*days: int) -> list[date]:
    return sorted(TODAY - timedelta(days=number) for number in days)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ((), (0, 0)),
        ((0,), (1, 1)),
        ((1,), (1, 1)),
        ((2,), (0, 1)),
        ((0, 1, 2), (3, 3)),
        ((1, 2, 3), (3, 3)),
        ((0, 2, 3, 4, 5), (1, 4)),
        ((2, 3, 4), (0, 3)),
    ],
)
def test_a_streak_is_a_run_that_reaches_today_or_yesterday(days: tuple[int, ...], expected: tuple[int, int]) -> None:
    """Current and longest, for gaps before, between and after."""
    found = compute_streak(ago(*days), TODAY)
    assert (found.current, found.longest) == expected


def test_a_streak_is_current_while_freezes_cover_the_days_missed_since() -> None:
    """Fourteen active days earn two, which the day before yesterday and yesterday spend; a third missed day ends it."""
    days = ago(*range(3, 17))
    assert compute_streak(days, TODAY) == Streak(14, 14, TODAY - timedelta(days=3), 0)
    assert compute_streak(days, TODAY + timedelta(days=1)) == Streak(0, 14, TODAY - timedelta(days=3))


def test_moving_west_keeps_the_streak() -> None:
    """The latest day may be tomorrow, as seen from the new zone."""
    assert compute_streak(ago(1, 0, -1), TODAY) == Streak(3, 3, TODAY + timedelta(days=1))


@pytest.mark.parametrize("ahead", [4, 400])
def test_a_day_of_a_clock_that_was_ahead_does_not_end_the_streak(ahead: int) -> None:
    """It counts once that day has come."""
    assert compute_streak(ago(2, 1, 0, -ahead), TODAY) == Streak(3, 3, TODAY)
    later = TODAY + timedelta(days=ahead)
    assert compute_streak(ago(2, 1, 0, -ahead), later) == Streak(1, 3, later)


@pytest.mark.parametrize(
    ("zone", "begins_at", "expected"),
    [
        (None, 0, "2026-03-29"),
        ("Europe/Vienna", 0, "2026-03-29"),
        ("Europe/Vienna", 4, "2026-03-28"),
        ("Pacific/Kiritimati", 0, "2026-03-29"),
        ("Pacific/Midway", 0, "2026-03-28"),
        ("America/New_York", 4, "2026-03-28"),
        ("No/Where", 0, "2026-03-29"),
    ],
)
def test_the_day_of_a_moment(zone: str | None, begins_at: int, expected: str) -> None:
    """At half past one in UTC, in the hour that Vienna skips for summer time."""
    moment = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert str(local_day(moment, time_zone(zone), begins_at)) == expected


@pytest.mark.parametrize("name", [None, "Nowhere", "../UTC"])
def test_days_are_those_of_utc_without_a_time_zone_that_exists(name: str | None) -> None:
    """A table that was filled from a file may name anything."""
    assert time_zone(name) is UTC


def test_a_detour_to_a_time_zone_fails_no_request() -> None:
    """Python 3.13 finds Vienna's by it, earlier ones raise TypeError."""
    local = datetime(2026, 1, 1, tzinfo=UTC).astimezone(time_zone("Europe/__init__/Vienna"))
    assert local.utcoffset() in (timedelta(), timedelta(hours=1))


@given(days=DAYS)
def test_stored_days_are_the_given_days(days: list[date]) -> None:
    """In whatever order they come, the bits hold each of them and no other."""
    kept = ActiveDays("ada", TODAY, b"")
    for day in days:
        kept = kept.with_day(day)
        assert day in kept
    assert kept.dates() == sorted(set(days))
    assert (TODAY + timedelta(days=1)) not in kept
    assert date(2020, 1, 1) not in kept
