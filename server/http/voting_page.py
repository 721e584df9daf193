"""The voting page, at `/` in demo mode.

It is three files without a build step, and an ordinary client of the API. The files in `examples/` link to them.
Pictures are shown as images, in which no script can run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from server.http.explorer import CONTENT_TYPES, FILES_POLICY, SECURITY_HEADERS

_FOLDER: Final = Path(__file__).with_name("pages") / "voting"

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


def routes() -> list[Route]:
    return [Route("/", _page), *(Route(f"/{name}", _file) for name in ("vote.css", "vote.js"))]


async def _page(_: Request) -> Response:
    headers = {**SECURITY_HEADERS, "Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
    return FileResponse(_FOLDER / "vote.html", headers=headers, media_type="text/html; charset=utf-8")


async def _file(request: Request) -> Response:
    path = _FOLDER / request.url.path.removeprefix("/")
    headers = {**SECURITY_HEADERS, "Content-Security-Policy": FILES_POLICY, "Cache-Control": "no-cache"}
    return FileResponse(path, headers=headers, media_type=CONTENT_TYPES[path.suffix])
