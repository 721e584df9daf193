"""Emails: their headers and, for the daily words, what the templates show and the links to unsubscribe.

Text from outside is encoded before it goes into a header; the templates reduce it to one line. A link to unsubscribe is
signed for one member, works without a login and never expires.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email.utils import format_datetime, parseaddr
from enum import StrEnum
from typing import Any

import orjson

from datastore.values.seal import Forged, Seal
from datastore.vocabulary.subscriptions import CharacterSet, Subscription
from datastore.vocabulary.words import Word
from resolvers.people.profile import validate_email_address
from resolvers.values.texts import with_ascii_domain
from server.mail.rendering import EmailKind, EmailTemplates, Rendered, encode_header_text, script_tag, serialize

_PURPOSE = "unsubscribe"


class OtherEmails(StrEnum):
    """Emails that a member asks for in their profile."""

    REMINDERS = "reminders"
    REPLIES = "replies"


@dataclass(frozen=True, slots=True)
class Unsubscription:
    """What a link ends: one of a member's subscriptions, all of them, or other emails."""

    user: str
    list: str | None = None
    character_set: CharacterSet | None = None
    other: OtherEmails | None = None
    """Instead of subscriptions."""

    def token(self, seal: Seal) -> str:
        fields = [self.user, self.list, self.character_set.value if self.character_set else None]
        return seal.sign_text(_PURPOSE, orjson.dumps([*fields, self.other.value] if self.other else fields))

    def link(self, seal: Seal, public_url: str) -> str:
        return f"{public_url.rstrip('/')}/unsubscribe?token={self.token(seal)}"

    def includes(self, subscription: Subscription) -> bool:
        return self.list in (None, subscription.list) and self.character_set in (None, subscription.character_set)

    @classmethod
    def parse(cls, seal: Seal, token: str) -> Unsubscription:
        """Forged unless this service signed the token."""
        try:
            user, list_id, characters, *more = orjson.loads(seal.open_text(_PURPOSE, token))
            other = OtherEmails(more[0]) if more else None
            return cls(user, list_id, CharacterSet(characters) if characters else None, other)
        except ValueError:
            raise Forged from None


@dataclass(frozen=True, slots=True)
class Section:
    """One subscription's word of the day."""

    list: str
    list_name: str
    character_set: CharacterSet
    word: Word

    @property
    def characters(self) -> str:
        """The word in the subscriber's character set, or in the only one that the list has."""
        if self.character_set is CharacterSet.TRADITIONAL and self.word.traditional:
            return self.word.traditional
        return self.word.term

    @property
    def language(self) -> str:
        """The word's language for programs that read aloud or choose a font; empty if it is not known."""
        if not self.word.chinese:
            return script_tag(self.characters)
        return "zh-Hant" if self.character_set is CharacterSet.TRADITIONAL else "zh-Hans"


@dataclass(frozen=True, slots=True)
class Email:
    """An email as it is sent, and what the log shows of it."""

    recipient: str
    subject: str
    text: str
    content: bytes


@dataclass(frozen=True, slots=True)
class EmailTemplate:
    """What all emails of a run have in common."""

    sender: str
    public_url: str
    seal: Seal
    templates: EmailTemplates = field(default_factory=EmailTemplates)

    def link(self, unsubscription: Unsubscription) -> str:
        return unsubscription.link(self.seal, self.public_url)

    def render(self, user: str, address: str, sections: Sequence[Section], on: date) -> Email:
        """A member's email of a date; InvalidInput if the address is not valid."""
        end_all = self.link(Unsubscription(user))
        words = [self._word(user, section) for section in sections]
        values = {"on": on, "words": words, "unsubscribe_all": end_all}
        rendered = self.templates.render(EmailKind.DAILY_WORD, values)
        return compose(self.sender, address, rendered, message_id(user, on, host_of(self.sender)), end_all)

    def _word(self, user: str, section: Section) -> dict[str, Any]:
        """What the templates show of a section."""
        return {
            "term": section.characters,
            "language": section.language,
            "reading": section.word.reading,
            "definition": section.word.definition,
            "example": section.word.example,
            "list_name": section.list_name,
            "unsubscribe": self.link(Unsubscription(user, section.list, section.character_set)),
        }


def compose(sender: str, address: str, rendered: Rendered, identifier: str, one_click: str | None = None) -> Email:
    """An email with these texts, to an ASCII form of the address if there is one; InvalidInput if it is not valid.

    `identifier` is the Message-ID: the same for every copy, so that mail programs recognise one. `one_click` is the
    link that a mail program's button to unsubscribe posts to (RFC 8058).
    """
    recipient = with_ascii_domain(validate_email_address(address))
    headers = {
        "From": sender,
        "To": recipient,
        "Subject": encode_header_text(rendered.subject),
        "Date": format_datetime(datetime.now(UTC)),
        "Message-ID": identifier,
        "Auto-Submitted": "auto-generated",
    }
    if one_click is not None:
        headers |= {"List-Unsubscribe": f"<{one_click}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    return Email(recipient, rendered.subject, rendered.text, serialize(headers, rendered.text, rendered.html))


def host_of(sender: str) -> str:
    """The host of a From header, for Message-IDs."""
    return parseaddr(sender)[1].rpartition("@")[2] or "localhost"


def message_id(user: str, on: date, host: str) -> str:
    """The same for every email to a member on a date, so that mail programs recognise a duplicate."""
    digest = hashlib.sha256(f"{user}\x00{on}".encode()).hexdigest()[:32]
    return f"<daily.{on:%Y%m%d}.{digest}@{host}>"
