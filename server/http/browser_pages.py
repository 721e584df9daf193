"""The pages for browsers, and their files: explorer, elements, front page, /admin, and what a demo offers."""

import base64
import hashlib
import os
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from html import escape
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from resolvers.requests.context import Role, Services
from resolvers.values.languages import page_direction, page_language
from server import Failed
from server.auth.cookies import LOOPBACK
from server.auth.tokens import mint
from server.http.hosts import public_host
from server.http.messages import SECURITY_HEADERS, accepts_gzip
from server.settings import Settings

# ── built files ──
# Files that the build named after their content: cached for a year, compressed once.

# A worker has the policy of its own file, and an icon opened in a tab is a page. Neither needs any permission.
FILES_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"

# File names contain a hash of the content, so a year is safe.
IMMUTABLE: Final = "public, max-age=31536000, immutable"

# Explicit, because the operating system's list differs, and slim containers have none.
CONTENT_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
}


def content_policy(image_hosts: Sequence[str], *more: str) -> str:
    """A page's: scripts and styles of this origin; pictures of it, of `data:` and of exactly these hosts; and more."""
    images = " ".join(["'self'", "data:", *(f"https://{host}" for host in image_hosts)])
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            f"img-src {images}",
            *more,
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        )
    )


class BuiltFiles(StaticFiles):
    """Static files that are cached for a year and have the right content type. The build made a .gz file of each."""

    def __init__(self, *, headers: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._headers = {
            **SECURITY_HEADERS,
            "Content-Security-Policy": FILES_POLICY,
            "Cache-Control": IMMUTABLE,
            **(headers or {}),
        }

    async def get_response(self, path: str, scope: Scope) -> Response:
        if accepts_gzip(Headers(scope=scope).get("accept-encoding", "").encode("latin-1")):
            with suppress(HTTPException):  # there is none
                response = await super().get_response(f"{path}.gz", scope)
                response.headers["Content-Encoding"] = "gzip"
                response.headers.add_vary_header("Accept-Encoding")
                return response
        return await super().get_response(path, scope)

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(self._headers)
        content_type = CONTENT_TYPES.get(Path(str(full_path).removesuffix(".gz")).suffix)
        if content_type is not None and "content-type" in response.headers:
            response.headers["Content-Type"] = content_type
        return response


# ── explorer ──
# The page at the address of the API, for browsers. `make pages` builds it from `explorer/` into
# `server/http/pages/explorer/`. It loads nothing from other origins. docs/decisions/explorer-csp.md explains
# EXPLORER_POLICY, which says what the page may do.

EXPLORER_FOLDER: Final = Path(__file__).with_name("pages") / "explorer"

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

    def __init__(self, folder: Path = EXPLORER_FOLDER) -> None:
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


# ── elements ──
# The script that pages of any site load, and its parts.
#
# `make pages` builds them from `elements/` into `server/http/pages/elements/`. `/elements.js` is always the present
# script; it names its parts by their hashes, so browsers ask for it anew and keep the rest. `/elements.<hash>.js` is
# the same script under a name that never changes its content, for pages that pin it.

ELEMENTS_FOLDER: Final = Path(__file__).with_name("pages") / "elements"
_ANYWHERE: Final = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}


class Elements:
    """The built files in a folder."""

    def __init__(self, folder: Path = ELEMENTS_FOLDER) -> None:
        self._folder = folder
        self._scripts = BuiltFiles(directory=folder, check_dir=False, headers=_ANYWHERE)
        self._parts = BuiltFiles(directory=folder / "elements", check_dir=False, headers=_ANYWHERE)

    @property
    def script(self) -> Path | None:
        """The present script; None if it has not been built."""
        return next(self._folder.glob("elements.*.js"), None)

    def documents(self) -> Mapping[str, str]:
        """The documents of these elements, by their hashes, and those that the release before had."""
        known: dict[str, str] = {}
        for name in ("previous.json", "documents.json"):
            file = self._folder / name
            if file.is_file():
                known.update(orjson.loads(file.read_bytes()))
        return known

    def tags(self, address: str) -> tuple[str, str]:
        """The script's tag for a page, and the one that pins it; Failed if it has not been built."""
        if self.script is None:
            raise Failed("The elements have not been built here: make pages.")
        digest = base64.b64encode(hashlib.sha384(self.script.read_bytes()).digest()).decode()
        start = f'<script type="module" src="{address}'
        return (
            f'{start}/elements.js"></script>',
            f'{start}/{self.script.name}" integrity="sha384-{digest}" crossorigin></script>',
        )

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/elements.js", self._present),
            Route("/elements.{hash}.js", self._pinned),
            Mount("/elements", self._parts, name="elements"),
        ]

    async def _present(self, request: Request) -> Response:
        if self.script is None:
            raise HTTPException(404)
        response = await self._scripts.get_response(self.script.name, request.scope)
        response.headers["Cache-Control"] = "no-cache"
        return response

    async def _pinned(self, request: Request) -> Response:
        return await self._scripts.get_response(f"elements.{request.path_params['hash']}.js", request.scope)


# ── front page ──
# At `/`: all parts as a fan uses them, made of the elements. For a demo, or if the operator wants it.
#
# It is a page as any site may have one: its script is `/elements.js`. Pictures are shown as images, in which no script
# can run: SVG, or files from the hosts that the operator allows.

_FRONT_FOLDER: Final = Path(__file__).with_name("pages") / "front"
_DEMO_PRODUCT: Final = "ringside-tee"
_PRODUCT: Final = "front-page"


def front_page_routes(settings: Settings) -> list[Route]:
    """The page's routes, if it is wanted."""
    if not (settings.demo or settings.front_page):
        return []
    headers = {
        **SECURITY_HEADERS,
        "Content-Security-Policy": content_policy(settings.image_hosts, "media-src https:"),
        "Cache-Control": "no-cache",
    }
    html = (_FRONT_FOLDER / "index.html").read_text(encoding="utf-8")
    html = html.replace("{product}", _DEMO_PRODUCT if settings.demo else _PRODUCT)

    async def page(_: Request) -> Response:
        return HTMLResponse(html, headers=headers)

    return [Route("/", page), Route("/front.css", partial(page_file, _FRONT_FOLDER))]


async def page_file(folder: Path, request: Request) -> Response:
    """The file of a page without a build step that an address is named after."""
    path = folder / request.url.path.rpartition("/")[2]
    headers = {**SECURITY_HEADERS, "Content-Security-Policy": FILES_POLICY, "Cache-Control": "no-cache"}
    return FileResponse(path, headers=headers, media_type=CONTENT_TYPES.get(path.suffix, "application/json"))


# ── admin ──
# At /admin: the pages for members with a role, on the public API alone.
#
# `make pages` builds their script from `elements/admin/` into `server/http/pages/admin/`. Whoever opens them without a
# role learns who may, and where to sign in: the API decides what each may see and do.

ADMIN_FOLDER: Final = Path(__file__).with_name("pages") / "admin"
_ADMIN_PAGE: Final = """<!doctype html>
<html lang="{language}" dir="{direction}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Ringside</title>
<link rel="icon" href="data:,">
<script type="module" src="/{script}"></script>
<ringside-admin data-viewers="{viewers}"></ringside-admin>
<noscript lang="en" dir="ltr">These pages need JavaScript.</noscript>
</html>
"""


class AdminPages:
    """The page, its script and the script's parts."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._files = BuiltFiles(directory=ADMIN_FOLDER, check_dir=False)
        self._headers = {
            **SECURITY_HEADERS,
            "Content-Security-Policy": content_policy(settings.image_hosts),
            "Cache-Control": "no-store",
            "Vary": "Accept-Language",
        }

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/admin", self._page),
            Route("/admin.{hash}.js", self._script),
            Mount("/admin", BuiltFiles(directory=ADMIN_FOLDER / "admin", check_dir=False), name="admin"),
        ]

    async def _page(self, request: Request) -> Response:
        script = next(ADMIN_FOLDER.glob("admin.*.js"), None)
        if script is None:
            raise HTTPException(404)
        language = page_language(request.headers.get("accept-language", ""))
        viewers = escape(orjson.dumps(demo_viewers(self._settings, request.scope, _DEMO_VIEWERS_WITH_ROLES)).decode())
        html = _ADMIN_PAGE.format(
            language=language, direction=page_direction(language), script=script.name, viewers=viewers
        )
        return HTMLResponse(html, headers=self._headers)

    async def _script(self, request: Request) -> Response:
        return await self._files.get_response(f"admin.{request.path_params['hash']}.js", request.scope)


# ── home ──
# What answers at `/` without demo data: a page for a person, JSON for a program.

_HOME_HEADERS: Final = {
    **SECURITY_HEADERS,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-cache",
    "Vary": "Accept",
}
_HOME_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>Ringside</title>
</head>
<body style="font-family:system-ui,sans-serif;max-width:32em;margin:4em auto;padding:0 1em;line-height:1.5">
<main>
<h1>Ringside</h1>
<p>A website gets its votes, predictions, comments and word lists from here. Its pages are at an address of their own.
</p>
{explorer}
</main>
</body>
</html>
"""
_EXPLORER: Final = '<p>For developers: <a href="/graphql">the explorer of the API</a>.</p>'
_PROGRAM: Final = orjson.dumps({"service": "Ringside", "graphql": "/graphql", "health": "/readyz"})


async def home(request: Request) -> Response:
    if not wants_page(request):
        return Response(_PROGRAM, headers=_HOME_HEADERS, media_type="application/json")
    has_explorer = request.state.pipeline.has_explorer
    return HTMLResponse(_HOME_PAGE.format(explorer=_EXPLORER if has_explorer else ""), headers=_HOME_HEADERS)


# ── demo ──
# What a demo on the visitor's own machine offers, and nothing else: a few members, and the emails that it would send.
#
# The explorer signs in as one of a few members with one click, and the admin pages as one of those with a role. Their
# tokens stand in the page, so everyone who loads the page may act as them; and whoever reads the emails may sign in
# with any address. A page has them only if every host that the service answers for is a loopback name, which also keeps
# pages of other sites from reading it (`endpoint.AllowedHosts`), unless `cors_origins` lists them: a script's request
# names its origin, and a browser that opens a page names none. Nor does a browser that comes from another site, by a
# link or in a frame, get them: it says so in `Sec-Fetch-Site`.
#
# A proxy on this machine is noticed by its headers or by HTTP/1.0, which no browser speaks and nginx does by default.
# One that adds no header and speaks HTTP/1.1 looks like a browser.


class DemoViewer(NamedTuple):
    """A member whom a page of the demo offers to act as."""

    name: str
    user: str
    roles: tuple[Role, ...]


_DEMO_TOKEN_LIFETIME = timedelta(hours=12)
_DEMO_VIEWERS = (
    DemoViewer("Ada Abara, member", "ada-abara", ()),
    DemoViewer("Emil Berg, moderator", "emil-berg", (Role.MODERATOR,)),
    DemoViewer("Ines Castillo, editor", "ines-castillo", (Role.EDITOR,)),
)
_DEMO_VIEWERS_WITH_ROLES = tuple(viewer for viewer in _DEMO_VIEWERS if viewer.roles)
_FOREIGN_HEADERS = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"origin"})
"""Headers that proxies add, and scripts of other sites' pages."""


def demo_viewers(
    settings: Settings, scope: Scope, offered: Sequence[DemoViewer] = _DEMO_VIEWERS
) -> list[dict[str, str]]:
    """Name and token of each demo member whose token counts, if a demo is served to this machine alone."""
    if not settings.demo or not _serves_loopback(settings) or not _is_local(scope):
        return []
    viewers = []
    for name, user, roles in offered:
        with suppress(ValueError):  # others sign the tokens here, or no group has the role
            viewers.append({"name": name, "token": mint(settings, user, roles=roles, lifetime=_DEMO_TOKEN_LIFETIME)})
    return viewers


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


# ── a demo's emails ──

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
    """Whether emails are shown instead of sent: in a demo without a mail server, to this machine alone.

    Not where members have accounts elsewhere: a code that anyone at this machine reads would sign in as any of them.
    """
    has_accounts = settings.has_provider or settings.site_keys
    return settings.demo and settings.smtp_url is None and not has_accounts and _serves_loopback(settings)


def may_see_emails(settings: Settings, scope: Scope) -> bool:
    return shows_emails(settings) and _is_local(scope)
