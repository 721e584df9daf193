"""Answers over HTTP as ASGI wants them: a status, a list of headers in bytes, a body. Nothing is built twice.

Starlette's Request and Response are made for every need; what a GraphQL request needs of them is little, and this is
the path that every request takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import orjson
from starlette.types import Send

from server.compiler import encode_json
from server.execution.answers import Answer
from server.http.explorer import HARDENED
from server.http.protocol import Whole
from server.http.request import LEGACY, MODERN, STREAM, BadRequest, Negotiated

NO_STORE = {"cache-control": "no-store", "vary": "Accept"}
_CODES = {503: "OVERLOADED", 401: "UNAUTHENTICATED"}


Header: TypeAlias = tuple[bytes, bytes]


def _encoded(headers: Mapping[str, str]) -> tuple[Header, ...]:
    return tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items())


class Fixed(NamedTuple):
    """The headers that all answers of a kind have, and the same as lines."""

    headers: tuple[Header, ...]
    lines: bytes

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Fixed:
        encoded = _encoded(headers)
        return cls(encoded, b"".join([b"%b: %b\r\n" % header for header in encoded]))


_ALWAYS = {
    media: Fixed.of({"content-type": f"{media}; charset=utf-8", **HARDENED, **NO_STORE}) for media in (LEGACY, MODERN)
}
_ALWAYS[STREAM] = _ALWAYS[LEGACY]  # what is said before a stream begins is JSON


class Reply(NamedTuple):
    """What is sent back in one piece; `own` are the headers of this answer alone."""

    status: int
    fixed: Fixed
    body: bytes
    own: tuple[Header, ...] = ()

    async def send(self, send: Send, *more: Header) -> None:
        headers = [*self.own, *self.fixed.headers, *more, (b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})

    def hand_over(self, whole: Whole, request_id: bytes) -> bool:
        """The same with nothing between us and the wire; whatever could hold more than our own words is sent."""
        if self.own:
            return False
        lines = b"%bx-request-id: %b\r\ncontent-length: %d\r\n" % (self.fixed.lines, request_id, len(self.body))
        return whole(self.status, lines, self.body)


def answered(answer: Answer, wanted: Negotiated, set_cookie: str | None) -> Reply:
    """An answer as JSON."""
    status = 200 if answer.started else wanted.not_begun
    own = ((b"set-cookie", set_cookie.encode("latin-1")),) if set_cookie else ()
    return Reply(status, _ALWAYS[wanted.media], encode_json(answer.body()), own)


def failure(bad: BadRequest) -> Reply:
    """An answer to what is no GraphQL request: the shape of GraphQL's errors all the same."""
    error: dict[str, Any] = {"message": bad.message, "extensions": {"code": _CODES.get(bad.status, "BAD_REQUEST")}}
    return Reply(bad.status, _ALWAYS[LEGACY], orjson.dumps({"errors": [error]}), _encoded(bad.headers))
