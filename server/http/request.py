"""Reading a GraphQL request from HTTP: negotiation, the body's bounds, the parameters' types.

Rules of GraphQL over HTTP, and the choices it leaves open:
- An answer is `application/graphql-response+json` to those who accept it, else `application/json`.
- A document that does not parse or validate, and variables that do not fit, are status 400: a client that looks at
  the status alone must not take a refusal for an answer. Only who asks for `application/json` by name gets the 200
  that the specification keeps for older clients.
- GET runs queries only. POST takes JSON only, which no other site's form can send without being asked first (CORS).
- A list of requests (batching) is not taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
from starlette.requests import Request
from starlette.types import Receive, Scope

if TYPE_CHECKING:
    from server.execution.documents import Documents, Operation

Headers: TypeAlias = Mapping[bytes, bytes]

MODERN = "application/graphql-response+json"
LEGACY = "application/json"
STREAM = "text/event-stream"


class BadRequest(Exception):
    """The request is no GraphQL request. Its answer: a status, a message, headers of its own."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass(slots=True, eq=False)
class GraphQLRequest:
    """What a client asks for."""

    query: str | None
    operation_name: str | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    document_id: str | None = None
    plan: bool = False
    """Whether the client wants to know how the answer came about: `"extensions": {"plan": true}`."""
    known: tuple[Documents, bool, Operation] | None = None
    """The operation that these words were found to mean: for which documents and with or without introspection."""

    @classmethod
    def of(cls, parameters: Any) -> GraphQLRequest:
        if isinstance(parameters, list):
            raise BadRequest(400, "Send one request at a time: batches are not taken.")
        if not isinstance(parameters, dict):
            raise BadRequest(400, 'The body must be a JSON object such as {"query": "{ viewer { id } }"}.')
        given = tuple(map(parameters.get, _PARAMETERS))
        if not all(map(isinstance, given, _KINDS)):
            raise _mistyped(given)
        query, name, variables, document_id, extensions = given
        if not query and not document_id:
            raise BadRequest(400, "There is no `query` in the request.")
        return cls(
            query,
            name or None,
            variables or {},
            document_id.removeprefix("sha256:") if document_id else None,
            extensions is not None and extensions.get("plan") is True,
        )


_PARAMETERS = ("query", "operationName", "variables", "documentId", "extensions")
_KINDS = ((str, NoneType), (str, NoneType), (dict, NoneType), (str, NoneType), (dict, NoneType))


def _mistyped(given: tuple[Any, ...]) -> BadRequest:
    name, kind = next(
        (name, kinds[0])
        for name, value, kinds in zip(_PARAMETERS, given, _KINDS, strict=True)
        if not isinstance(value, kinds)
    )
    return BadRequest(400, f"`{name}` must be {'a text' if kind is str else 'an object'}.")


@dataclass(frozen=True, slots=True)
class Negotiated:
    """The media type to answer with, and the status of an operation that was not begun."""

    media: str
    not_begun: int


def headers_of(scope: Scope) -> Headers:
    """The headers by name; of several with the same name, the first."""
    return dict(reversed(scope["headers"]))


@lru_cache(maxsize=256)  # a client says the same each time; what strangers invent pushes out what they invented before
def negotiated(accept: bytes) -> Negotiated:
    """What a client accepts best; its own order decides among equals."""
    ranked: list[tuple[float, int, str]] = []
    if not accept:
        return Negotiated(LEGACY, 400)
    for place, part in enumerate(accept.decode("latin-1").split(",")):
        kind, _, parameters = part.strip().lower().partition(";")
        kind = kind.strip()
        quality = _quality(parameters)
        if quality > 0 and kind in _ANSWERS:
            ranked.append((-quality, place, kind))
    if not ranked:
        message = f"Answers come as {MODERN}, {LEGACY} or, for subscriptions, {STREAM}."
        raise BadRequest(406, message)
    return _ANSWERS[min(ranked)[2]]


_ANSWERS = {
    MODERN: Negotiated(MODERN, 400),
    LEGACY: Negotiated(LEGACY, 200),
    STREAM: Negotiated(STREAM, 400),
    "application/*": Negotiated(LEGACY, 400),
    "*/*": Negotiated(LEGACY, 400),
}


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


async def read(scope: Scope, headers: Headers, receive: Receive, most: int) -> GraphQLRequest:
    """The request of a GET or POST."""
    if scope["method"] == "GET":
        return GraphQLRequest.of(_from_address(scope))
    if not _is_json(headers.get(b"content-type", b"")):
        raise BadRequest(415, f"Send the request as {LEGACY} in UTF-8.", accept_post=LEGACY)
    announced = headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced) > most:
        raise _too_large(most)
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest(400, "The request ended before its body did.")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
        if not message.get("more_body", False):
            body = b"".join(parts)
            return _common(body) if size <= _SHORT else _parsed(body)


def _parsed(body: bytes) -> GraphQLRequest:
    return GraphQLRequest.of(_json(body, "The body"))


_SHORT = 4_096


@lru_cache(maxsize=100)
def _common(body: bytes) -> GraphQLRequest:
    """A page that everybody opens is asked for in the same words each time: the same request, with what is known of it.

    Its variables are read-only, since many share them, which also says that they may be remembered: see compiled.py.
    """
    asked = _parsed(body)
    asked.variables = MappingProxyType(asked.variables)
    return asked


@lru_cache(maxsize=64)
def _is_json(header: bytes) -> bool:
    content_type, _, parameters = header.decode("latin-1").partition(";")
    charset = parameters.replace(" ", "").lower().removeprefix("charset=").strip('"')
    return content_type.strip().lower() == LEGACY and charset in ("", "utf-8", "utf8")


def _from_address(scope: Scope) -> dict[str, Any]:
    if len(scope["query_string"]) > _LONGEST_ADDRESS:
        raise BadRequest(414, "The address is too long; send the request with POST.")
    parameters: dict[str, Any] = dict(Request(scope).query_params)
    for name in ("variables", "extensions"):
        if parameters.get(name):
            parameters[name] = _json(parameters[name].encode("utf-8", "surrogatepass"), f"`{name}`")
        else:
            parameters.pop(name, None)
    return parameters


_LONGEST_ADDRESS = 16_384


def _json(text: bytes, what: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequest(400, f"{what} is not JSON in UTF-8: {error.msg}.") from None


def _too_large(most: int) -> BadRequest:
    return BadRequest(413, f"The body is larger than {most} bytes.", connection="close")
