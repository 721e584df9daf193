"""Streaks with freezes, on any days, in any time zone and across its transitions."""

from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.vocabulary.schedules import Streak, compute_streak, local_day

ONE_DAY = timedelta(days=1)
TODAY = date(2026, 11, 20)
DAYS = st.lists(st.dates(date(2026, 7, 1), TODAY), max_size=140, unique=True).map(sorted)
ZONES = st.sampled_from(sorted(available_timezones() - {"localtime", "Factory"}))


def day_by_day(days: list[date], today: date) -> Streak:
    """The rule walked through every day of the calendar, as a member lives it."""
    if not days:
        return Streak(0, 0, None)
    length = longest = freezes = 0
    day = days[0]
    while day <= max(today, days[-1]):
        if day in days:
            length += 1
            if length % 7 == 0:
                freezes = min(2, freezes + 1)
        elif day < today or day < days[-1]:
            length, freezes = (length, freezes - 1) if freezes > 0 else (0, 0)
        longest = max(longest, length)
        day += ONE_DAY
    return Streak(length, longest, days[-1], freezes)


@given(days=DAYS, later=st.integers(0, 4))
def test_a_freeze_bridges_a_missed_day(days: list[date], later: int) -> None:
    today = TODAY + later * ONE_DAY
    assert compute_streak(days, today) == day_by_day(days, today)


@given(days=DAYS)
def test_freezes_are_two_at_most_and_never_shorten_a_streak(days: list[date]) -> None:
    streak = compute_streak(days, TODAY)
    assert 0 <= streak.freezes <= 2
    unbroken = [day - number * ONE_DAY for number, day in enumerate(days)]
    assert max(map(unbroken.count, unbroken), default=0) <= streak.longest <= len(days)


EARLIEST = datetime(2010, 1, 1, tzinfo=UTC)


@cache
def transitions(name: str) -> list[datetime]:
    """The hours of 2010 to 2027 after which a zone has another offset."""
    zone, found = ZoneInfo(name), []
    moment = EARLIEST
    while moment.year < 2028:
        after = moment + timedelta(days=7)
        if moment.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
            found.append(moment)
        moment = after
    return found


def offsets(name: str) -> tuple[timedelta | None, ...]:
    return tuple(moment.astimezone(ZoneInfo(name)).utcoffset() for moment in (EARLIEST, *transitions(name)))


@pytest.mark.slow
def test_a_daily_learner_keeps_the_streak_across_every_transition_of_every_zone() -> None:
    """One quiz on each local day, at any hour that it has; a zone that skips a day of the calendar spends a freeze."""
    names = sorted(available_timezones() - {"localtime", "Factory"})
    # Zones that have had the same offsets are one.
    for name in {offsets(name): name for name in names}.values():
        zone = ZoneInfo(name)
        for transition in transitions(name):
            start = transition - timedelta(days=10)
            moments = [start + timedelta(hours=hour) for hour in range(24 * 27)]
            days = sorted({local_day(moment, zone) for moment in moments})
            skipped = (days[-1] - days[0]).days + 1 - len(days)
            streak = compute_streak(days, days[-1])
            assert streak.current == len(days), (name, transition)
            assert skipped <= 1
            assert streak.freezes == 2 or skipped, (name, transition)


@given(
    zones=st.tuples(ZONES, ZONES, ZONES), begin=st.dates(date(2020, 1, 1), date(2027, 1, 1)), hour=st.integers(0, 23)
)
def test_a_traveller_misses_no_day_that_two_freezes_do_not_bridge(
    zones: tuple[str, str, str], begin: date, hour: int
) -> None:
    """Quizzes every ten hours, three weeks in each of three zones: crossing the date line skips one day at most."""
    moment, days = datetime(begin.year, begin.month, begin.day, hour, tzinfo=UTC), set[date]()
    for name in zones:
        for _ in range(50):
            days.add(local_day(moment, ZoneInfo(name)))
            moment += timedelta(hours=10)
    ordered = sorted(days)
    streak = compute_streak(ordered, ordered[-1])
    assert streak.current == streak.longest == len(ordered)
