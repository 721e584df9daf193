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
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request

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


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """What a client asks for."""

    query: str | None
    operation_name: str | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    document_id: str | None = None
    plan: bool = False
    """Whether the client wants to know how the answer came about: `"extensions": {"plan": true}`."""

    @classmethod
    def of(cls, parameters: Any) -> GraphQLRequest:
        if isinstance(parameters, list):
            raise BadRequest(400, "Send one request at a time: batches are not taken.")
        if not isinstance(parameters, dict):
            raise BadRequest(400, 'The body must be a JSON object such as {"query": "{ viewer { id } }"}.')
        query = _typed(parameters, "query", str, "a text")
        document_id = _typed(parameters, "documentId", str, "a text")
        if not query and not document_id:
            raise BadRequest(400, "There is no `query` in the request.")
        name = _typed(parameters, "operationName", str, "a text")
        variables = _typed(parameters, "variables", dict, "an object")
        extensions = _typed(parameters, "extensions", dict, "an object") or {}
        return cls(
            query,
            name or None,
            variables or {},
            document_id.removeprefix("sha256:") if document_id else None,
            plan=extensions.get("plan") is True,
        )


def _typed(parameters: Mapping[str, Any], name: str, kind: type, wanted: str) -> Any:
    value = parameters.get(name)
    if value is not None and not isinstance(value, kind):
        raise BadRequest(400, f"`{name}` must be {wanted}.")
    return value


@dataclass(frozen=True, slots=True)
class Negotiated:
    """The media type to answer with, and the status of an operation that was not begun."""

    media: str
    not_begun: int


def negotiated(accept: str | None) -> Negotiated:
    """What a client accepts best; its own order decides among equals."""
    ranked: list[tuple[float, int, str]] = []
    if not accept:
        return Negotiated(LEGACY, 400)
    for place, part in enumerate(accept.split(",")):
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


async def read(request: Request, most: int) -> GraphQLRequest:
    """The request of a GET or POST."""
    if request.method == "GET":
        return GraphQLRequest.of(_from_address(request))
    content_type, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.replace(" ", "").lower().removeprefix("charset=").strip('"')
    if content_type.strip().lower() != LEGACY or charset not in ("", "utf-8", "utf8"):
        raise BadRequest(415, f"Send the request as {LEGACY} in UTF-8.", accept_post=LEGACY)
    return GraphQLRequest.of(_json(await _body(request, most), "The body"))


def _from_address(request: Request) -> dict[str, Any]:
    if len(request.scope["query_string"]) > _LONGEST_ADDRESS:
        raise BadRequest(414, "The address is too long; send the request with POST.")
    parameters: dict[str, Any] = dict(request.query_params)
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


async def _body(request: Request, most: int) -> bytes:
    too_large = BadRequest(413, f"The body is larger than {most} bytes.", connection="close")
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > most:
        raise too_large
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > most:
                raise too_large
    except ClientDisconnect:
        raise BadRequest(400, "The request ended before its body did.") from None
    return bytes(body)
