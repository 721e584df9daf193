"""Which network addresses a webhook may have: public ones, and those of networks that the operator allows.

The lists are our own, since Python's change between its versions. An IPv6 address must be a global unicast one that
carries no other address: no IPv4-mapped, 6to4, Teredo or NAT64 address leads somewhere else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from datastore.refusals import InvalidInput

LONGEST_URL = 2000

_NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",  # the metadata service of one cloud
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "3fff::/20",
        ),
    )
)
_GLOBAL_UNICAST = ip_network("2000::/3")
_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a webhook is: parsed, and allowed as far as the URL says."""

    url: str
    secure: bool
    host: str


class ForbiddenAddress(Exception):
    """An address that nothing is sent to; the message says why."""


def check_address(text: str, allowed: Sequence[str], *, secure: bool) -> None:
    """ForbiddenAddress unless a request may be sent to this address."""
    address = ip_address(text.partition("%")[0])
    if any(address in ip_network(network) for network in allowed):
        return
    if not secure:
        raise ForbiddenAddress("http is only for networks of RINGSIDE_WEBHOOK_NETWORKS")
    if "%" in text or not _is_public(address):
        raise ForbiddenAddress(f"{text} is not a public address")


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


def parse_destination(url: str, allowed: Sequence[str]) -> Destination:
    """The destination that a URL names; InvalidInput with the reason if nothing may be sent there."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _refused("It cannot be read.") from None
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise _refused(f"It has at most {LONGEST_URL} characters, all of them plain ASCII.")
    if parts.scheme not in ("https", "http") or not host or port == 0:
        raise _refused("It begins with https:// and names a host.")
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise _refused("It may not contain a user or a password.")
    if parts.fragment:
        raise _refused("It may not have a fragment.")
    destination = Destination(url, parts.scheme == "https", host)
    _check_host(destination, allowed)
    return destination


def _check_host(destination: Destination, allowed: Sequence[str]) -> None:
    if not destination.secure and not allowed:
        raise _refused("It begins with https://.")
    host = destination.host
    if ":" in host or _ends_in_number(host):
        try:
            check_address(host, allowed, secure=destination.secure)
        except ForbiddenAddress as reason:
            raise _refused(f"Nothing is sent there: {reason}.") from None
        except ValueError:
            raise _refused(f"{host[:80]} is not an IP address in its usual form.") from None
    elif not _HOST.fullmatch(host):
        raise _refused(f"{host[:80]} cannot be a host name: between dots go 1 to 63 letters, digits and dashes.")


def _ends_in_number(host: str) -> bool:
    """Whether systems may read a host as an IPv4 address, in any of its forms: 127.1, 2130706433, 0x7f.0.0.1."""
    last = host.rstrip(".").rpartition(".")[2]
    return last.isdecimal() or last.startswith("0x")


def _refused(reason: str) -> InvalidInput:
    return InvalidInput(f"This is not an address for a webhook. {reason}", path=("input", "url"))
