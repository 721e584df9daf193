"""Emails: their texts, made from Jinja2 templates, their headers, and the links to unsubscribe.

The templates, a subject, plain text and HTML for each kind, are in `templates/`. A folder of the operator's
(RINGSIDE_EMAIL_TEMPLATES) replaces any of them, and `_page.html`, the frame of all; its own further files begin with
`_`. Templates run in a sandbox. What they print is reduced to one line, so that a text from outside cannot imitate what
surrounds it; in HTML it is also escaped. Text from outside is encoded before it goes into a header.
"""

from __future__ import annotations

import hashlib
from binascii import b2a_qp
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email.header import Header
from email.utils import format_datetime, parseaddr
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final
from unicodedata import bidirectional, name
from urllib.parse import urlsplit

import idna
import orjson
from jinja2 import ChoiceLoader, FileSystemLoader, StrictUndefined, TemplateError, TemplateNotFound, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from datastore.values.seal import Forged, Seal
from datastore.vocabulary.subscriptions import CharacterSet, Subscription
from datastore.vocabulary.words import Word
from resolvers.people.profile import validate_email_address
from resolvers.values.texts import is_printable, with_ascii_domain
from server import Failed

# ── writing directions ──

ISOLATES = "\u2068\u2069"
"""FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE."""
_RIGHT_TO_LEFT = {"R", "AL"}


def direction(text: str) -> str:
    """`rtl` or `ltr`, as the first letter with a direction says; for HTML's `dir`."""
    strong = (kind for kind in map(bidirectional, text) if kind in {"L", *_RIGHT_TO_LEFT})
    return "rtl" if next(strong, "L") in _RIGHT_TO_LEFT else "ltr"


def isolate(text: str) -> str:
    """The text for a plain line: one from right to left keeps the rest of the line in its order."""
    if any(bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        return text.join(ISOLATES)
    return text


def script_tag(text: str) -> str:
    """`und-Arab` or `und-Hebr`: a language that is not known, in the script of the first letter with a direction.

    It lets programs choose a font. Empty for all other scripts.
    """
    first = next((name(character, "") for character in text if bidirectional(character) in {"L", *_RIGHT_TO_LEFT}), "")
    return {"ARABIC": "und-Arab", "HEBREW": "und-Hebr"}.get(first.partition(" ")[0], "")


# ── serialization ──
# An email as bytes.
#
# `email.message.EmailMessage` decodes the RFC 2047 words (`=?utf-8?b?…?=`) of a value that is set as a header. On
# Python 3.11 and 3.12 a line end inside such a word then begins another header, or the body. So the headers are encoded
# here, nothing decodes them again, and an email whose headers are not exactly the intended ones is never sent. The body
# is put together here too: the package parses the headers of each part again, which was a third of a daily run's work.

_BOUNDARY = "=_alternative"
"""Never within a part: quoted-printable writes an equals sign as `=3D`."""
_BODY_HEADERS = {"MIME-Version": "1.0", "Content-Type": f'multipart/alternative; boundary="{_BOUNDARY}"'}
_LONGEST_PLAIN = 60
_LONGEST_LINE = 998
"""RFC 5322, without the line end."""
_SPELT: Final = frozenset("\u200c\u200d\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2").union(
    map(chr, range(0xE0020, 0xE0080))
)
"""Not printable, but Persian, Sinhala and other languages, and emoji, are spelt with joiners, flags such as Scotland's
with tags, and Arabic with signs around numbers."""


class UnsafeEmail(Exception):
    """The serialized headers are not exactly the intended ones. A fault of this program: the email is not sent."""


def one_line(text: str, keep: str = "") -> str:
    """The text without any character that could end a line, be invisible or turn the writing's direction.

    What words and emoji are spelt with stays.
    """
    kept = _SPELT.union(keep)
    return "".join(character for character in " ".join(text.split()) if is_printable(character) or character in kept)


def encode_subject(text: str) -> str:
    """Free text as a subject: as it is, or as RFC 2047 words if a mail program could read it otherwise.

    Its parts from outside are without marks of direction already, so those that are left are our own.
    """
    line = one_line(text, keep=ISOLATES)
    if line.isascii() and "=?" not in line and len(line) <= _LONGEST_PLAIN:
        return line
    return Header(line, "utf-8", maxlinelen=76, header_name="Subject").encode(linesep="\r\n")


def serialize(headers: Mapping[str, str], text: str, html: str) -> bytes:
    """The email with these headers, already encoded, and its body in two forms; UnsafeEmail if that is not the result.

    Addresses that are not ASCII are written in UTF-8, which needs a server with SMTPUTF8.
    """
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**headers, **_BODY_HEADERS}.items())
    parts = [_part("plain", text), _part("html", html)]
    content = b"".join([lines.encode(), b"\r\n", *parts, f"--{_BOUNDARY}--\r\n".encode()])
    _validate_headers(content, sorted([*headers, *_BODY_HEADERS]))
    return content


def _part(subtype: str, text: str) -> bytes:
    """One form of the body; each of its lines ends as SMTP wants it. The last line end belongs to the boundary."""
    head = (
        f'--{_BOUNDARY}\r\nContent-Type: text/{subtype}; charset="utf-8"\r\n'
        "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
    )
    lines = b"".join(line + b"\r\n" for line in text.encode().splitlines())
    return head.encode() + b2a_qp(lines, istext=True) + b"\r\n"


def _validate_headers(content: bytes, names: list[str]) -> None:
    lines = content.partition(b"\r\n\r\n")[0].split(b"\r\n")
    found = sorted(line.partition(b":")[0].decode() for line in lines if line[:1] not in (b" ", b"\t"))
    if found != names:
        raise UnsafeEmail(f"The email has the headers {found}.")
    if any(len(line) > _LONGEST_LINE or any(byte in line for byte in b"\r\n\x00") for line in lines):
        raise UnsafeEmail("A header has a line end or is too long.")


# ── rendering ──

_BUILT_IN = Path(__file__).parent / "templates"
_TEXTS = Path(__file__).with_name("texts")
_PARTS = (".subject.txt", ".txt", ".html")
_LONGEST_SUBJECT = 120


class EmailKind(Enum):
    """What an email is for; its value begins the names of its templates."""

    CONFIRM_SUBSCRIPTION = "confirm-subscription"
    CONFIRM_ADDRESS = "confirm-address"
    SIGN_IN = "sign-in"
    DAILY_WORD = "daily-word"
    LOCK_REMINDER = "lock-reminder"
    REPLIES = "replies"
    MODERATION_DIGEST = "moderation-digest"


@cache
def texts_in(language: str) -> Mapping[str, Mapping[str, str]]:
    """A page language's texts: those of each kind that has texts of its own, and of the pages that links open."""
    texts: Mapping[str, Mapping[str, str]] = orjson.loads((_TEXTS / f"{language}.json").read_bytes())
    return texts


def in_language(kind: EmailKind, language: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    """What the templates of a kind with texts of its own show: the texts of a page's language, with these values."""
    texts = {name: text.format(**shown) for name, text in texts_in(language)[kind.value].items()}
    return {**shown, "language": language, "direction": direction(texts["intro"]), "texts": texts}


class BrokenTemplate(Failed):
    """A template of the operator's cannot be used; the message names the file and the line."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"RINGSIDE_EMAIL_TEMPLATES is invalid: {reason}. Write the path of a folder with templates such as "
            "daily-word.html."
        )


@dataclass(frozen=True, slots=True)
class Rendered:
    """An email's texts."""

    subject: str
    text: str
    html: str


class EmailTemplates:
    """The templates of this deployment; BrokenTemplate if one of the folder cannot be used."""

    def __init__(self, folder: Path | None = None) -> None:
        folders = [folder, _BUILT_IN] if folder is not None else [_BUILT_IN]
        self._environment = ImmutableSandboxedEnvironment(
            loader=ChoiceLoader([FileSystemLoader(path) for path in folders]),
            autoescape=lambda name: name is not None and name.endswith(".html"),
            undefined=StrictUndefined,
            finalize=_printed,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
        )
        self._environment.filters["direction"] = direction
        self._environment.filters["isolate"] = _isolated
        if folder is not None:
            self._validate(folder)

    def render(self, kind: EmailKind, values: Mapping[str, Any]) -> Rendered:
        """An email's texts, of the values that `SAMPLES` lists for its kind."""
        subject, text, html = (self._environment.get_template(kind.value + part).render(values) for part in _PARTS)
        return Rendered(_shortened(one_line(subject, keep=ISOLATES)), text, html)

    def _validate(self, folder: Path) -> None:
        known = {"_page.html", *(kind.value + part for kind in EmailKind for part in _PARTS)}
        for file in sorted(path for path in folder.iterdir() if path.suffix in {".txt", ".html"}):
            if file.name not in known and not file.name.startswith("_"):
                names = ", ".join(sorted(known))
                raise BrokenTemplate(f"{file.name} is not the name of a template: they are {names}")
        for kind, values in SAMPLES.items():
            for part in _PARTS:
                self._validate_one(kind.value + part, values)

    def _validate_one(self, name: str, values: Mapping[str, Any]) -> None:
        try:
            self._environment.get_template(name).render(values)
        except TemplateSyntaxError as error:
            raise BrokenTemplate(f"{error.name or name}, line {error.lineno}: {error.message}") from None
        except TemplateNotFound as error:
            raise BrokenTemplate(f"{name} uses the template {error.name}, which does not exist") from None
        except UnicodeDecodeError:
            raise BrokenTemplate(f"{name} is not UTF-8") from None
        except Exception as error:  # noqa: BLE001 - a template can raise anything, as other code can
            reason = error.message if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
            raise BrokenTemplate(f"{name}, with example values: {reason}") from None


def _shortened(subject: str) -> str:
    """A subject of the length that is allowed. A direction that was begun in it is ended."""
    begun = subject[: _LONGEST_SUBJECT - 1]
    is_open = begun.count(ISOLATES[0]) > begun.count(ISOLATES[1])
    return begun + ISOLATES[1] if is_open else subject[:_LONGEST_SUBJECT]


class _Isolated(str):
    """One line, between our own marks of direction."""

    __slots__ = ()


def _isolated(text: str) -> str:
    return _Isolated(isolate(one_line(text)))


def _printed(value: Any) -> Any:
    """What a template prints of a value."""
    if value is None:
        return ""
    is_ready = isinstance(value, _Isolated) or hasattr(value, "__html__")
    return one_line(value) if isinstance(value, str) and not is_ready else value


_LINK = "https://api.example.org/…"
SAMPLES: Final[Mapping[EmailKind, Mapping[str, Any]]] = {
    EmailKind.CONFIRM_SUBSCRIPTION: {"address": "ada@example.org", "list_name": "HSK 1", "link": _LINK, "hours": 24},
    EmailKind.CONFIRM_ADDRESS: {"address": "ada@example.org", "name": "Ada", "link": _LINK, "hours": 24},
    EmailKind.SIGN_IN: {
        "code": "123456",
        "link": _LINK,
        "site": "www.example.com",
        "minutes": 15,
        "language": "en",
        "direction": "ltr",
        "texts": dict.fromkeys(("subject", "intro", "link", "button", "validity", "ignore"), "A sentence."),
    },
    EmailKind.DAILY_WORD: {
        "on": date(2026, 11, 20),
        "words": [
            {
                "term": "你好",
                "language": "zh-Hans",
                "reading": "nǐ hǎo",
                "definition": "hello",
                "example": None,
                "list_name": "HSK 1",
                "unsubscribe": _LINK,
            },
            {
                "term": "la llave",
                "language": "",
                "reading": None,
                "definition": "the hold",
                "example": "¡Qué llave!",
                "list_name": "Holds and throws",
                "unsubscribe": _LINK,
            },
        ],
        "unsubscribe_all": _LINK,
    },
    EmailKind.LOCK_REMINDER: {
        "event": "Full Circle",
        "season": "2026",
        "place": None,
        "locks_at": datetime(2026, 11, 20, 20, 0, tzinfo=UTC),
        "time_zone": "UTC",
        "unsubscribe": _LINK,
    },
    EmailKind.REPLIES: {
        "replies": [{"author": "Ada", "product": "42", "body": "I agree."}],
        "more": 3,
        "site": "www.example.com",
        "unsubscribe": _LINK,
        "language": "en",
        "direction": "ltr",
        "texts": dict.fromkeys(("subject", "intro", "more", "unsubscribe"), "A sentence."),
    },
    EmailKind.MODERATION_DIGEST: {
        "comments": [{"author": "Ada", "product": "42", "body": "Tickets!"}],
        "waiting": 5,
        "reported": 1,
        "new": 2,
        "site": "www.example.com",
        "link": _LINK,
        "language": "en",
        "direction": "ltr",
        "texts": dict.fromkeys(("subject", "intro", "button", "why"), "A sentence."),
    },
}
"""The values that each kind's templates get, with examples by which an operator's templates are checked."""


# ── emails ──
# A link to unsubscribe is signed for one member, works without a login and never expires.

_PURPOSE = "unsubscribe"


class OtherEmails(StrEnum):
    """Emails that a member asks for in their profile."""

    REMINDERS = "reminders"
    REPLIES = "replies"


@dataclass(frozen=True, slots=True)
class Unsubscription:
    """What a link ends: a member's subscriptions to one list, all of them, or other emails."""

    user: str
    list: str | None = None
    other: OtherEmails | None = None
    """Instead of subscriptions."""

    def token(self, seal: Seal) -> str:
        return seal.sign_text(_PURPOSE, orjson.dumps([self.user, self.list, self.other]))

    def link(self, seal: Seal, public_url: str) -> str:
        return f"{public_url}/unsubscribe?token={self.token(seal)}"

    def includes(self, subscription: Subscription) -> bool:
        return self.list in (None, subscription.list)

    @classmethod
    def parse(cls, seal: Seal, token: str) -> Unsubscription:
        """Forged unless this service signed the token."""
        try:
            user, list_id, other = orjson.loads(seal.open_text(_PURPOSE, token))
            return cls(user, list_id, OtherEmails(other) if other else None)
        except ValueError:
            raise Forged from None


@dataclass(frozen=True, slots=True)
class Section:
    """One subscription's word of the day; that of both character sets, if the word is the same in them."""

    list: str
    list_name: str
    character_set: CharacterSet | None
    word: Word

    @property
    def place(self) -> tuple[str, str, str]:
        """What sections are ordered by."""
        return self.list_name, self.list, self.character_set.value if self.character_set else ""

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
class Letterhead:
    """What all emails have in common: from whom they come, where their links lead, and the templates."""

    sender: str
    public_url: str
    seal: Seal
    templates: EmailTemplates = field(default_factory=EmailTemplates)

    @property
    def site(self) -> str:
        """The service's host as people write it, and its port."""
        netloc = urlsplit(self.public_url).netloc
        host, colon, port = netloc.partition(":")
        try:
            return f"{idna.decode(host)}{colon}{port}"
        except UnicodeError:  # an address of a network, or a name that IDNA 2008 does not allow
            return netloc

    def link(self, unsubscription: Unsubscription) -> str:
        return unsubscription.link(self.seal, self.public_url)

    def email(
        self, kind: EmailKind, values: Mapping[str, Any], address: str, identifier: str, one_click: str | None = None
    ) -> Email:
        """An email, to an ASCII form of the address if there is one; InvalidInput if the address is not valid.

        `identifier` is the Message-ID: the same for every copy, so that mail programs recognise one. `one_click` is
        the link that a mail program's button to unsubscribe posts to (RFC 8058).
        """
        rendered = self.templates.render(kind, values)
        recipient = with_ascii_domain(validate_email_address(address))
        headers = {
            "From": self.sender.replace("?= ", "?=\r\n "),  # RFC 2047: a line with encoded words has at most 76 letters
            "To": recipient,
            "Subject": encode_subject(rendered.subject),
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


def message_id(kind: str, sender: str, *about: object) -> str:
    """The same for every email of a kind about the same, so that mail programs recognise a duplicate."""
    digest = hashlib.sha256("\x00".join(map(str, about)).encode()).hexdigest()[:32]
    return f"<{kind}.{digest}@{host_of(sender)}>"
