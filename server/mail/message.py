"""The daily letter: its words in text and HTML, its headers, its links.

Everything from outside is one line before it comes near a header, and escaped before it comes near HTML. The links to
unsubscribe are signed for one member, work without a login and do not age.
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
from datastore.vocabulary import CharacterSet, Word
from resolvers.people import email_address

_PURPOSE = "unsubscribe"
_LONGEST_SUBJECT = 120


@dataclass(frozen=True, slots=True)
class Ending:
    """What a link ends: one subscription, or all of a member's."""

    user: str
    list: str | None = None
    character_set: CharacterSet | None = None

    def token(self, seal: Seal) -> str:
        named = [self.user, self.list, self.character_set.value if self.character_set else None]
        return seal.sign_text(_PURPOSE, orjson.dumps(named))

    @classmethod
    def opened(cls, seal: Seal, token: str) -> Ending:
        """What a token stands for; Forged if it is none of ours."""
        try:
            user, listed, characters = orjson.loads(seal.open_text(_PURPOSE, token))
            return cls(user, listed, CharacterSet(characters) if characters else None)
        except ValueError:
            raise Forged from None


@dataclass(frozen=True, slots=True)
class Portion:
    """One subscription's word of the day."""

    list: str
    list_name: str
    character_set: CharacterSet
    word: Word

    @property
    def shown(self) -> str:
        """The word in the subscriber's character set; where a list gives no other spelling, there is only one."""
        if self.character_set is CharacterSet.TRADITIONAL and self.word.traditional:
            return self.word.traditional
        return self.word.simplified

    @property
    def language(self) -> str:
        return "zh-Hant" if self.character_set is CharacterSet.TRADITIONAL else "zh-Hans"


@dataclass(frozen=True, slots=True)
class Stationery:
    """What all letters of a run have in common."""

    sender: str
    public_url: str
    seal: Seal
    on: date

    @property
    def host(self) -> str:
        return parseaddr(self.sender)[1].rpartition("@")[2] or "localhost"

    def link(self, ending: Ending) -> str:
        return f"{self.public_url.rstrip('/')}/unsubscribe?token={ending.token(self.seal)}"

    def letter(self, user: str, email: str, portions: Sequence[Portion]) -> EmailMessage:
        """The member's letter; InvalidInput if the address is none."""
        end_all = self.link(Ending(user))
        letter = EmailMessage(policy=SMTP)
        letter["From"] = self.sender
        letter["To"] = Address(addr_spec=email_address(email))
        letter["Subject"] = _subject(portions)
        letter["Date"] = format_datetime(datetime.now(UTC))
        letter["Message-ID"] = message_id(user, self.on, self.host)
        letter["List-Unsubscribe"] = f"<{end_all}>"
        letter["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        letter["Auto-Submitted"] = "auto-generated"
        links = [self.link(Ending(user, one.list, one.character_set)) for one in portions]
        letter.set_content(_text(portions, links, end_all, self.on), cte="quoted-printable")
        letter.add_alternative(_html(portions, links, end_all, self.on), subtype="html", cte="quoted-printable")
        return letter


def message_id(user: str, on: date, host: str) -> str:
    """The same for a member and a date whenever it is made, so that mail programs can tell a double."""
    named = hashlib.sha256(f"{user}\x00{on}".encode()).hexdigest()[:32]
    return f"<daily.{on:%Y%m%d}.{named}@{host}>"


def _subject(portions: Sequence[Portion]) -> str:
    first = portions[0]
    pinyin = f" ({first.word.pinyin})" if first.word.pinyin else ""
    others = f" and {len(portions) - 1} more" if len(portions) > 1 else ""
    return one_line(f"{first.shown}{pinyin}{others}: {first.word.definition}")[:_LONGEST_SUBJECT]


def one_line(text: str) -> str:
    """A text without anything that could end a header."""
    return "".join(character for character in " ".join(text.split()) if character.isprintable())


def _text(portions: Sequence[Portion], links: Sequence[str], end_all: str, on: date) -> str:
    parts = [f"Your words of {on:%A}, {on.day} {on:%B %Y}\n"]
    for portion, link in zip(portions, links, strict=True):
        pinyin = f"   {portion.word.pinyin}" if portion.word.pinyin else ""
        parts.append(
            f"{portion.shown}{pinyin}\n{portion.word.definition}\n"
            f"from {portion.list_name} (no longer this list: {link})\n"
        )
    parts.append(f"No more daily words at all: {end_all}\n")
    return "\n".join(parts)


_ROW = """<tr><td style="padding:16px 0;border-bottom:1px solid #ddd">
<div lang="{language}" style="font-size:40px;line-height:1.2">{shown}</div>
<div style="color:#555">{pinyin}</div>
<div style="font-size:18px;padding:6px 0">{definition}</div>
<div style="font-size:12px;color:#777">from {name} · <a href="{link}">no longer this list</a></div>
</td></tr>"""

_LETTER = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body style="margin:0;font-family:system-ui,sans-serif;color:#222">
<table role="presentation" style="max-width:560px;margin:0 auto;padding:24px">
<tr><td style="font-size:14px;color:#777">{title}</td></tr>
{rows}
<tr><td style="padding-top:16px;font-size:12px;color:#777"><a href="{end_all}">No more daily words at all</a></td></tr>
</table>
</body></html>
"""


def _html(portions: Sequence[Portion], links: Sequence[str], end_all: str, on: date) -> str:
    rows = [
        _ROW.format(
            **_escaped(
                language=portion.language,
                shown=portion.shown,
                pinyin=portion.word.pinyin or "",
                definition=portion.word.definition,
                name=portion.list_name,
                link=link,
            )
        )
        for portion, link in zip(portions, links, strict=True)
    ]
    title = f"Your words of {on:%A}, {on.day} {on:%B %Y}"
    return _LETTER.format(rows="\n".join(rows), **_escaped(title=title, end_all=end_all))


def _escaped(**texts: str) -> dict[str, Any]:
    return {name: escape(text) for name, text in texts.items()}
