"""When daily words are due: at each member's hour, in their zone, once for each date."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.people.profiles import Profile
from datastore.vocabulary.subscriptions import CharacterSet, Subscription
from server.mail.daily_run import dates_begun, due_at, due_date, due_subscriptions

ZONES = ["UTC", "Pacific/Kiritimati", "Pacific/Honolulu", "Europe/Vienna", "America/New_York", "Australia/Lord_Howe"]


def member(zone: str | None, at: str | None) -> Profile:
    return Profile("ada", "Ada", datetime(2026, 1, 1, tzinfo=UTC), time_zone=zone, daily_word_at=at)


@pytest.mark.parametrize(
    ("zone", "at", "now", "due"),
    [
        (None, None, "2026-11-20T00:00", "2026-11-20"),
        ("Europe/Vienna", "07:00", "2026-11-20T05:59", "2026-11-19"),
        ("Europe/Vienna", "07:00", "2026-11-20T06:00", "2026-11-20"),
        ("Pacific/Kiritimati", None, "2026-11-20T09:59", "2026-11-20"),
        ("Pacific/Kiritimati", None, "2026-11-20T10:00", "2026-11-21"),
        ("Pacific/Honolulu", "23:50", "2026-11-21T09:50", "2026-11-20"),
        ("Pacific/Honolulu", "23:50", "2026-11-21T10:05", "2026-11-20"),
        ("Europe/Vienna", "02:30", "2026-03-29T01:29", "2026-03-28"),
        ("Europe/Vienna", "02:30", "2026-03-29T01:30", "2026-03-29"),
        ("Europe/Vienna", "02:30", "2026-10-25T00:30", "2026-10-25"),
    ],
)
def test_a_date_is_due_from_its_hour_on(zone: str | None, at: str | None, now: str, due: str) -> None:
    """Also shortly after midnight for an hour before it, and at an hour that the clocks skip or repeat."""
    assert due_date(member(zone, at), datetime.fromisoformat(f"{now}+00:00")) == date.fromisoformat(due)


@given(
    st.sampled_from(ZONES),
    st.times().map(lambda at: f"{at:%H:%M}"),
    st.integers(0, 364 * 24 * 60),
)
def test_each_date_is_due_once_and_none_is_left_out(zone: str, at: str, minutes: int) -> None:
    """From its hour to the next date's, so a run every 15 minutes meets every date."""
    ada, now = member(zone, at), datetime(2026, 1, 3, tzinfo=UTC) + timedelta(minutes=minutes)
    due = due_date(ada, now)
    assert due_at(ada, due) <= now < due_at(ada, due + timedelta(days=1))
    assert due <= dates_begun(now)[-1]


def test_a_new_subscription_does_not_begin_with_yesterdays_word() -> None:
    """The hour of today is still ahead; who subscribed before yesterday's hour gets what was missed."""
    ada = member("UTC", "20:00")
    now = datetime(2026, 11, 20, 10, tzinfo=UTC)
    old, new = (
        Subscription("ada", name, CharacterSet.SIMPLIFIED, active=True, since=now - timedelta(hours=hours))
        for name, hours in (("old", 30), ("new", 1))
    )
    assert list(due_subscriptions(ada, [old, new], due_date(ada, now), now)) == [old]
    assert list(due_subscriptions(ada, [old, new], due_date(ada, now + timedelta(hours=10)), now)) == [old, new]
