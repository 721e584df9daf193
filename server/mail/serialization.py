"""An email as bytes.

`email.message.EmailMessage` decodes the RFC 2047 words (`=?utf-8?b?…?=`) of a value that is set as a header. On Python
3.11 and 3.12 a line end inside such a word then begins another header, or the body. So the headers are encoded here,
nothing decodes them again, and an email whose headers are not exactly the intended ones is never sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.header import Header
from email.message import EmailMessage
from email.policy import SMTP

from server.mail.direction import ISOLATES

_BODY_HEADERS = ("Content-Type", "MIME-Version")
_LONGEST_PLAIN = 60
_LONGEST_LINE = 998
"""RFC 5322, without the line end."""


class UnsafeEmail(Exception):
    """The serialized headers are not exactly the intended ones. A fault of this program: the email is not sent."""


def one_line(text: str, keep: str = "") -> str:
    """The text without any character that could end a line, be invisible or turn the writing's direction."""
    return "".join(character for character in " ".join(text.split()) if character.isprintable() or character in keep)


def encode_header_text(text: str) -> str:
    """Free text as a header's value: as it is, or as RFC 2047 words if a mail program could read it otherwise.

    Its parts from outside are without marks of direction already, so those that are left are our own.
    """
    line = one_line(text, keep=ISOLATES)
    if line.isascii() and "=?" not in line and len(line) <= _LONGEST_PLAIN:
        return line
    return Header(line, "utf-8", maxlinelen=75).encode(linesep="\r\n")


def serialize(headers: Mapping[str, str], text: str, html: str) -> bytes:
    """The email with these headers, already encoded, and its body in two forms; UnsafeEmail if that is not the result.

    Addresses that are not ASCII are written in UTF-8, which needs a server with SMTPUTF8.
    """
    body = EmailMessage(policy=SMTP)
    body.set_content(text, cte="quoted-printable")
    body.add_alternative(html, subtype="html", cte="quoted-printable")
    lines = [f"{name}: {value}\r\n".encode() for name, value in headers.items()]
    content = b"".join([*lines, body.as_bytes(policy=SMTP)])
    _validate_headers(content, sorted([*headers, *_BODY_HEADERS]))
    return content


def _validate_headers(content: bytes, names: list[str]) -> None:
    lines = content.partition(b"\r\n\r\n")[0].split(b"\r\n")
    found = sorted(line.partition(b":")[0].decode() for line in lines if line[:1] not in (b" ", b"\t"))
    if found != names:
        raise UnsafeEmail(f"The email has the headers {found}.")
    if any(len(line) > _LONGEST_LINE or any(byte in line for byte in b"\r\n\x00") for line in lines):
        raise UnsafeEmail("A header has a line end or is too long.")
