"""Addresses that clients give to be shown on pages: links, and pictures of hosts that the operator trusts.

Both are only checked, and never fetched by this service.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from datastore.refusals import InvalidInput

LONGEST_ADDRESS = 2000
_CHARACTERS = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""Printable ASCII without quotes, angle brackets, braces and the backslash, which browsers take for a slash."""
_HOST = re.compile(r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+")


def parse_link(text: str, path: tuple[str, ...]) -> str:
    """An address that a page may link to."""
    address = text.strip()
    _split(address, path)
    return address


def parse_image_address(text: str, hosts: Collection[str], path: tuple[str, ...]) -> str:
    """The address of a picture on one of these hosts."""
    if not hosts:
        raise InvalidInput(
            "Pictures by address are off: the operator names their hosts in RINGSIDE_IMAGE_HOSTS.", path=path
        )
    address = text.strip()
    parts = _split(address, path)
    if parts.hostname not in hosts or parts.port not in (None, 443):
        raise InvalidInput(f"Pictures may come from these hosts only: {', '.join(sorted(hosts))}.", path=path)
    return address


def _split(address: str, path: tuple[str, ...]) -> SplitResult:
    try:
        parts = urlsplit(address)
        usable = parts.scheme == "https" and parts.username is None and parts.password is None and parts.port != 0
        usable = usable and _HOST.fullmatch(parts.hostname or "") is not None
    except ValueError:
        usable = False
    if not usable or len(address) > LONGEST_ADDRESS or not _CHARACTERS.fullmatch(address):
        raise InvalidInput(
            "An address starts with https:// and a host, has no password and no spaces, and at most "
            f"{LONGEST_ADDRESS:,} characters. Copy it from the address bar: https://example.com/fighters/ada.",
            path=path,
        )
    return parts
