"""Sending the emails that are due, daily words and reminders: by a command, or inside the service on a schedule."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

import structlog

from datastore.dynamo import DynamoError
from datastore.email_runs import take_turn
from resolvers.context import Services
from server.mail.daily_run import INDEX_LAG, DailyRun, RunSummary
from server.mail.delivery import RunLimits
from server.mail.message import EmailTemplate
from server.mail.reminder_run import ReminderRun, ReminderSummary
from server.mail.rendering import EmailTemplates
from server.mail.smtp import EmailTransport, ServerUnreachable, open_transport, sender_address
from server.settings import AWS, Settings

_LOOK_AGAIN = 20.0
"""Seconds between looks whether a run is due, each of which is one write."""
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


class EmailSchedule:
    """Sends what is due, every so many minutes; of several processes one at a time. After a kill, another goes on."""

    def __init__(self, services: Services, settings: Settings, minutes: float) -> None:
        self._services = services
        self._settings = settings
        self._period = timedelta(minutes=minutes)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            try:
                await self.run_if_due()
            except (DynamoError, ServerUnreachable) as error:
                _log.warning("sending emails failed; the next run goes on", reason=str(error))
            except Exception:  # noqa: BLE001 - no failure may end the schedule
                _log.exception("sending emails failed")
            await asyncio.sleep(_LOOK_AGAIN)

    async def run_if_due(self) -> bool:
        """Whether a run was due."""
        now = self._services.clock()
        if not await take_turn(self._services.table, now, now + self._period):
            return False
        async with open_transport(self._settings) as transport:
            limits = RunLimits(index_lag=index_lag(self._settings))
            emails = Emails(self._services, email_template(self._settings), transport, limits)
            words, reminders = await emails.send()
        failed = words.failed + reminders.failed
        if words.sent or reminders.sent or failed:
            _log.info("emails sent", words=words.sent, reminders=reminders.sent, failed=failed)
        for reason in (*words.reasons, *reminders.reasons):
            _log.warning("an email was not sent", reason=reason)
        return True
