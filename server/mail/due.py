"""When a member's daily words are due: at their hour, in their time zone.

Each moment has one due date per member: the last one whose hour has come. So a run that is hours late still sends the
words of that date, and a change of the hour or the zone neither repeats nor skips a date that was not sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

from datastore.people.profiles import Profile
from datastore.vocabulary import Subscription
from resolvers.vocabulary.streaks import time_zone

FIRST_ZONE = timedelta(hours=14)
"""Where each date begins first: at UTC+14."""
_ONE_DAY = timedelta(days=1)


def dates_begun(now: datetime) -> Sequence[date]:
    """The dates whose words are drawn: that of UTC, and the next one once it has begun anywhere."""
    return sorted({now.date(), newest_date(now)})


def newest_date(now: datetime) -> date:
    return (now.astimezone(UTC) + FIRST_ZONE).date()


def due_at(profile: Profile | None, on: date) -> datetime:
    """When the words of a date are due. An hour that the clocks skip is the one that follows it."""
    hour = time.fromisoformat(profile.daily_word_at) if profile and profile.daily_word_at else time()
    return datetime.combine(on, hour, time_zone(profile.time_zone if profile else None)).astimezone(UTC)


def due_date(profile: Profile | None, now: datetime) -> date:
    """The last date whose words are due."""
    on = _today(profile, now)
    while due_at(profile, on) > now:
        on -= _ONE_DAY
    return on


def due_subscriptions(
    profile: Profile | None, subscriptions: Sequence[Subscription], on: date, now: datetime
) -> Sequence[Subscription]:
    """Those whose words are due: a new subscription begins today, not with the words of a date before."""
    if on >= _today(profile, now):
        return subscriptions
    due = due_at(profile, on)
    return [subscription for subscription in subscriptions if subscription.since <= due]


def _today(profile: Profile | None, now: datetime) -> date:
    return now.astimezone(time_zone(profile.time_zone if profile else None)).date()
