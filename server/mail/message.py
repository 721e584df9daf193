"""The daily email: its words in text and HTML, its headers, its links to unsubscribe.

Text from outside is reduced to one line, encoded before it goes into a header, and escaped before it goes into HTML. A
link to unsubscribe is signed for one member, works without a login and never expires.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from email.utils import format_datetime, parseaddr
from html import escape
from typing import Any

import orjson

from datastore.seal import Forged, Seal
from datastore.vocabulary import CharacterSet, Subscription, Word
from resolvers.people import validate_email_address
from server.mail.direction import direction, isolate
from server.mail.serialization import encode_header_text, one_line, serialize

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
        """The word's language for programs that read aloud or choose a font; empty if it is not known."""
        if not self.word.chinese:
            return ""
        return "zh-Hant" if self.character_set is CharacterSet.TRADITIONAL else "zh-Hans"

    def on_single_lines(self) -> Section:
        """The same with texts of one line each."""
        word = replace(
            self.word,
            simplified=one_line(self.word.simplified),
            traditional=one_line(self.word.traditional or "") or None,
            pinyin=one_line(self.word.pinyin or "") or None,
            own_reading=one_line(self.word.own_reading or "") or None,
            example=one_line(self.word.example or "") or None,
            definition=one_line(self.word.definition),
        )
        return replace(self, list_name=one_line(self.list_name), word=word)


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
    on: date

    @property
    def host(self) -> str:
        return parseaddr(self.sender)[1].rpartition("@")[2] or "localhost"

    def link(self, unsubscription: Unsubscription) -> str:
        return f"{self.public_url.rstrip('/')}/unsubscribe?token={unsubscription.token(self.seal)}"

    def render(self, user: str, address: str, sections: Sequence[Section]) -> Email:
        """A member's email; InvalidInput if the address is not valid."""
        recipient = validate_email_address(address)
        shown = [section.on_single_lines() for section in sections]
        end_all = self.link(Unsubscription(user))
        subject = _subject(shown)
        headers = {
            "From": self.sender,
            "To": recipient,
            "Subject": encode_header_text(subject),
            "Date": format_datetime(datetime.now(UTC)),
            "Message-ID": message_id(user, self.on, self.host),
            "List-Unsubscribe": f"<{end_all}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            "Auto-Submitted": "auto-generated",
        }
        links = [self.link(Unsubscription(user, section.list, section.character_set)) for section in shown]
        text = _text(shown, links, end_all, self.on)
        return Email(recipient, subject, text, serialize(headers, text, _html(shown, links, end_all, self.on)))


def message_id(user: str, on: date, host: str) -> str:
    """The same for every email to a member on a date, so that mail programs recognise a duplicate."""
    digest = hashlib.sha256(f"{user}\x00{on}".encode()).hexdigest()[:32]
    return f"<daily.{on:%Y%m%d}.{digest}@{host}>"


def _subject(sections: Sequence[Section]) -> str:
    first = sections[0]
    reading = f" ({isolate(first.word.reading)})" if first.word.reading else ""
    others = f" and {len(sections) - 1} more" if len(sections) > 1 else ""
    return f"{isolate(first.characters)}{reading}{others}: {isolate(first.word.definition)}"[:_LONGEST_SUBJECT]


def _text(sections: Sequence[Section], links: Sequence[str], end_all: str, on: date) -> str:
    parts = [f"{_title(on)}\n"]
    for section, link in zip(sections, links, strict=True):
        word = section.word
        reading = f"   {isolate(word.reading)}" if word.reading else ""
        example = f"{isolate(word.example)}\n" if word.example else ""
        parts.append(
            f"{isolate(section.characters)}{reading}\n{isolate(word.definition)}\n{example}"
            f"from {isolate(section.list_name)} (unsubscribe from this list: {link})\n"
        )
    parts.append(f"Unsubscribe from all daily words: {end_all}\n")
    return "\n".join(parts)


_SECTION = """<tr><td style="padding:16px 0;border-bottom:1px solid #ddd">
<div{language} dir="{direction}" style="font-size:40px;line-height:1.2">{characters}</div>
<div dir="{direction}" style="color:#555"><bdi>{reading}</bdi></div>
<div dir="{definition_direction}" style="font-size:18px;padding:6px 0">{definition}</div>
{example}<div style="font-size:12px;color:#777">from <bdi>{name}</bdi> ·
<a href="{link}">unsubscribe from this list</a></div>
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
                direction=direction(section.characters),
                characters=section.characters,
                reading=section.word.reading or "",
                definition_direction=direction(section.word.definition),
                definition=section.word.definition,
                name=section.list_name,
                link=link,
            ),
            language=f' lang="{section.language}"' if section.language else "",
            example=_example(section.word),
        )
        for section, link in zip(sections, links, strict=True)
    ]
    return _PAGE.format(sections="\n".join(rendered), **_escape(title=_title(on), end_all=end_all))


def _example(word: Word) -> str:
    if word.example is None:
        return ""
    return f'<div dir="{direction(word.example)}" style="color:#555;padding:6px 0">{escape(word.example)}</div>\n'


def _title(on: date) -> str:
    return f"Your words of {on:%A}, {on.day} {on:%B %Y}"


def _escape(**texts: str) -> dict[str, Any]:
    return {name: escape(text) for name, text in texts.items()}
