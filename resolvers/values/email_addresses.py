"""Which texts are email addresses: RFC 5321 and RFC 6531 without quoted names, comments and addresses of networks."""

from __future__ import annotations

import re
import unicodedata

import idna

from datastore.values.folding import in_form, is_stream_safe

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
    if domain.isascii() or not name.isascii():
        return address
    try:
        return f"{name}@{idna.encode(domain, uts46=True).decode()}"
    except UnicodeError:
        return address


def _is_name(name: str) -> bool:
    # `=?` begins an RFC 2047 word, which mail programs decode.
    fits = _NAME.fullmatch(name) is not None and "=?" not in name
    return fits and len(name.encode("utf-8", "replace")) <= _LONGEST_NAME and _is_writing(name)


def _is_domain(domain: str) -> bool:
    """Whether every label has 1 to 63 characters as it is sent to name servers, with hyphens only inside."""
    if _DOMAIN.fullmatch(domain) is None or not _is_writing(domain):
        return False
    try:
        encoded = domain.encode("idna").decode()
    except UnicodeError:  # a label is too long, or has characters that no domain may have
        return False
    labels = encoded.split(".")
    return len(encoded) <= _LONGEST_DOMAIN and not any(label.startswith("-") or label.endswith("-") for label in labels)


def _is_writing(text: str) -> bool:
    """Whether every character beyond ASCII is a letter, a mark or a digit, in the one form that mail uses."""
    beyond_ascii = (character for character in text if not character.isascii())
    return in_form("NFC", text) == text and all(unicodedata.category(each)[0] in "LMN" for each in beyond_ascii)
