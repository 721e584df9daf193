"""The front page, at `/`: all parts as a fan uses them, made of the elements. For a demo, or if the operator wants it.

It is a page as any site may have one: its script is `/elements.js`. Pictures are shown as images, in which no script
can run: SVG, or files from the hosts that the operator allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from server.http.built_files import CONTENT_TYPES, FILES_POLICY
from server.http.messages import SECURITY_HEADERS
from server.settings import Settings

_FOLDER: Final = Path(__file__).with_name("pages") / "front"
_DEMO_PRODUCT: Final = "ringside-tee"
_PRODUCT: Final = "front-page"


def routes(settings: Settings) -> list[Route]:
    """The page's routes, if it is wanted."""
    if not (settings.demo or settings.front_page):
        return []
    headers = {
        **SECURITY_HEADERS,
        "Content-Security-Policy": content_policy(settings.image_hosts),
        "Cache-Control": "no-cache",
    }
    html = (_FOLDER / "index.html").read_text(encoding="utf-8")
    html = html.replace("{product}", _DEMO_PRODUCT if settings.demo else _PRODUCT)

    async def page(_: Request) -> Response:
        return HTMLResponse(html, headers=headers)

    return [Route("/", page), Route("/front.css", _style)]


def content_policy(image_hosts: Sequence[str]) -> str:
    """Pictures come from this origin, from `data:`, and from exactly these hosts; the sound of words by HTTPS."""
    images = " ".join(["'self'", "data:", *(f"https://{host}" for host in image_hosts)])
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src {images}; "
        "media-src https:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'"
    )


async def _style(_: Request) -> Response:
    headers = {**SECURITY_HEADERS, "Content-Security-Policy": FILES_POLICY, "Cache-Control": "no-cache"}
    return FileResponse(_FOLDER / "front.css", headers=headers, media_type=CONTENT_TYPES[".css"])
