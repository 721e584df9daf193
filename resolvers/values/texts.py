"""Rules for what clients give to be shown on pages: lines of text, and the addresses of links, pictures and sounds.

An address is only checked, and never fetched by this service.
"""

import re
import unicodedata
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

import idna

from datastore.refusals import InvalidInput
from datastore.values.folding import MOST_MARKS, in_form, is_stream_safe

CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U0010ffff]+")
"""What no line may hold: it ends lines, controls terminals or turns the direction of the writing around it.

U+10FFFF, which ends bounds of keys, is among them. The joiners U+200C and U+200D are not: several languages spell with
them.
"""

_SELECTORS = (*range(0x180B, 0x180E), 0x180F, *range(0xFE00, 0xFE10))
"""What chooses between the looks of the character before it."""
_RESERVED = (0x2065, *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000))
"""For what is not seen, some of it not known yet; among it are further selectors."""
FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0").union(map(chr, (*_SELECTORS, *_RESERVED)))
"""Characters that show nothing, although they are printable or not known here."""

MOST_BLANKS = 20
"""A line may be given with blanks that make it so many times as long."""
LONGEST_ADDRESS = 2000
ADDRESS_CHARACTERS = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""Printable ASCII without quotes, angle brackets, braces and the backslash, which browsers take for a slash."""
HOST_WITH_DOT = re.compile(r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+")


# ── lines ──


def is_printable(character: str) -> bool:
    """Also what is not known here: letters and emoji of a Unicode that is newer than this program's."""
    return character.isprintable() or unicodedata.category(character) == "Cn"


LINE = f"at least one visible, no control characters, and no more than {MOST_MARKS} accents or other marks in a row"
"""The rules for its characters, for the messages of refusals."""


def is_line(text: str, longest: int) -> bool:
    """Whether a text may be shown as a line, and compared: not too long, and by the rules of `LINE`."""
    if len(text) > longest or CONTROL_CHARACTERS.search(text):
        return False
    seen = any(is_printable(letter) and not letter.isspace() and letter not in FILLERS for letter in text)
    return seen and is_stream_safe(text)


def single_spaced(text: str, longest: int) -> str:
    """A text with single spaces; nothing for one that is so long that to look at it would take its time."""
    return " ".join(text.split()) if len(text) <= MOST_BLANKS * longest else ""


def parse_line(text: str, longest: int, subject: str, path: tuple[str, ...]) -> str:
    """One line, with single spaces. `subject` begins the refusal's message."""
    line = single_spaced(text, longest)
    if not is_line(line, longest):
        raise InvalidInput(f"{subject} has 1 to {longest} characters, {LINE}.", path=path)
    return line


def parse_lines(text: str, longest: int, subject: str, path: tuple[str, ...]) -> str:
    """A few lines of text without blanks at their ends; tabs may be in them. `subject` begins the refusal's message."""
    given = text if len(text) <= MOST_BLANKS * longest else ""
    lines = "\n".join(line.rstrip() for line in given.splitlines()).strip()
    if not is_line(lines.replace("\n", " ").replace("\t", " "), longest):
        raise InvalidInput(f"{subject} has 1 to {longest} characters, {LINE}; null for none.", path=path)
    return lines


def camel_case(name: str) -> str:
    """A name as GraphQL and JSON have it."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


# ── addresses ──


def validate_web_address(text: str, path: tuple[str, ...], subject: str) -> str:
    """The address of a picture or a sound of any host. `subject` begins the refusal's message."""
    usable = len(text) <= LONGEST_ADDRESS and is_stream_safe(text)  # `urlsplit` normalises a host
    try:
        parts = urlsplit(text if usable else "")
        usable = parts.scheme == "https" and bool(parts.hostname)
        usable = usable and not CONTROL_CHARACTERS.search(text) and not any(c.isspace() for c in text)
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput(
            f"{subject}'s address begins with https:// and has at most {LONGEST_ADDRESS} characters.", path=path
        )
    return text


def parse_link(text: str, path: tuple[str, ...]) -> str:
    """An address that a page may link to."""
    address = text.strip()
    _split(address, path)
    return address


def parse_image_address(text: str, hosts: Collection[str], path: tuple[str, ...]) -> str:
    """The address of a picture on one of these hosts."""
    if not hosts:
        raise InvalidInput(
            "Pictures by address are off: whoever runs the site has to allow the hosts that they come from.", path=path
        )
    address = text.strip()
    parts = _split(address, path)
    if parts.hostname not in hosts or parts.port not in (None, 443):
        raise InvalidInput(f"Pictures may come from these hosts only: {', '.join(sorted(hosts))}.", path=path)
    return address


def _split(address: str, path: tuple[str, ...]) -> SplitResult:
    plain = len(address) <= LONGEST_ADDRESS and ADDRESS_CHARACTERS.fullmatch(address)
    try:
        parts = urlsplit(address if plain else "")
        usable = parts.scheme == "https" and parts.username is None and parts.password is None and parts.port != 0
        usable = usable and HOST_WITH_DOT.fullmatch(parts.hostname or "") is not None
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput(
            "An address starts with https:// and a host, has no password and no spaces, and at most "
            f"{LONGEST_ADDRESS:,} characters. Copy it from the address bar: https://example.com/fighters/ada.",
            path=path,
        )
    return parts


# ── email addresses ──
# Which texts are email addresses: RFC 5321 and RFC 6531 without quoted names, comments and addresses of networks.

LONGEST_EMAIL = 254
"""RFC 5321: a path has 256 characters, two of them angle brackets."""
_LONGEST_NAME = 64
_LONGEST_DOMAIN = 253
# A name does not begin with a hyphen, which mail programs take for an option.
_NAME = re.compile(
    r"(?!-)[a-zA-Z0-9!#$%&'*+/=?^_`{|}~\x80-\U0010ffff-]+(\.[a-zA-Z0-9!#$%&'*+/=?^_`{|}~\x80-\U0010ffff-]+)*"
)
_DOMAIN = re.compile(r"([a-zA-Z0-9\x80-\U0010ffff-]+\.)+(?!\d+\Z)[a-zA-Z0-9\x80-\U0010ffff-]+")


def is_email_address(text: str) -> bool:
    name, at, domain = text.rpartition("@")
    fits = len(text.encode("utf-8", "replace")) <= LONGEST_EMAIL and is_stream_safe(text)
    return bool(at) and fits and _is_name(name) and _is_domain(domain)


def with_ascii_domain(address: str) -> str:
    """The address as every mail server takes it: with the form of its domain that name servers know.

    Unchanged if its name is beyond ASCII, which needs a server with SMTPUTF8 anyway, or if IDNA 2008 does not allow the
    domain. By the older IDNA 2003, which Python's codec has, ß would be ss: somebody else's domain.
    """
    name, _, domain = address.rpartition("@")
    return f"{name}@{ascii_domain(domain)}" if name.isascii() else address


def ascii_domain(domain: str) -> str:
    """A domain in the form that name servers know and browsers send; unchanged if IDNA 2008 does not allow it."""
    try:
        return domain if domain.isascii() else idna.encode(domain, uts46=True).decode()
    except UnicodeError:
        return domain


def _is_name(name: str) -> bool:
    # `=?` begins an RFC 2047 word, which mail programs decode.
    fits = _NAME.fullmatch(name) is not None and "=?" not in name
    return fits and len(name.encode("utf-8", "replace")) <= _LONGEST_NAME and _is_writing(name)


def _is_domain(domain: str) -> bool:
    """Whether every label has 1 to 63 characters as it is sent to name servers, with hyphens only inside.

    IDNA 2003, by Python's codec, is asked about a domain that IDNA 2008 does not allow: some have one.
    """
    if _DOMAIN.fullmatch(domain) is None or not _is_writing(domain):
        return False
    try:
        encoded = ascii_domain(domain).encode("idna").decode()
    except UnicodeError:  # a label is too long, or has characters that no domain may have
        return False
    fits = _DOMAIN.fullmatch(encoded) is not None and len(encoded) <= _LONGEST_DOMAIN
    return fits and not any(label.startswith("-") or label.endswith("-") for label in encoded.split("."))


def _is_writing(text: str) -> bool:
    """Whether every character beyond ASCII is a letter, a mark or a digit, in the one form that mail uses."""
    beyond_ascii = (character for character in text if not character.isascii())
    return in_form("NFC", text) == text and all(unicodedata.category(each)[0] in "LMN" for each in beyond_ascii)
