"""Reminders before the lock: a record for each member and event, so that nobody gets a second one.

The event is in the key, so an event that is postponed reminds nobody again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo import key_text
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.people.profiles import member_shard
from datastore.people.sent_emails import SentEmails
from datastore.pickem.event_records import EVENT, Event, EventState
from datastore.pickem.predictions import PREDICTION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from datastore.dynamo import Table

RECORD_LIFETIME = timedelta(days=400)
"""Longer than an event is likely to be postponed."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """A member's reminder of an event, which a run has begun to send, and then sent."""

    user: str
    event: str
    expires: datetime
    sent: datetime | None = None


REMINDER = Entity(Reminder, Key("USER#{user}", "LOCKREMINDER#{event}"), ttl="expires")
REMINDERS = SentEmails(REMINDER)


def events_to_lock(table: Table, now: datetime, until: datetime) -> AsyncIterator[Event]:
    """The upcoming events that start between these moments, as the index shows them."""
    partition = EVENT.on("gsi2", state=EventState.UPCOMING)
    return table.iterate(partition.between(key_text(now), key_text(until)))


async def settled_reminders(table: Table, event: str, users: Sequence[str]) -> Collection[str]:
    """Those of the members who need no reminder of the event: they have a prediction, or were reminded before."""
    reminders = await table.get_many([REMINDER.at(user=user, event=event) for user in users], consistent=True)
    keys = [PREDICTION.at(event=event, shard=member_shard(user), user=user) for user in users]
    predictions = await table.get_many(keys, consistent=True)
    sent = {reminder.user for reminder in reminders if reminder is not None and reminder.sent is not None}
    return sent | {prediction.user for prediction in predictions if prediction is not None}
