"""An email as bytes.

`email.message.EmailMessage` decodes the RFC 2047 words (`=?utf-8?b?…?=`) of a value that is set as a header. On Python
3.11 and 3.12 a line end inside such a word then begins another header, or the body. So the headers are encoded here,
nothing decodes them again, and an email whose headers are not exactly the intended ones is never sent. The body is put
together here too: the package parses the headers of each part again, which was a third of a daily run's work.
"""

from __future__ import annotations

from binascii import b2a_qp
from collections.abc import Mapping
from email.header import Header

from server.mail.direction import ISOLATES

_BOUNDARY = "=_alternative"
"""Never within a part: quoted-printable writes an equals sign as `=3D`."""
_BODY_HEADERS = {"MIME-Version": "1.0", "Content-Type": f'multipart/alternative; boundary="{_BOUNDARY}"'}
_LONGEST_PLAIN = 60
_LONGEST_LINE = 998
"""RFC 5322, without the line end."""
_JOINERS = "\u200c\u200d"
"""Invisible, but Persian, Sinhala and other languages, and emoji, are spelt with them."""


class UnsafeEmail(Exception):
    """The serialized headers are not exactly the intended ones. A fault of this program: the email is not sent."""


def one_line(text: str, keep: str = "") -> str:
    """The text without any character that could end a line, be invisible or turn the writing's direction.

    Joiners stay, since words are spelt with them.
    """
    kept = _JOINERS + keep
    return "".join(character for character in " ".join(text.split()) if character.isprintable() or character in kept)


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
