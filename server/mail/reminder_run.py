"""Reminders before the lock: one email for each event, only to members who asked for them and have no prediction.

    upcoming events ── members who want a reminder by now ── neither reminded nor predicted ── record ── send ── mark

The indexes only say which events and members to look at. The event, the member, their prediction and the earlier
reminder are read consistently just before. No member is looked at unless an event locks within the next seven days.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from datastore.people import profiles as profile_store
from datastore.people.profiles import Profile
from datastore.pickem import predictions
from datastore.pickem.events import Event, EventState, read_events
from datastore.pickem.predictions import RECORD_LIFETIME, REMINDERS, Reminder
from resolvers.people.profile import MOST_REMINDER_HOURS
from resolvers.requests.context import Services
from resolvers.vocabulary.schedules import time_zone
from server.mail.delivery import RunLimits, SendingSummary, send_all, send_once
from server.mail.message import Email, EmailTemplate, OtherEmails, Unsubscription, compose, host_of
from server.mail.rendering import EmailKind
from server.mail.smtp import EmailTransport

_BATCH = 100
_log = structlog.get_logger("ringside.reminders")


@dataclass(slots=True)
class ReminderSummary(SendingSummary):
    """What a run did."""

    events: int = 0
    passed_over: int = 0

    @property
    def complete(self) -> bool:
        return not self.failed

    def lines(self) -> list[str]:
        """To be printed."""
        counts = {
            "events that lock within a week": self.events,
            "reminders sent": self.sent,
            "reminded before, or with a prediction": self.passed_over,
            "failed": self.failed,
        }
        return [*(f"{count:>9,} {label}" for label, count in counts.items()), *self.reasons]


class _Recipient(NamedTuple):
    event: Event
    profile: Profile


class ReminderRun:
    """One run, by the process that holds the lease of the emails."""

    def __init__(
        self, services: Services, template: EmailTemplate, transport: EmailTransport, limits: RunLimits
    ) -> None:
        self._services = services
        self._template = template
        self._transport = transport
        self._limits = limits
        self.summary = ReminderSummary()

    async def run(self) -> ReminderSummary:
        """ServerUnreachable ends it early."""
        events = await self._events()
        self.summary.events = len(events)
        if events:
            await self._remind(events)
        return self.summary

    async def _events(self) -> list[Event]:
        now = self._services.clock()
        until = now + timedelta(hours=MOST_REMINDER_HOURS)
        return [event async for event in predictions.events_to_lock(self._services.table, now, until)]

    async def _remind(self, events: Sequence[Event]) -> None:
        """Walk the members once, and fill a batch for each event."""
        batches: dict[str, list[str]] = {event.id: [] for event in events}
        async for _, profile in profile_store.listed_profiles(self._services.table):
            for event in events:
                if _is_due(profile, event, self._services.clock()):
                    batch = batches[event.id]
                    batch.append(profile.user)
                    if len(batch) == _BATCH:
                        batches[event.id] = []
                        await self._send_batch(event.id, batch)
        for event_id, batch in batches.items():
            await self._send_batch(event_id, batch)

    async def _send_batch(self, event_id: str, users: Sequence[str]) -> None:
        if not users:
            return
        table, now = self._services.table, self._services.clock()
        event = (await read_events(table, [event_id])).get(event_id)
        passed_over = await predictions.read_reminded_or_predicted(table, event_id, users)
        profiles = await profile_store.read_profiles(table, users, consistent=True)
        self.summary.passed_over += len(passed_over)
        recipients = [
            _Recipient(event, profile)
            for user in users
            if (profile := profiles.get(user)) and event and user not in passed_over and _is_due(profile, event, now)
        ]
        await send_all(recipients, self._send_to, self._limits.at_once)

    async def _send_to(self, recipient: _Recipient) -> None:
        with self.summary.failure_counted(recipient.profile.user, _log):
            await self._send_email(recipient)

    async def _send_email(self, recipient: _Recipient) -> None:
        email = self._render(recipient)
        now = self._services.clock()
        user, event = recipient.profile.user, recipient.event.id
        record = Reminder(user, event, expires=now + RECORD_LIFETIME)
        if await send_once(self._services, self._transport, REMINDERS, record, email):
            self.summary.sent += 1
        else:
            self.summary.passed_over += 1

    def _render(self, recipient: _Recipient) -> Email:
        event, profile = recipient
        unsubscribe = self._template.link(Unsubscription(profile.user, other=OtherEmails.REMINDERS))
        zone = time_zone(profile.time_zone)
        values = {
            "event": event.name,
            "season": event.season,
            "place": event.place,
            "locks_at": event.starts_at.astimezone(zone),
            "time_zone": profile.time_zone or "UTC",
            "unsubscribe": unsubscribe,
        }
        rendered = self._template.templates.render(EmailKind.LOCK_REMINDER, values)
        identifier = _message_id(profile.user, event.id, host_of(self._template.sender))
        return compose(self._template.sender, profile.email or "", rendered, identifier, unsubscribe)


def _is_due(profile: Profile, event: Event, now: datetime) -> bool:
    """Whether the member wants to be reminded of the event by now, and can still predict it."""
    if not profile.lock_reminder_hours or not profile.email or event.state is not EventState.UPCOMING:
        return False
    if not event.card and event.tie_break is None:  # there is nothing to predict yet
        return False
    return now < event.starts_at <= now + timedelta(hours=profile.lock_reminder_hours)


def _message_id(user: str, event: str, host: str) -> str:
    """The same for every email to a member about an event, so that mail programs recognise a duplicate."""
    digest = hashlib.sha256(f"{user}\x00{event}".encode()).hexdigest()[:32]
    return f"<lock.{digest}@{host}>"
