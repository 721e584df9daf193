"""What answers at `/` without demo data: a page for a person, JSON for a program."""

from __future__ import annotations

from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from server.http.explorer import wants_page
from server.http.messages import SECURITY_HEADERS

_HEADERS: Final = {
    **SECURITY_HEADERS,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-cache",
    "Vary": "Accept",
}
_PAGE: Final = """<!doctype html>
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
        return Response(_PROGRAM, headers=_HEADERS, media_type="application/json")
    has_explorer = request.state.pipeline.has_explorer
    return HTMLResponse(_PAGE.format(explorer=_EXPLORER if has_explorer else ""), headers=_HEADERS)
