"""Refuses requests that name another host than this service's.

A page of another site can let its own name point to this address (DNS rebinding), and then read the answers as if they
were its own site's. What the service on a developer's machine holds must not be read that way, so on loopback the host
is checked by default. Health checks and metrics are not checked: orchestrators ask by address.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.response import error_response

UNCHECKED = frozenset({"/livez", "/readyz", "/metrics"})
_HOST = re.compile(r"(\[[^\]]*\]|[^:@\[\]]*)(?::[0-9]*)?")
"""A name or an address, which has brackets if it is IPv6, and perhaps a port."""


class AllowedHosts:
    """An ASGI application that hands requests for these hosts to `app`."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_allowed(scope) or scope["path"] in UNCHECKED:
            await self._app(scope, receive, send)
        else:
            message = "The request names another host. RINGSIDE_ALLOWED_HOSTS lists the service's."
            await error_response(HTTPException(400, message))(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        """Whether each host named is allowed; a request without one comes from no browser."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        return all(_name(host) in self._hosts for host in hosts)


@lru_cache(maxsize=256)  # bounded, since clients choose the header
def _name(value: bytes) -> str:
    """The host of a Host header, without its port; "" if it holds anything else, as in `localhost:80@evil.example`."""
    found = _HOST.fullmatch(value.decode("latin-1").lower())
    return found[1].rstrip(".") if found else ""
