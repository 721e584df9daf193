"""The emails that sign people in: six digits, then a link. In the language of the page that asked for one.

In a demo on this machine without a mail server they are written to the log, and shown by the page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from datastore.refusals import InvalidInput
from resolvers.members.sign_in_codes import MINUTES, PATH, CodeEmail, SignInCodes
from resolvers.people.confirmations import NotSent, PerhapsSent
from resolvers.requests.context import Services
from server.http.browser_pages import DemoEmails, shows_emails
from server.mail.message import Email, compose, host_of
from server.mail.rendering import EmailKind, EmailTemplates, in_language
from server.mail.smtp import (
    DeliveryUnknown,
    EmailRejected,
    EmailTransport,
    LogTransport,
    ServerUnreachable,
    SmtpTransport,
    sender_address,
)
from server.settings import Settings


def sign_in_values(settings: Settings, code: CodeEmail) -> dict[str, object]:
    """What the templates show of a code."""
    link = f"{settings.public_url.rstrip('/')}{PATH}?link={code.link}"
    shown = {"code": code.digits, "site": urlsplit(settings.public_url).netloc, "minutes": MINUTES, "link": link}
    return in_language(EmailKind.SIGN_IN, code.language, shown)


class _DemoTransport(LogTransport):
    """Shows emails in the log and, to visitors of the demo's page, there."""

    def __init__(self, emails: DemoEmails) -> None:
        self._emails = emails

    async def send(self, email: Email) -> None:
        self._emails.add(email.recipient, email.subject, email.text)
        await super().send(email)


@asynccontextmanager
async def sending_codes(settings: Settings, services: Services) -> AsyncIterator[None]:
    """Send the codes that people ask for: by the mail server or, in a demo without one, to its log and page."""
    sender, templates = sender_address(settings), EmailTemplates(settings.email_templates)
    smtp: SmtpTransport | None = None
    if settings.smtp_url is not None:
        smtp = SmtpTransport(settings.smtp_url.get_secret_value(), sender, for_requests=True)
    elif not shows_emails(settings):
        yield
        return
    transport: EmailTransport = smtp or _DemoTransport(services.get(DemoEmails))

    async def send(code: CodeEmail) -> None:
        try:
            rendered = templates.render(EmailKind.SIGN_IN, sign_in_values(settings, code))
            await transport.send(compose(sender, code.email, rendered, f"<sign-in.{code.id}@{host_of(sender)}>"))
        except (EmailRejected, ServerUnreachable, InvalidInput) as error:
            raise NotSent(str(error)) from None
        except DeliveryUnknown as error:
            raise PerhapsSent(str(error)) from None

    services.get(SignInCodes).start(send)
    try:
        yield
    finally:
        if smtp is not None:
            await smtp.close()
