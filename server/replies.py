"""Answers over HTTP as ASGI wants them: a status, a list of headers in bytes, a body. Nothing is built twice.

Starlette's Request and Response are made for every need; what a GraphQL request needs of them is little, and this is
the path that every request takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from starlette.types import Send

from server.execution.answers import Answer
from server.pages import HARDENED
from server.requests import LEGACY, MODERN, STREAM, BadRequest, Negotiated

NO_STORE = {"cache-control": "no-store", "vary": "Accept"}
_CODES = {503: "OVERLOADED", 401: "UNAUTHENTICATED"}


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


_ALWAYS = {
    media: _encoded({"content-type": f"{media}; charset=utf-8", **HARDENED, **NO_STORE}) for media in (LEGACY, MODERN)
}
_ALWAYS[STREAM] = _ALWAYS[LEGACY]  # what is said before a stream begins is JSON


class Reply(NamedTuple):
    """What is sent back in one piece."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    async def send(self, send: Send) -> None:
        length = (b"content-length", b"%d" % len(self.body))
        await send({"type": "http.response.start", "status": self.status, "headers": [*self.headers, length]})
        await send({"type": "http.response.body", "body": self.body})


def answered(answer: Answer, wanted: Negotiated, set_cookie: str | None) -> Reply:
    """An answer as JSON."""
    headers = _ALWAYS[wanted.media]
    if set_cookie:
        headers = [*headers, (b"set-cookie", set_cookie.encode("latin-1"))]
    return Reply(200 if answer.started else wanted.not_begun, headers, orjson.dumps(answer.body()))


def failure(bad: BadRequest) -> Reply:
    """An answer to what is no GraphQL request: the shape of GraphQL's errors all the same."""
    error: dict[str, Any] = {"message": bad.message, "extensions": {"code": _CODES.get(bad.status, "BAD_REQUEST")}}
    return Reply(bad.status, [*_encoded(bad.headers), *_ALWAYS[LEGACY]], orjson.dumps({"errors": [error]}))
