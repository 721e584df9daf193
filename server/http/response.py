"""Answers and refusals as HTTP responses in GraphQL's format."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from datastore.refusals import Overloaded
from server.compiler import encode_json
from server.execution.answers import Answer
from server.http.request import LEGACY, MODERN, STREAM, ResponseFormat

SECURITY_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_COMMON_HEADERS = {**SECURITY_HEADERS, "cache-control": "no-store", "vary": "Accept, Accept-Encoding"}
_HEADERS = {
    media_type: {"content-type": f"{media_type}; charset=utf-8", **_COMMON_HEADERS} for media_type in (LEGACY, MODERN)
}
_HEADERS[STREAM] = _HEADERS[LEGACY]  # an answer that comes before the stream begins is JSON
_RAW_HEADERS = {
    media_type: [(name.encode(), value.encode()) for name, value in headers.items()]
    for media_type, headers in _HEADERS.items()
}
_CODES = {503: "OVERLOADED", 401: "UNAUTHENTICATED"}


def answer_response(answer: Answer, response_format: ResponseFormat, set_cookie: str | None) -> Response:
    """An answer as JSON."""
    status = 200 if answer.executed else response_format.not_executed
    response = Response(encode_json(answer.body()), status)
    response.raw_headers += _RAW_HEADERS[response_format.media_type]
    if set_cookie:
        response.raw_headers.append((b"set-cookie", set_cookie.encode("latin-1")))
    return response


def overloaded() -> HTTPException:
    """At a limit: a server that accepts more than it can work on answers nobody in time."""
    return HTTPException(503, Overloaded.explanation, {"retry-after": "1"})


def error_response(error: HTTPException, media_type: str = LEGACY) -> Response:
    """The response to a request that was not executed, with the error in the format of GraphQL."""
    extensions = {"code": _CODES.get(error.status_code, "BAD_REQUEST")}
    body: dict[str, Any] = {"errors": [{"message": error.detail, "extensions": extensions}]}
    return Response(orjson.dumps(body), error.status_code, {**_HEADERS[media_type], **(error.headers or {})})


async def outside_graphql(_: Request, error: HTTPException) -> Response:
    """The same for an error at any other address, such as one where there is nothing."""
    if error.status_code == HTTPStatus.NOT_FOUND:
        error = HTTPException(404, "There is nothing at this address. GraphQL is at /graphql.", error.headers)
    return error_response(error)
