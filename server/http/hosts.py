"""The hosts that requests may name. `endpoint.AllowedHosts` refuses all others."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from server.auth.cookies import LOOPBACK

ANY = "*"


def default_hosts(listening_on: str, public_url: str) -> tuple[str, ...]:
    """The hosts allowed if the operator names none: on loopback its names and the public one, otherwise any."""
    try:
        is_loopback = ip_address(listening_on).is_loopback
    except ValueError:
        is_loopback = listening_on == "localhost"
    own = f"[{listening_on}]" if ":" in listening_on else listening_on
    return (*LOOPBACK, own, *public_host(public_url)) if is_loopback else ()


def public_host(public_url: str) -> tuple[str, ...]:
    """The host of an address, as a Host header has it."""
    host = urlsplit(public_url).hostname
    return () if host is None else (f"[{host}]" if ":" in host else host,)
