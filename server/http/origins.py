"""The hosts that requests may name, and the origins of pages that send them."""

import re
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from datastore.dynamo import Rates
from datastore.refusals import RateLimited
from resolvers.requests.context import addressed_origin
from resolvers.values.texts import ascii_domain
from server.auth.cookies import LOOPBACK

# ── hosts ──
# `endpoint.AllowedHosts` refuses all others.

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
    return () if host is None else (f"[{host}]" if ":" in host else ascii_domain(host),)


# ── origins ──
# Logs pages of origins that are not listed: their browsers show only "Failed to fetch", or a closed socket. Opening
# a page or sending a form makes no script wait for an answer, and the forms of our own pages name the origin `null`.

EACH = "1/minute"
ALL = "10/minute"
"""Lines about origins: whoever sends a request chooses its origin."""
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]{0,31}://[a-z0-9._:\[\]-]{1,255}|null", re.IGNORECASE)
_log = structlog.get_logger("ringside.origins")


class ForeignOrigins:
    """An ASGI application that hands everything to `app`, and logs origins that are neither listed nor its own."""

    def __init__(self, app: ASGIApp, listed: Sequence[str]) -> None:
        self._app = app
        self._listed = listed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            self._look_at(scope)
        await self._app(scope, receive, send)

    def _look_at(self, scope: Scope) -> None:
        origin, host = "", b""
        for name, value in scope["headers"]:
            if name == b"origin":
                origin = value.decode("latin-1")
            elif name == b"host":
                host = host or value
            elif name == b"sec-fetch-mode" and value == b"navigate":
                return
        own = addressed_origin(scope["scheme"], host.decode("latin-1"))
        services = scope["state"]["pipeline"].services
        if origin and not services.policy.admits_page(origin, own):
            with suppress(RateLimited):
                self._log(services.rates, origin if _ORIGIN.fullmatch(origin) else "(no origin)")

    def _log(self, rates: Rates, origin: str) -> None:
        rates.check(EACH, "origin", origin)
        rates.hit(ALL, "origins")
        rates.hit(EACH, "origin", origin)
        near = {"similar": similar} if (similar := _similar(origin, self._listed)) else {}
        advice = "a page of an origin that RINGSIDE_CORS_ORIGINS does not list may not read the answers"
        _log.warning(advice, origin=origin, **near)


def _similar(origin: str, listed: Sequence[str]) -> str | None:
    """The listed origin that differs in nothing but its scheme, its port or an alias of its host."""
    host = _host(origin)
    return next((each for each in listed if host and _host(each) == host), None)


def _host(origin: str) -> str:
    try:
        host = (urlsplit(origin).hostname or "").rstrip(".").removeprefix("www.")
    except ValueError:
        return ""
    return LOOPBACK[0] if host in (*LOOPBACK, "::1") else host
