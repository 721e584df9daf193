"""The explorer: the page at the address of the API for browsers, and the page's files.

`make pages` builds it from `explorer/` into `server/http/pages/explorer/`. It loads nothing from other origins.
docs/decisions/explorer-csp.md explains EXPLORER_POLICY, which says what the page may do.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from server.http.built_files import FILES_POLICY, BuiltFiles
from server.http.messages import SECURITY_HEADERS

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
