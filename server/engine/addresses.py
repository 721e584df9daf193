"""The engine's address: on loopback, at a port that browsers refuse to connect to.

The engines answer any web page (`Access-Control-Allow-Origin: *`), accept any credentials, and have no option against
either. So they listen only at bad ports of the Fetch standard (https://fetch.spec.whatwg.org/#bad-port): a browser
refuses to connect to those, for fetches, navigations and WebSockets alike, whatever host name a page uses.
"""

import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from server.engine.programs import EngineRefused

BAD_PORTS: Final = (
    6665, 6666, 6667, 6668, 6669, 6697, 10080, 6566, 4045, 3659, 1719, 1720, 1723, 5060, 5061, 6000, 2049,
)  # fmt: skip
"""The bad ports above 1023, which need no privilege; those that other services use come last.

Not 4190 and 6679: they are in the standard, and Chromium 156 connects to them.
"""

HOSTS: Final = 16
"""How many random addresses of 127.0.0.0/8 are tried. All of it is loopback on Linux, so engines can share a port."""


@contextmanager
def reserved_address() -> Iterator[tuple[str, int]]:
    """Yield a free loopback address that stays reserved for the engine, even while the engine is down.

    On Linux a socket is bound to it that never listens. It must be the first one there; afterwards it allows address
    reuse, so that the engine may listen beside it and no other process takes the address. On other systems the address
    was merely free a moment ago.
    """
    holder, address = _first_free()
    with holder:
        if sys.platform != "linux":
            holder.close()
        yield address


def is_embedded(url: str) -> bool:
    """Whether an embedded engine may listen at this address, of this process or of another one."""
    parts = urlsplit(url)
    return (parts.hostname or "").startswith("127.") and parts.port in BAD_PORTS


def _first_free() -> tuple[socket.socket, tuple[str, int]]:
    for host in _hosts():
        for port in BAD_PORTS:
            # dynoxide does not start if anything listens at this port of 127.0.0.1, whatever its own address is.
            if not _is_used(port) and (holder := _bound(host, port)):
                return holder, (host, port)
    raise EngineRefused(
        f"None of the ports {', '.join(map(str, sorted(BAD_PORTS)))} is free, and on others web pages could read the "
        "embedded engine's table. Stop what listens on one of them, or set RINGSIDE_DYNAMODB_URL to another engine."
    )


def _hosts() -> Iterator[str]:
    if sys.platform == "linux":
        for _ in range(HOSTS):
            yield "127.{}.{}.{}".format(*(1 + secrets.randbelow(254) for _ in range(3)))
    yield "127.0.0.1"


def _is_used(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _bound(host: str, port: int) -> socket.socket | None:
    """A socket that is bound to an address, and is the only one on Linux; None if the address is taken."""
    holder = socket.socket()
    if sys.platform != "linux":
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        holder.bind((host, port))
    except OSError:
        holder.close()
        return None
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return holder
