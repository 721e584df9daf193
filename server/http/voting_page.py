"""The voting page, at `/` in demo mode.

It is three files without a build step, and an ordinary client of the API. The files in `examples/` link to them.
Pictures are shown as images, in which no script can run: SVG, or files from the hosts that the operator allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from server.http.built_files import CONTENT_TYPES, FILES_POLICY
from server.http.messages import SECURITY_HEADERS

_FOLDER: Final = Path(__file__).with_name("pages") / "voting"


def routes(image_hosts: Sequence[str]) -> list[Route]:
    headers = {**SECURITY_HEADERS, "Content-Security-Policy": content_policy(image_hosts), "Cache-Control": "no-cache"}

    async def page(_: Request) -> Response:
        return FileResponse(_FOLDER / "vote.html", headers=headers, media_type="text/html; charset=utf-8")

    return [Route("/", page), *(Route(f"/{name}", _file) for name in ("vote.css", "vote.js"))]


def content_policy(image_hosts: Sequence[str]) -> str:
    """Pictures come from this origin, from `data:`, and from exactly these hosts."""
    images = " ".join(["'self'", "data:", *(f"https://{host}" for host in image_hosts)])
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src {images}; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


async def _file(request: Request) -> Response:
    path = _FOLDER / request.url.path.removeprefix("/")
    headers = {**SECURITY_HEADERS, "Content-Security-Policy": FILES_POLICY, "Cache-Control": "no-cache"}
    return FileResponse(path, headers=headers, media_type=CONTENT_TYPES[path.suffix])
