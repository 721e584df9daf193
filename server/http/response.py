"""Answers and refusals as HTTP responses in GraphQL's format."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import Response

from server.compiler import encode_json
from server.execution.answers import Answer
from server.http.explorer import SECURITY_HEADERS
from server.http.request import LEGACY, MODERN, STREAM, ResponseFormat

_COMMON_HEADERS = {**SECURITY_HEADERS, "cache-control": "no-store", "vary": "Accept"}
_HEADERS = {
    media_type: {"content-type": f"{media_type}; charset=utf-8", **_COMMON_HEADERS} for media_type in (LEGACY, MODERN)
}
_HEADERS[STREAM] = _HEADERS[LEGACY]  # an answer that comes before the stream begins is JSON
_CODES = {503: "OVERLOADED", 401: "UNAUTHENTICATED"}


def answer_response(answer: Answer, response_format: ResponseFormat, set_cookie: str | None) -> Response:
    """An answer as JSON."""
    status = 200 if answer.executed else response_format.not_executed
    headers = _HEADERS[response_format.media_type]
    if set_cookie:
        headers = {**headers, "set-cookie": set_cookie}
    return Response(encode_json(answer.body()), status, headers)


def error_response(error: HTTPException) -> Response:
    """The response to a request that was not executed, with the error in the format of GraphQL."""
    extensions = {"code": _CODES.get(error.status_code, "BAD_REQUEST")}
    body: dict[str, Any] = {"errors": [{"message": error.detail, "extensions": extensions}]}
    return Response(orjson.dumps(body), error.status_code, {**_HEADERS[LEGACY], **(error.headers or {})})
