"""The explorer: the page at the address of the API for browsers, and the page's files.

`make pages` builds it from `explorer/` into `server/http/pages/explorer/`. It loads nothing from other origins.
docs/decisions/explorer-csp.md explains EXPLORER_POLICY, which says what the page may do.

In a demo on the visitor's own machine, the page signs in as one of a few members with one click. Their tokens stand in
the page, so everyone who loads the page may act as them. It has them only if every host that the service answers for is
a loopback name, which also keeps pages of other sites from reading it (`endpoint.AllowedHosts`), unless `cors_origins`
lists them: a script's request names its origin, and a browser that opens the explorer names none. Nor does a browser
that comes from another site, by a link or in a frame, get them: it says so in `Sec-Fetch-Site`.

A proxy on this machine is noticed by its headers or by HTTP/1.0, which no browser speaks and nginx does by default. One
that adds no header and speaks HTTP/1.1 looks like a browser.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from html import escape
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Scope

from resolvers.requests.context import Role
from server.auth.tokens import mint
from server.http.built_files import FILES_POLICY, BuiltFiles
from server.http.hosts import LOOPBACK, public_host
from server.http.messages import SECURITY_HEADERS
from server.settings import Settings

# ── demo viewers ──

LIFETIME = timedelta(hours=12)
MEMBERS = (
    ("Ada Abara, member", "ada-abara", ()),
    ("Emil Berg, moderator", "emil-berg", (Role.MODERATOR,)),
    ("Ines Castillo, editor", "ines-castillo", (Role.EDITOR,)),
)
_FOREIGN_HEADERS = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"origin"})
"""Headers that proxies add, and scripts of other sites' pages."""


def demo_viewers(settings: Settings, scope: Scope) -> list[dict[str, str]]:
    """Name and token of each demo member, if a demo without a provider is served to this machine alone."""
    if not settings.demo or settings.has_provider or not _serves_loopback(settings) or not _is_local(scope):
        return []
    return [
        {"name": name, "token": mint(settings, user, roles=roles, lifetime=LIFETIME)} for name, user, roles in MEMBERS
    ]


def _serves_loopback(settings: Settings) -> bool:
    hosts = (*settings.allowed_hosts, *public_host(settings.public_url))
    return bool(settings.allowed_hosts) and set(hosts) <= set(LOOPBACK)


def _is_local(scope: Scope) -> bool:
    """Whether the client is on this machine and, as far as can be told, neither a proxy nor another site's page."""
    client = scope.get("client")
    try:
        is_loopback = client is not None and ip_address(client[0]).is_loopback
    except ValueError:
        is_loopback = False
    headers = scope["headers"]
    is_direct = scope["http_version"] != "1.0" and _FOREIGN_HEADERS.isdisjoint(name for name, _ in headers)
    return is_loopback and is_direct and (b"sec-fetch-site", b"cross-site") not in headers


# ── explorer ──

BUILT: Final = Path(__file__).with_name("pages") / "explorer"

# The build's placeholders, filled for each visit: the page's nonce, and whom a demo's visitor may sign in as.
NONCE: Final = "{nonce}"
VIEWERS: Final = "{viewers}"

# Monaco writes style elements (hence the nonce, which explorer/src/nonce.js hands to them) and places its lines
# with style attributes (hence the one 'unsafe-inline', which covers attributes alone). Everything else is files of
# this origin, workers included; `connect-src 'self'` covers the socket of subscriptions.
EXPLORER_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "worker-src 'self'",
        f"style-src 'self' 'nonce-{NONCE}'",
        "style-src-attr 'unsafe-inline'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)

NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<title>Ringside</title>
<h1>The explorer has not been built</h1>
<p>Run <code>make pages</code> in the project's folder, then load this page again.</p>
<p>The API is up: POST a query to this address.</p>
</html>
"""

QUERY_PARAMETERS: Final = frozenset({"query", "documentId"})
ANSWER_TYPES: Final = ("application/json", "application/graphql-response+json", "text/event-stream")


def wants_page(request: Request) -> bool:
    """Whether a browser visits the address, rather than a client with a query.

    A browser accepts text/html explicitly, and none of the API's types. A client that accepts both gets the API.
    """
    if request.method not in {"GET", "HEAD"} or not QUERY_PARAMETERS.isdisjoint(request.query_params):
        return False
    accept = ",".join(request.headers.getlist("accept"))
    accepted = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return "text/html" in accepted and accepted.isdisjoint(ANSWER_TYPES)


class Explorer:
    """The built page in a folder. It is read for every visit: it is a kilobyte, and a rebuild then needs no restart."""

    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder

    @property
    def built(self) -> bool:
        return (self._folder / "index.html").is_file()

    def page(self, viewers: Sequence[Mapping[str, str]] = ()) -> Response:
        """The page with a nonce of its own and the members of a demo, or a page that says how to build it."""
        nonce = secrets.token_urlsafe(16)
        headers = {
            **SECURITY_HEADERS,
            "Content-Security-Policy": EXPLORER_POLICY.replace(NONCE, nonce),
            # A cached page would use its nonce twice, and other clients get other responses at the same address.
            "Cache-Control": "no-store",
            "Vary": "Accept",
        }
        if not self.built:
            return HTMLResponse(NOT_BUILT, status_code=503, headers=headers)
        html = (self._folder / "index.html").read_text(encoding="utf-8")
        listed = escape(orjson.dumps(viewers).decode()) if viewers else ""
        return HTMLResponse(html.replace(NONCE, nonce).replace(VIEWERS, listed), headers=headers)

    def routes(self) -> list[BaseRoute]:
        """The page's files, at the path that the build wrote into the page, and the licences of what is shipped."""
        files = BuiltFiles(directory=self._folder / "assets", check_dir=False)
        return [Mount("/explorer/assets", files, name="explorer"), Route("/explorer/licenses.txt", self._licenses)]

    async def _licenses(self, _: Request) -> Response:
        """Those of the page's packages; in the container also those of the service's (deploy/notices.py)."""
        if not self.built:
            raise HTTPException(404)
        headers = {**SECURITY_HEADERS, "Content-Security-Policy": FILES_POLICY}
        return FileResponse(self._folder / "licenses.md", media_type="text/plain; charset=utf-8", headers=headers)
