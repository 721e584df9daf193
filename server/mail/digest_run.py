"""Digests: what waits for moderators, by email to addresses that the operator names, each as often as they say.

Nothing is sent while nothing waits. An email shows comments as text and leads to the moderators' page: nothing is
decided by a link, which mail scanners open too.
"""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit

import structlog

from datastore.comments.changes import count_queue, read_queue
from datastore.comments.notices import DIGEST_EMAILS, RECORD_LIFETIME, DigestMail
from datastore.comments.records import Comment, Status
from datastore.dynamo import Window
from datastore.jobs.leases import Held, Turn
from datastore.refusals import Refusal
from resolvers.requests.context import Services
from server.mail.delivery import LeasedTransport, SendingFailed, send_once
from server.mail.emails_due import email_template
from server.mail.message import Email, EmailTemplate, compose, host_of
from server.mail.rendering import EmailKind, in_language
from server.mail.reply_run import MOST_SHOWN, ReplySchedule, shown_comments
from server.mail.schedules import TurnSchedule
from server.mail.smtp import open_transport
from server.settings import Settings
from server.settings.values import Digest

_PURPOSE = "moderation email"
_FIRST = "first"
_log = structlog.get_logger("ringside.digests")


def comment_emails(settings: Settings, services: Services) -> list[TurnSchedule]:
    """What sends emails about comments; nothing without a mail server."""
    if settings.smtp_url is None:
        return []
    digests = [DigestSchedule(services, settings, digest) for digest in settings.moderation_emails]
    return [ReplySchedule(services, settings), *digests]


class DigestSchedule(TurnSchedule):
    """Sends one address what waits, as often as it is said of that address."""

    def __init__(self, services: Services, settings: Settings, digest: Digest) -> None:
        self._services = services
        self._settings = settings
        self._digest = digest
        self._address = services.seal.keyed_hash(_PURPOSE, digest.address.encode()).hex()[:32]
        super().__init__(services, f"digest {self._address}", digest.period, self._send)

    async def _send(self, lease: Held[Turn]) -> None:
        template = email_template(self._settings)
        email = await self.render(template, f"{self._address} {lease.record.place}")
        if email is None:
            return
        now = self._services.clock()
        record = DigestMail(self._address, lease.record.place or _FIRST, now + RECORD_LIFETIME)
        async with open_transport(self._settings) as transport:
            try:
                await send_once(self._services, LeasedTransport(transport, lease), DIGEST_EMAILS, record, email)
            except (SendingFailed, Refusal) as error:
                _log.warning("a digest was not sent", reason=str(error))

    async def render(self, template: EmailTemplate, occasion: str) -> Email | None:
        """The email; None if nothing waits."""
        table, since = self._services.table, self._services.clock() - self._digest.period
        waiting = await count_queue(table, Status.PENDING)
        reported = await count_queue(table, Status.PUBLISHED)
        if not waiting and not reported:
            return None
        site = template.public_url.rstrip("/")
        shown = {
            "site": urlsplit(site).netloc,
            "waiting": waiting,
            "reported": reported,
            "new": await count_queue(table, Status.PENDING, since=since),
            "comments": await shown_comments(self._services, await self._oldest()),
            "link": f"{site}/admin",
        }
        values = in_language(EmailKind.MODERATION_DIGEST, self._digest.language, shown)
        rendered = template.templates.render(EmailKind.MODERATION_DIGEST, values)
        identifier = f"<digest.{hashlib.sha256(occasion.encode()).hexdigest()[:32]}@{host_of(template.sender)}>"
        return compose(template.sender, self._digest.address, rendered, identifier)

    async def _oldest(self) -> list[Comment]:
        """Those that wait, then those that are reported."""
        window, comments = Window(MOST_SHOWN, self._services.seal), list[Comment]()
        for status in (Status.PENDING, Status.PUBLISHED):
            page = await read_queue(self._services.table, status, window)
            comments += [comment for comment in page.nodes if comment is not None]
        return comments[:MOST_SHOWN]
