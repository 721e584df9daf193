"""GraphQL requests and responses over HTTP: negotiation, limits of the body, types of the parameters, compression.

The rules of GraphQL over HTTP, and the choices that they leave open:
- The response is `application/graphql-response+json` for clients that name it and prefer nothing else, else
  `application/json`.
- A subscription's events are streamed to every client that names `text/event-stream` or `text/*`, whatever it prefers.
- A document that does not parse or validate, or variables that do not fit, get status 400: a client that looks at the
  status alone must not mistake a refusal for an answer. Only a client that asks for `application/json` by name gets
  the 200 that the specification keeps for older clients.
- GET runs queries only. POST accepts JSON only, which a form on another site cannot send without a CORS preflight.
- Batching (a list of requests) is not supported, nor are compressed bodies.
"""

import asyncio
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from types import NoneType
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import parse_qsl

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope

from datastore.refusals import Overloaded
from server.auth.identification import MAX_CACHED_HEADER, RawHeaders
from server.auth.verification import Unauthenticated, Unverifiable
from server.compiler import encode_json
from server.execution.answers import Answer
from server.execution.documents import GraphQLRequest
from server.execution.limits import check_json

# ── request ──

Headers: TypeAlias = Mapping[bytes, bytes]
"""Headers by lower-case name."""

MODERN = "application/graphql-response+json"
LEGACY = "application/json"
STREAM = "text/event-stream"
MAX_QUERY_STRING = 16_384
T = TypeVar("T")
PIECE = 65_536
"""Bytes of a body that count together while the rest of it is to come; hardly any request has as many."""


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """The media type of the response, and its status if the operation is not executed."""

    media_type: str
    not_executed: int
    accepts_stream: bool = False
    """Whether a subscription's events may be streamed, even if the client prefers another type."""


_FORMATS = {
    MODERN: ResponseFormat(MODERN, 400),
    LEGACY: ResponseFormat(LEGACY, 200),
    STREAM: ResponseFormat(STREAM, 400),
    "application/*": ResponseFormat(LEGACY, 400),
    "text/*": ResponseFormat(STREAM, 400),
    "*/*": ResponseFormat(LEGACY, 400),
}
_STREAM_RANGES = (STREAM, "text/*")
"""The most specific one in a header decides whether a stream is accepted.

A client that accepts anything expects an answer that ends.
"""
DEFAULT_FORMAT = _FORMATS["*/*"]


def remembered(most: int) -> Callable[[Callable[[bytes], T]], Callable[[bytes], T]]:
    """Remember what was made of the latest headers of one kind, `most` of them, but not of long ones.

    Clients choose their headers, which may have 64 KB.
    """

    def decorate(tell: Callable[[bytes], T]) -> Callable[[bytes], T]:
        known = lru_cache(maxsize=most)(tell)
        return lambda header: (known if len(header) <= MAX_CACHED_HEADER else tell)(header)

    return decorate


@remembered(256)
def negotiate(accept: bytes) -> ResponseFormat:
    """The format that a client prefers. Of equal preferences MODERN, else the first. HTTPException 406 if none."""
    if not accept.strip(b", "):
        return DEFAULT_FORMAT
    qualities: dict[str, float] = {}
    for part in accept.decode("latin-1").lower().split(","):
        media_type, _, parameters = part.partition(";")
        if (media_type := media_type.strip()) in _FORMATS:
            qualities[media_type] = max(_quality(parameters), qualities.get(media_type, 0.0))
    accepted = {media_type: quality for media_type, quality in qualities.items() if quality > 0}
    if not accepted:
        raise HTTPException(406, f"Answers come as {MODERN}, {LEGACY} or, for subscriptions, {STREAM}.")
    if len(accepted) > 1:
        accepted.pop("text/*", None)  # a client that accepts JSON, too, has other texts in mind
    best = max(accepted.values())
    preferred = [media_type for media_type, quality in accepted.items() if quality == best]
    chosen = _FORMATS[MODERN if MODERN in preferred else preferred[0]]
    stream_quality = next((qualities[name] for name in _STREAM_RANGES if name in qualities), 0.0)
    return replace(chosen, accepts_stream=stream_quality > 0)


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name == "q":
            try:
                return max(0.0, float(value))  # in this order NaN is 0, too
            except ValueError:
                return 0.0
    return 1.0


def client_address(scope: Scope) -> str:
    """The network address that a request or a socket comes from, as the server says."""
    client = scope.get("client")
    return client[0] if client else ""


_PARAMETERS = ("query", "operationName", "variables", "documentId", "extensions")
_TYPES = ((str, NoneType), (str, NoneType), (dict, NoneType), (str, NoneType), (dict, NoneType))


def parse_request(parameters: Any, size: int) -> GraphQLRequest:
    """The request that a JSON value of this size holds; HTTPException 400 if it holds none."""
    if isinstance(parameters, list):
        raise HTTPException(400, "Send one request at a time: batching is not supported.")
    if not isinstance(parameters, dict):
        raise HTTPException(400, 'The body must be a JSON object such as {"query": "{ viewer { id } }"}.')
    values = tuple(map(parameters.get, _PARAMETERS))
    if not all(map(isinstance, values, _TYPES)):
        raise _wrong_type(values)
    query, name, variables, document_id, extensions = values
    extensions = extensions or {}
    persisted_query = extensions.get("persistedQuery")
    persisted_hash = None if persisted_query is None else _parse_persisted_hash(persisted_query)
    if not (query or document_id or persisted_hash):
        raise HTTPException(400, "There is no `query` in the request.")
    return GraphQLRequest(
        query,
        name or None,
        variables or {},
        document_id.removeprefix("sha256:") if document_id else None,
        persisted_hash,
        size,
        extensions.get("plan") is True,
    )


def _parse_persisted_hash(persisted_query: Any) -> str:
    """The hash of Apollo's automatic persisted queries: `{"version": 1, "sha256Hash": "…"}`."""
    match persisted_query:
        case {"version": 1, "sha256Hash": str(sha256)}:
            return sha256.removeprefix("sha256:").lower()
    raise HTTPException(400, '`extensions.persistedQuery` must be {"version": 1, "sha256Hash": "…"}.')


def _wrong_type(values: tuple[Any, ...]) -> HTTPException:
    name, expected = next(
        (name, types[0])
        for name, value, types in zip(_PARAMETERS, values, _TYPES, strict=True)
        if not isinstance(value, types)
    )
    return HTTPException(400, f"`{name}` must be {'text' if expected is str else 'an object'}.")


async def read_request(
    scope: Scope, headers: Headers, receive: Receive, max_bytes: int, held: Callable[[], AbstractContextManager[None]]
) -> GraphQLRequest:
    """The request of a GET or POST; HTTPException if it cannot be read, InvalidOperation if it has too many values.

    While its body is read, each piece of that is `held`, which may raise Overloaded.
    """
    if scope["method"] == "GET":
        return parse_request(_query_parameters(scope), len(scope["query_string"]))
    if scope["method"] != "POST":
        raise HTTPException(405, "Ask with POST or GET.", {"allow": "GET, POST"})
    _check_kind(headers.get(b"content-type", b""), headers.get(b"content-encoding", b""))
    announced = headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced.lstrip(b"0") or b"0") > max_bytes:  # Python reads 4,300 digits
        raise _too_large(max_bytes)
    body = await read_body(receive, max_bytes, held)
    try:
        check_json(body)
        parameters = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _bad_json("The body", error) from None
    return parse_request(parameters, len(body))


async def read_body(
    receive: Receive, max_bytes: int, held: Callable[[], AbstractContextManager[None]] = nullcontext
) -> bytearray:
    """The body of a request; HTTPException if it is larger, or if the client leaves before its end."""
    body, more, pieces = bytearray(), True, 0
    with ExitStack() as stack:
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HTTPException(400, "The request ended before its body did.")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > max_bytes:
                raise _too_large(max_bytes)
            while more and pieces < len(body) // PIECE:
                stack.enter_context(held())
                pieces += 1
    return body


def _check_kind(content_type: bytes, encoding: bytes) -> None:
    """HTTPException if bodies of this kind are not read."""
    if not _is_json(content_type):
        raise HTTPException(415, f"Send the request as {LEGACY} in UTF-8.", {"accept-post": LEGACY})
    if encoding.strip().lower() not in (b"", b"identity"):
        raise HTTPException(415, "Send the body uncompressed.", {"accept-encoding": "identity"})


@remembered(64)
def _is_json(content_type: bytes) -> bool:
    media_type, _, parameters = content_type.decode("latin-1").partition(";")
    charset = parameters.replace(" ", "").lower().removeprefix("charset=").strip('"')
    return media_type.strip().lower() == LEGACY and charset in ("", "utf-8", "utf8")


def _query_parameters(scope: Scope) -> dict[str, Any]:
    if len(scope["query_string"]) > MAX_QUERY_STRING:
        raise HTTPException(414, "The address is too long; send the request with POST.")
    try:
        encoded = scope["query_string"].decode()
        parameters: dict[str, Any] = dict(parse_qsl(encoded, keep_blank_values=True, errors="strict"))
    except UnicodeDecodeError:
        raise HTTPException(400, "The address has bytes that are not UTF-8. Encode its parameters as UTF-8.") from None
    for name in ("variables", "extensions"):
        text = parameters.pop(name, None)
        if text:
            try:
                parameters[name] = orjson.loads(text.encode("utf-8", "surrogatepass"))
            except orjson.JSONDecodeError as error:
                raise _bad_json(f"`{name}`", error) from None
    return parameters


def _bad_json(source: str, error: orjson.JSONDecodeError) -> HTTPException:
    return HTTPException(400, f"{source} is not JSON in UTF-8: {error.msg}.")


def _too_large(max_bytes: int) -> HTTPException:
    # The connection stays open, and the rest of the body is dropped: closing at once may destroy the answer.
    return HTTPException(413, f"The body is larger than {max_bytes} bytes.")


# ── response ──
# Answers and refusals as HTTP responses in GraphQL's format.

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
_CODES = {503: Overloaded.code, 401: "UNAUTHENTICATED", 500: "INTERNAL"}


def answer_response(answer: Answer, response_format: ResponseFormat, set_cookie: str | None) -> Response:
    """An answer as JSON."""
    status = 200 if answer.executed else response_format.not_executed
    response = Response(encode_json(answer.body()), status)
    response.raw_headers += _RAW_HEADERS[response_format.media_type]
    if set_cookie:
        response.raw_headers.append((b"set-cookie", set_cookie.encode("latin-1")))
    return response


def overloaded() -> HTTPException:
    """The refusal at a limit: a server that accepts more than it can do answers nobody in time."""
    return HTTPException(503, Overloaded.explanation, {"retry-after": "1"})


def code_of(error: HTTPException) -> str:
    """The code of the error in a response that says why a request was not executed."""
    return error.code if isinstance(error, Unverifiable) else _CODES.get(error.status_code, "BAD_REQUEST")


def error_response(error: HTTPException, media_type: str = LEGACY) -> Response:
    """The response to a request that was not executed, with the error in the format of GraphQL."""
    body: dict[str, Any] = {"errors": [{"message": error.detail, "extensions": {"code": code_of(error)}}]}
    response = Response(orjson.dumps(body), error.status_code, {**_HEADERS[media_type], **(error.headers or {})})
    if isinstance(error, Unauthenticated):
        response.raw_headers += [(b"set-cookie", each.encode("latin-1")) for each in error.clear_cookies]
    return response


async def outside_graphql(_: Request, error: HTTPException) -> Response:
    """The same for an error at any other address, such as one where there is nothing."""
    if error.detail == HTTPStatus.NOT_FOUND.phrase:  # an address that has more to say says it
        error = HTTPException(404, "There is nothing at this address. GraphQL is at /graphql.", error.headers)
    return error_response(error)


# ── compression ──
# Compresses responses above a kilobyte for clients that accept gzip.
#
# A page of 20 comments (10.5 KB) takes 70 µs of CPU at level 1 and shrinks to 46 %; level 6 takes 145 µs for 44 %. The
# answers of /graphql are compressed here, which costs a small one nothing, and the `Vary` of all of them says so.
# Starlette's middleware compresses what FastAPI serves. Event streams and WebSocket messages are sent as they are.
# docs/decisions/http-server.md

GZIP_MIN_BYTES: Final = 1024
GZIP_LEVEL: Final = 1
GZIP_THREAD_BYTES: Final = 131_072
"""A larger body is compressed in a thread: on the event loop it would take over a millisecond."""
_GZIP: Final = 16 + zlib.MAX_WBITS


async def compress(response: Response, headers: RawHeaders) -> None:
    """Compress the body of a response, unless it is small, a stream, or the client does not accept gzip."""
    if isinstance(response, StreamingResponse) or len(response.body) < GZIP_MIN_BYTES:
        return
    if not accepts_gzip(b",".join(value for name, value in headers if name == b"accept-encoding")):
        return
    body = bytes(response.body)
    response.body = await asyncio.to_thread(_gzip, body) if len(body) > GZIP_THREAD_BYTES else _gzip(body)
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Content-Length"] = str(len(response.body))


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, GZIP_LEVEL, _GZIP)


@remembered(64)
def accepts_gzip(accept_encoding: bytes) -> bool:
    """Whether gzip is named, or any coding accepted, with a quality above zero."""
    accepted = {}
    for part in accept_encoding.decode("latin-1").lower().split(","):
        coding, _, parameters = part.partition(";")
        name, _, quality = parameters.strip().partition("=")
        accepted[coding.strip()] = name.strip() != "q" or quality.strip(" 0.") != ""
    return accepted.get("gzip", accepted.get("*", False))
