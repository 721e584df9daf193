"""Sending the emails that are due, daily words and reminders: by a command, or inside the service on a schedule."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import structlog

from datastore.dynamo import DynamoError
from datastore.jobs.leases import Held, LeaseLost, Turn
from resolvers.live.background import Repeated
from resolvers.requests.context import Services
from server.mail.daily_run import INDEX_LAG, DailyRun, RunSummary
from server.mail.delivery import LeasedTransport, RunLimits
from server.mail.message import EmailTemplate
from server.mail.reminder_run import ReminderRun, ReminderSummary
from server.mail.rendering import EmailTemplates
from server.mail.smtp import EmailTransport, ServerUnreachable, open_transport, sender_address
from server.settings import AWS, Settings

EMAILS = "emails"
"""The turn of the process that sends emails."""
_LOOK_AGAIN = 20.0
"""Seconds until the next attempt, if another process sends the emails or a run has just ended."""
_WAIT = 1.0
_CLOCK_SKEW = timedelta(minutes=1)
_log = structlog.get_logger("ringside.emails")


def email_template(settings: Settings) -> EmailTemplate:
    templates = EmailTemplates(settings.email_templates)
    return EmailTemplate(sender_address(settings), settings.public_url, settings.seal(), templates)


def index_lag(settings: Settings) -> timedelta:
    """Local engines' indexes are never behind."""
    return INDEX_LAG if settings.dynamodb_url == AWS else timedelta()


@dataclass(frozen=True, slots=True)
class Emails:
    """Sends what is due."""

    services: Services
    template: EmailTemplate
    transport: EmailTransport
    limits: RunLimits

    def daily_words(self, progress: Callable[[RunSummary], None] = lambda _: None, on: date | None = None) -> DailyRun:
        return DailyRun(self.services, self.template, self.transport, self.limits, progress, on)

    def reminders(self) -> ReminderRun:
        return ReminderRun(self.services, self.template, self.transport, self.limits)

    async def send(self) -> tuple[RunSummary, ReminderSummary]:
        """The reminders first: they have a deadline."""
        reminded = await self.reminders().run()
        return await self.daily_words().run(), reminded


async def turn(services: Services) -> Held[Turn]:
    """The lease of the emails, once no other process sends any."""
    while True:
        lease = await services.leases.take_turn(EMAILS)
        if lease is not None:
            return lease
        await asyncio.sleep(_WAIT)


class EmailSchedule(Repeated):
    """Sends what is due, every so many minutes; of several processes one at a time.

    The place of the lease is when the next run is due. It is set when a run has ended: so if the process is killed or
    stops, another one finds that a run is still due, and goes on, since what was sent is marked.
    """

    def __init__(self, services: Services, settings: Settings, minutes: float) -> None:
        self._services = services
        self._settings = settings
        self._period = timedelta(minutes=minutes)
        self._until_next = _LOOK_AGAIN
        problem = "sending emails failed; the next run goes on"
        super().__init__(self.run_if_due, lambda: self._until_next, problem, _log, ServerUnreachable)

    async def run_if_due(self) -> bool:
        """Whether a run was due, and no other process has it."""
        self._until_next = _LOOK_AGAIN
        lease = await self._services.leases.take_turn(EMAILS)
        if lease is None:
            return False
        now = self._services.clock()
        next_at = datetime.fromisoformat(lease.record.place) if lease.record.place else now
        # A time that is later than it can be was set by a clock that was ahead.
        is_due = not now < next_at <= now + self._period + _CLOCK_SKEW
        try:
            if is_due:
                next_at = now + self._period
                await lease.renewed_during(self._send(lease))
            else:
                self._until_next = (next_at - now).total_seconds()
        except asyncio.CancelledError:
            next_at = now
            raise
        finally:
            with contextlib.suppress(LeaseLost, DynamoError):
                await lease.release(place=next_at.isoformat())
        return is_due

    async def _send(self, lease: Held[Turn]) -> None:
        async with open_transport(self._settings) as transport:
            limits = RunLimits(index_lag=index_lag(self._settings))
            leased = LeasedTransport(transport, lease)
            words, reminders = await Emails(self._services, email_template(self._settings), leased, limits).send()
        failed = words.failed + reminders.failed
        if words.sent or reminders.sent or failed:
            _log.info("emails sent", words=words.sent, reminders=reminders.sent, failed=failed)
        for reason in (*words.reasons, *reminders.reasons):
            _log.warning("an email was not sent", reason=reason)
