"""What a demo on the visitor's own machine offers, and nothing else: a few members, and the emails that it would send.

The explorer signs in as one of a few members with one click, and the admin pages as one of those with a role. Their
tokens stand in the page, so everyone who loads the page may act as them; and whoever reads the emails may sign in with
any address. A page has them only if every host that the service answers for is a loopback name, which also keeps pages
of other sites from reading it (`endpoint.AllowedHosts`), unless `cors_origins` lists them: a script's request names its
origin, and a browser that opens a page names none. Nor does a browser that comes from another site, by a link or in a
frame, get them: it says so in `Sec-Fetch-Site`.

A proxy on this machine is noticed by its headers or by HTTP/1.0, which no browser speaks and nginx does by default. One
that adds no header and speaks HTTP/1.1 looks like a browser.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from ipaddress import ip_address
from typing import NamedTuple

from starlette.types import Scope

from resolvers.requests.context import Role, Services
from server.auth.cookies import LOOPBACK
from server.auth.tokens import mint
from server.http.hosts import public_host
from server.settings import Settings

LIFETIME = timedelta(hours=12)
MEMBERS = (
    ("Ada Abara, member", "ada-abara", ()),
    ("Emil Berg, moderator", "emil-berg", (Role.MODERATOR,)),
    ("Ines Castillo, editor", "ines-castillo", (Role.EDITOR,)),
)
WITH_ROLES = tuple(member for member in MEMBERS if member[2])
_FOREIGN_HEADERS = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"origin"})
"""Headers that proxies add, and scripts of other sites' pages."""


def demo_viewers(
    settings: Settings, scope: Scope, members: Sequence[tuple[str, str, tuple[Role, ...]]] = MEMBERS
) -> list[dict[str, str]]:
    """Name and token of each demo member, if a demo without a provider is served to this machine alone."""
    if not settings.demo or settings.has_provider or not _serves_loopback(settings) or not _is_local(scope):
        return []
    return [
        {"name": name, "token": mint(settings, user, roles=roles, lifetime=LIFETIME)} for name, user, roles in members
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


# ── emails ──

_MOST_EMAILS = 20


class DemoEmail(NamedTuple):
    """An email that was not sent, but is shown."""

    to: str
    subject: str
    text: str


class DemoEmails:
    """The latest emails of a demo, newest first."""

    def __init__(self, _: Services) -> None:
        self.latest: deque[DemoEmail] = deque(maxlen=_MOST_EMAILS)

    def add(self, to: str, subject: str, text: str) -> None:
        self.latest.appendleft(DemoEmail(to, subject, text))


def shows_emails(settings: Settings) -> bool:
    """Whether emails are shown instead of sent: in a demo without a mail server, to this machine alone."""
    return settings.demo and settings.smtp_url is None and _serves_loopback(settings)


def may_see_emails(settings: Settings, scope: Scope) -> bool:
    return shows_emails(settings) and _is_local(scope)
