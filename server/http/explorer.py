"""The explorer: the page that a browser finds at the address of the API, and the files that the page asks for.

It is built by `make explorer` from `explorer/` into `server/http/pages/explorer/`, and needs no
other origin at any time.
What the page may do is decided in docs/decisions/explorer-csp.md; EXPLORER_POLICY is that decision.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

if TYPE_CHECKING:
    import os

    from starlette.requests import Request
    from starlette.types import Scope

BUILT: Final = Path(__file__).with_name("pages") / "explorer"

# The word that the build leaves wherever the nonce of a page belongs.
NONCE: Final = "{nonce}"

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

# A worker obeys the policy of its own file, and an icon opened by itself is a page: neither needs anything.
FILES_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"

SECURITY_HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}

# Names carry a hash of what is in the file, so a year is safe.
IMMUTABLE: Final = "public, max-age=31536000, immutable"

# Spelled out, since the operating system's own list decides otherwise and is missing from slim containers.
CONTENT_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
}

NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<title>Ringside</title>
<h1>The explorer has not been built</h1>
<p>Run <code>make explorer</code> in the project's folder, then load this page again.</p>
<p>The API is up: POST a query to this address.</p>
</html>
"""

QUESTIONS: Final = frozenset({"query", "documentId"})
ANSWERS: Final = ("application/json", "application/graphql-response+json", "text/event-stream")


def wants_page(request: Request) -> bool:
    """Whether this is a browser that was pointed at the address, and not a client with a query.

    A browser names text/html and no type that the API answers with; a client that takes both gets the API.
    """
    if request.method not in {"GET", "HEAD"} or not QUESTIONS.isdisjoint(request.query_params):
        return False
    accepted = {one.partition(";")[0].strip().lower() for one in request.headers.get("accept", "").split(",")}
    return "text/html" in accepted and accepted.isdisjoint(ANSWERS)


class Explorer:
    """The built page in a folder, read anew for every visit: it is a kilobyte, and a rebuild needs no restart."""

    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder

    @property
    def built(self) -> bool:
        return (self._folder / "index.html").is_file()

    def page(self) -> Response:
        """The page with a nonce of its own, or the advice to build it."""
        nonce = secrets.token_urlsafe(16)
        headers = {
            **SECURITY_HEADERS,
            "Content-Security-Policy": EXPLORER_POLICY.replace(NONCE, nonce),
            # A kept page would use its nonce twice; and other clients get other answers from the same address.
            "Cache-Control": "no-store",
            "Vary": "Accept",
        }
        if not self.built:
            return HTMLResponse(NOT_BUILT, status_code=503, headers=headers)
        html = (self._folder / "index.html").read_text(encoding="utf-8")
        return HTMLResponse(html.replace(NONCE, nonce), headers=headers)

    def mount(self) -> Mount:
        """The files of the page, at the path that the build wrote into it."""
        return Mount("/explorer/assets", _Files(directory=self._folder / "assets", check_dir=False), name="explorer")


class _Files(StaticFiles):
    """Static files that are kept for a year and are never taken for what they are not."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(SECURITY_HEADERS)
        response.headers.update({"Content-Security-Policy": FILES_POLICY, "Cache-Control": IMMUTABLE})
        known = CONTENT_TYPES.get(Path(full_path).suffix)
        if known is not None and "content-type" in response.headers:
            response.headers["Content-Type"] = known
        return response
