"""The members that the explorer signs in as with one click, in a demo on the visitor's own machine.

Their tokens stand in the page, so everyone who loads the page may act as them. It has them only if every host that the
service answers for is a loopback name, which also keeps pages of other sites from reading it (`allowed_hosts`), unless
`cors_origins` lists them: a script's request names its origin, and a browser that opens the explorer names none. Nor
does a browser that comes from another site, by a link or in a frame, get them: it says so in `Sec-Fetch-Site`.

A proxy on this machine is noticed by its headers or by HTTP/1.0, which no browser speaks and nginx does by default. One
that adds no header and speaks HTTP/1.1 looks like a browser.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from resolvers.requests.viewer import Role
from server.auth.tokens import mint
from server.http.hosts import LOOPBACK, public_host

if TYPE_CHECKING:
    from starlette.types import Scope

    from server.settings import Settings

LIFETIME = timedelta(hours=12)
MEMBERS = (
    ("Ada Abara, member", "ada-abara", ()),
    ("Emil Berg, moderator", "emil-berg", (Role.MODERATOR,)),
    ("Ines Castillo, editor", "ines-castillo", (Role.EDITOR,)),
)
_FOREIGN_HEADERS = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"origin"})
"""What proxies add, and scripts of other sites' pages."""


def demo_viewers(settings: Settings, scope: Scope) -> list[dict[str, str]]:
    """Name and token of each, if a demo without a provider is served to this machine alone."""
    if not settings.demo or settings.has_provider or not _serves_loopback(settings) or not _is_local(scope):
        return []
    return [
        {"name": name, "token": mint(settings, user, roles=roles, lifetime=LIFETIME)} for name, user, roles in MEMBERS
    ]


def _serves_loopback(settings: Settings) -> bool:
    hosts = (*settings.allowed_hosts, *public_host(settings.public_url))
    return bool(settings.allowed_hosts) and set(hosts) <= set(LOOPBACK)


def _is_local(scope: Scope) -> bool:
    """Whether the client is on this machine; neither a proxy nor another site's page asks, as far as can be told."""
    client = scope.get("client")
    try:
        is_loopback = client is not None and ip_address(client[0]).is_loopback
    except ValueError:
        is_loopback = False
    headers = scope["headers"]
    is_direct = scope["http_version"] != "1.0" and _FOREIGN_HEADERS.isdisjoint(name for name, _ in headers)
    return is_loopback and is_direct and (b"sec-fetch-site", b"cross-site") not in headers
