"""The daily email: its words in text and HTML, its headers, its links to unsubscribe.

Text from outside is reduced to one line before it goes into a header, and escaped before it goes into HTML. A link to
unsubscribe is signed for one member, works without a login and never expires.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from html import escape
from typing import Any

import orjson

from datastore.seal import Forged, Seal
from datastore.vocabulary import CharacterSet, Subscription, Word
from resolvers.people import validate_email_address

_PURPOSE = "unsubscribe"
_LONGEST_SUBJECT = 120


@dataclass(frozen=True, slots=True)
class Unsubscription:
    """The subscriptions that a link ends: one, or all of a member's."""

    user: str
    list: str | None = None
    character_set: CharacterSet | None = None

    def token(self, seal: Seal) -> str:
        fields = [self.user, self.list, self.character_set.value if self.character_set else None]
        return seal.sign_text(_PURPOSE, orjson.dumps(fields))

    def includes(self, subscription: Subscription) -> bool:
        return self.list in (None, subscription.list) and self.character_set in (None, subscription.character_set)

    @classmethod
    def parse(cls, seal: Seal, token: str) -> Unsubscription:
        """Forged unless this service signed the token."""
        try:
            user, list_id, characters = orjson.loads(seal.open_text(_PURPOSE, token))
            return cls(user, list_id, CharacterSet(characters) if characters else None)
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
        return self.word.simplified

    @property
    def language(self) -> str:
        return "zh-Hant" if self.character_set is CharacterSet.TRADITIONAL else "zh-Hans"


@dataclass(frozen=True, slots=True)
class EmailTemplate:
    """What all emails of a run have in common."""

    sender: str
    public_url: str
    seal: Seal
    on: date

    @property
    def host(self) -> str:
        return parseaddr(self.sender)[1].rpartition("@")[2] or "localhost"

    def link(self, unsubscription: Unsubscription) -> str:
        return f"{self.public_url.rstrip('/')}/unsubscribe?token={unsubscription.token(self.seal)}"

    def render(self, user: str, address: str, sections: Sequence[Section]) -> EmailMessage:
        """A member's email; InvalidInput if the address is not valid."""
        end_all = self.link(Unsubscription(user))
        email = EmailMessage(policy=SMTP)
        email["From"] = self.sender
        email["To"] = Address(addr_spec=validate_email_address(address))
        email["Subject"] = _subject(sections)
        email["Date"] = format_datetime(datetime.now(UTC))
        email["Message-ID"] = message_id(user, self.on, self.host)
        email["List-Unsubscribe"] = f"<{end_all}>"
        email["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        email["Auto-Submitted"] = "auto-generated"
        links = [self.link(Unsubscription(user, section.list, section.character_set)) for section in sections]
        email.set_content(_text(sections, links, end_all, self.on), cte="quoted-printable")
        email.add_alternative(_html(sections, links, end_all, self.on), subtype="html", cte="quoted-printable")
        return email


def message_id(user: str, on: date, host: str) -> str:
    """The same for every email to a member on a date, so that mail programs recognise a duplicate."""
    digest = hashlib.sha256(f"{user}\x00{on}".encode()).hexdigest()[:32]
    return f"<daily.{on:%Y%m%d}.{digest}@{host}>"


def _subject(sections: Sequence[Section]) -> str:
    first = sections[0]
    pinyin = f" ({first.word.pinyin})" if first.word.pinyin else ""
    others = f" and {len(sections) - 1} more" if len(sections) > 1 else ""
    return one_line(f"{first.characters}{pinyin}{others}: {first.word.definition}")[:_LONGEST_SUBJECT]


def one_line(text: str) -> str:
    """The text without any character that could end a header."""
    return "".join(character for character in " ".join(text.split()) if character.isprintable())


def _text(sections: Sequence[Section], links: Sequence[str], end_all: str, on: date) -> str:
    parts = [f"{_title(on)}\n"]
    for section, link in zip(sections, links, strict=True):
        pinyin = f"   {section.word.pinyin}" if section.word.pinyin else ""
        parts.append(
            f"{section.characters}{pinyin}\n{section.word.definition}\n"
            f"from {section.list_name} (unsubscribe from this list: {link})\n"
        )
    parts.append(f"Unsubscribe from all daily words: {end_all}\n")
    return "\n".join(parts)


_SECTION = """<tr><td style="padding:16px 0;border-bottom:1px solid #ddd">
<div lang="{language}" style="font-size:40px;line-height:1.2">{characters}</div>
<div style="color:#555">{pinyin}</div>
<div style="font-size:18px;padding:6px 0">{definition}</div>
<div style="font-size:12px;color:#777">from {name} · <a href="{link}">unsubscribe from this list</a></div>
</td></tr>"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body style="margin:0;font-family:system-ui,sans-serif;color:#222">
<table role="presentation" style="max-width:560px;margin:0 auto;padding:24px">
<tr><td style="font-size:14px;color:#777">{title}</td></tr>
{sections}
<tr><td style="padding-top:16px;font-size:12px;color:#777">
<a href="{end_all}">Unsubscribe from all daily words</a>
</td></tr>
</table>
</body></html>
"""


def _html(sections: Sequence[Section], links: Sequence[str], end_all: str, on: date) -> str:
    rendered = [
        _SECTION.format(
            **_escape(
                language=section.language,
                characters=section.characters,
                pinyin=section.word.pinyin or "",
                definition=section.word.definition,
                name=section.list_name,
                link=link,
            )
        )
        for section, link in zip(sections, links, strict=True)
    ]
    return _PAGE.format(sections="\n".join(rendered), **_escape(title=_title(on), end_all=end_all))


def _title(on: date) -> str:
    return f"Your words of {on:%A}, {on.day} {on:%B %Y}"


def _escape(**texts: str) -> dict[str, Any]:
    return {name: escape(text) for name, text in texts.items()}
