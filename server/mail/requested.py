"""The emails that requests ask for: links that confirm, and codes that sign in. Each is sent at once, in one attempt.

A code is six digits, then a link, in the language of the page that asked for it. In a demo on this machine without a
mail server codes are written to the log, and shown by the page.
"""

from dataclasses import dataclass
from typing import Any

from datastore.refusals import InvalidInput
from resolvers.members.sign_in_codes import MINUTES, CodeEmail, SignInCodes
from resolvers.members.sign_in_codes import PATH as SIGN_IN_PATH
from resolvers.people import confirmations
from resolvers.requests.context import Services
from server.http.browser_pages import DemoEmails, shows_emails
from server.mail import sending
from server.mail.message import Email, EmailKind, EmailTemplates, Letterhead, host_of, in_language
from server.settings import Settings

_KINDS = {
    confirmations.Purpose.SUBSCRIPTION: EmailKind.CONFIRM_SUBSCRIPTION,
    confirmations.Purpose.ADDRESS: EmailKind.CONFIRM_ADDRESS,
}


def send_requested_emails(settings: Settings, services: Services) -> None:
    """Send them from now on: by the mail server or, in a demo without one, codes to its log and page."""
    templates = EmailTemplates(settings.email_templates)
    letterhead = Letterhead(sending.sender_address(settings), settings.public_url, services.seal, templates)
    if settings.smtp_url is not None:
        url = settings.smtp_url.get_secret_value()
        links, codes = (sending.SmtpTransport(url, letterhead.sender, for_requests=True) for _ in range(2))
        services.get(confirmations.Confirmations).start(_RequestedEmails(letterhead, links).send_link)
        services.get(SignInCodes).start(_RequestedEmails(letterhead, codes).send_code)
    elif shows_emails(settings):
        shown = _DemoTransport(services.get(DemoEmails))
        services.get(SignInCodes).start(_RequestedEmails(letterhead, shown).send_code)


@dataclass(frozen=True, slots=True)
class _RequestedEmails:
    """Makes the emails, and sends each by a transport."""

    letterhead: Letterhead
    transport: sending.EmailTransport

    async def send_link(self, link: confirmations.Link, values: dict[str, Any]) -> None:
        address = f"{self.letterhead.public_url}{confirmations.PATH}?token={link.token(self.letterhead.seal)}"
        shown = {**values, "address": link.email, "link": address, "hours": confirmations.LINK_HOURS}
        member = "" if link.purpose is confirmations.Purpose.SUBSCRIPTION else f".{self._short(link)}"
        identifier = f"confirm.{link.purpose.value.lower()}.{link.on:%Y%m%d}.{link.address}{member}"
        await self._send(link.email, _KINDS[link.purpose], shown, identifier)

    def _short(self, link: confirmations.Link) -> str:
        """Return what identifies the member: two members who ask for the same address get an email each."""
        return self.letterhead.seal.keyed_hash("confirmation id", link.about[0].encode()).hex()[:16]

    async def send_code(self, code: CodeEmail) -> None:
        link = f"{self.letterhead.public_url}{SIGN_IN_PATH}?link={code.link}"
        shown = {"code": code.digits, "site": self.letterhead.site, "minutes": MINUTES, "link": link}
        values = in_language(EmailKind.SIGN_IN, code.language, shown)
        await self._send(code.email, EmailKind.SIGN_IN, values, f"sign-in.{code.id}")

    async def _send(self, address: str, kind: EmailKind, shown: dict[str, Any], identifier: str) -> None:
        """Send an email; NotSent, Undeliverable or PerhapsSent if that failed."""
        message_id = f"<{identifier}@{host_of(self.letterhead.sender)}>"
        try:
            await self.transport.send(self.letterhead.email(kind, shown, address, message_id))
        except sending.AddressNotTaken as error:
            raise confirmations.Undeliverable(str(error)) from None
        except (sending.EmailRejected, sending.ServerUnreachable, InvalidInput) as error:
            raise confirmations.NotSent(str(error)) from None
        except sending.DeliveryUnknown as error:
            raise confirmations.PerhapsSent(str(error)) from None


class _DemoTransport(sending.LogTransport):
    """Shows emails in the log and, to visitors of the demo's page, there."""

    def __init__(self, emails: DemoEmails) -> None:
        self._emails = emails

    async def send(self, email: Email) -> None:
        self._emails.add(email.recipient, email.subject, email.text)
        await super().send(email)
