"""Sending the emails that are due, daily words and reminders: by a command, or inside the service on a schedule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

import structlog

from datastore.jobs.leases import Held, Turn
from resolvers.requests.context import Services
from server.mail.daily_run import INDEX_LAG, DailyRun, RunSummary
from server.mail.delivery import LeasedTransport, RunLimits
from server.mail.message import EmailTemplate
from server.mail.reminder_run import ReminderRun, ReminderSummary
from server.mail.rendering import EmailTemplates
from server.mail.schedules import TurnSchedule
from server.mail.smtp import EmailTransport, open_transport, sender_address
from server.settings import AWS, Settings

EMAILS = "emails"
"""The turn of the process that sends emails."""
_WAIT = 1.0
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


class EmailSchedule(TurnSchedule):
    """Sends what is due, every so many minutes."""

    def __init__(self, services: Services, settings: Settings, minutes: float) -> None:
        self._services = services
        self._settings = settings
        super().__init__(services, EMAILS, timedelta(minutes=minutes), self._send)

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
