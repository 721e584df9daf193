"""GraphQL over HTTP: one address for POST, GET, Server-Sent Events and, to a browser, the explorer.

request ── page? ── read ── who ── room? ── document ── cost ── run ── answer
             │       4xx    401     503       400        400     │
          explorer                                            deadline
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import orjson
import structlog
from graphql import GraphQLError, GraphQLSchema, OperationType
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from datastore.dynamo import deadline, metered
from datastore.refusals import Overloaded
from resolvers.context import Asking, House
from resolvers.viewer import Role, Viewer
from server import requests
from server.execution.answers import Answer, events, refused, run, worded
from server.execution.documents import Documents, Faulty, Operation
from server.oidc import KeysUnavailable
from server.pages import HARDENED, Explorer, wants_page
from server.requests import LEGACY, STREAM, BadRequest, GraphQLRequest, Negotiated
from server.settings import Introspection, Settings
from server.streams import stream
from server.telemetry import Metrics, Outcome, Traces
from server.tokens import Unauthenticated
from server.viewer import Identification, Identified

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]
_log = structlog.get_logger("ringside.graphql")


@dataclass(frozen=True, slots=True)
class Gate:
    """Everything a request passes on its way to the resolvers, made once per process."""

    schema: GraphQLSchema
    documents: Documents
    house: House
    identification: Identification
    settings: Settings
    metrics: Metrics
    traces: Traces
    closing: asyncio.Event

    def may_introspect(self, viewer: Viewer) -> bool:
        match self.settings.introspection:
            case Introspection.ON:
                return True
            case Introspection.OFF:
                return False
            case Introspection.ROLE:
                return viewer.may(Role.EDITOR)

    def operation(self, asked: GraphQLRequest, viewer: Viewer) -> Operation:
        """The operation asked for, or Faulty."""
        introspection = self.may_introspect(viewer)
        operation = self.documents.operation(
            asked.query, asked.operation_name, key=asked.document_id, introspection=introspection
        )
        self.documents.check_cost(operation, asked.variables)
        return operation

    def explains(self, asked: GraphQLRequest, viewer: Viewer) -> bool:
        """Whether the answer tells how it came about: to editors, and to anybody on their own machine."""
        return asked.plan and (self.house.policy.development or viewer.may(Role.EDITOR))

    async def answer(
        self, operation: Operation, asked: GraphQLRequest, asking: Asking, headers: Headers = ()
    ) -> Answer:
        """A query's or mutation's answer, within its deadline, measured and logged."""
        began = time.perf_counter()
        with (
            self.traces.operation(operation.kind.value, operation.name, operation.hash, headers) as ended,
            metered() as spent,
        ):
            answer = await self._in_time(operation, asked, asking)
            outcome = _outcome(answer)
            ended(outcome)
        seconds = time.perf_counter() - began
        self.metrics.finished(
            operation.name,
            outcome,
            seconds,
            read_units=spent.read_units,
            write_units=spent.write_units,
            engine_calls=spent.calls,
        )
        _log.info(
            "answered",
            operation=operation.name,
            kind=operation.kind.value,
            hash=operation.hash[:16],
            outcome=outcome.value,
            milliseconds=round(seconds * 1000, 2),
            calls=spent.calls,
            read_units=spent.read_units,
            write_units=spent.write_units,
        )
        return answer

    async def _in_time(self, operation: Operation, asked: GraphQLRequest, asking: Asking) -> Answer:
        suggestions = self.may_introspect(asking.viewer)
        try:
            # A little later than the deadline of engine calls, whose own error says more.
            async with asyncio.timeout(self.settings.request_timeout + 0.5):
                with deadline(self.settings.request_timeout):
                    return await run(
                        self.schema,
                        operation,
                        asked.variables,
                        asking,
                        suggestions=suggestions,
                        fell_back=self.metrics.fell_back,
                    )
        except TimeoutError:
            late = GraphQLError("The time for this request is used up.", extensions=_UNAVAILABLE)
            return Answer(errors=[worded(late)])

    async def events(
        self, operation: Operation, asked: GraphQLRequest, asking: Asking
    ) -> Answer | AsyncIterator[Answer]:
        suggestions = self.may_introspect(asking.viewer)
        return await events(
            self.schema,
            operation,
            asked.variables,
            asking,
            suggestions=suggestions,
            fell_back=self.metrics.fell_back,
        )


def _outcome(answer: Answer) -> Outcome:
    """As an operator sees it: the worst of the errors decides."""
    codes = {error.get("extensions", {}).get("code") for error in answer.errors}
    if "INTERNAL" in codes:
        return Outcome.FAILED
    if "UNAVAILABLE" in codes:
        return Outcome.UNAVAILABLE
    if not codes:
        return Outcome.OK
    return Outcome.ERRORS if answer.started else Outcome.INVALID


_UNAVAILABLE = {"code": "UNAVAILABLE", "retryAfterSeconds": 1.0}


class GraphQL:
    """The ASGI application of /graphql, but for WebSockets."""

    def __init__(self, gate: Gate, explorer: Explorer) -> None:
        self._gate = gate
        self._explorer = explorer
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if wants_page(request):
            response = self._explorer.page()
        elif request.method not in ("GET", "POST"):
            response = _failure(BadRequest(405, "Ask with POST or GET.", allow="GET, POST"))
        else:
            response = await self._answered(request)
        await response(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        headers: dict[str, str] = {}
        began = time.perf_counter()
        try:
            wanted = requests.negotiated(request.headers.get("accept"))
            asked = await requests.read(request, self._gate.settings.max_body_bytes)
            who = await self._who(request)
            if who.set_cookie:
                headers["set-cookie"] = who.set_cookie
            with self._room():
                return await self._operation(request, asked, who.viewer, wanted, headers)
        except BadRequest as bad:
            self._gate.metrics.finished(None, _REFUSALS.get(bad.status, Outcome.INVALID), time.perf_counter() - began)
            return _failure(bad)
        except Faulty as faulty:
            self._gate.metrics.finished(None, Outcome.INVALID, time.perf_counter() - began)
            return _json(refused(*faulty.errors), wanted, headers)

    async def _who(self, request: Request) -> Identified:
        try:
            return await self._gate.identification.viewer(
                request.scope["headers"], secure=request.url.scheme == "https"
            )
        except Unauthenticated as unknown:
            raise _unauthenticated(unknown) from None
        except KeysUnavailable as unknown:
            raise BadRequest(503, str(unknown), retry_after="1") from None

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Room for one more request, or 503: beyond its limit a server that takes on more serves nobody."""
        if self._in_flight >= self._gate.settings.max_in_flight:
            raise BadRequest(503, Overloaded.explanation, retry_after="1")
        self._in_flight += 1
        self._gate.metrics.in_flight.inc()
        try:
            yield
        finally:
            self._in_flight -= 1
            self._gate.metrics.in_flight.dec()

    async def _operation(
        self, request: Request, asked: GraphQLRequest, viewer: Viewer, wanted: Negotiated, headers: dict[str, str]
    ) -> Response:
        operation = self._gate.operation(asked, viewer)
        if request.method == "GET" and operation.kind is not OperationType.QUERY:
            raise BadRequest(405, "GET runs queries only; send this with POST.", allow="POST")
        asking = Asking(
            self._gate.house,
            viewer,
            request.client.host if request.client else "",
            explain=self._gate.explains(asked, viewer),
            last_event=request.headers.get("last-event-id"),
        )
        if wanted.media == STREAM:
            return stream(await self._events(operation, asked, asking), self._gate.closing, headers)
        if operation.kind is OperationType.SUBSCRIPTION:
            message = f"Subscriptions come over a WebSocket (graphql-transport-ws) or as {STREAM}."
            raise BadRequest(406, message)
        answer = await self._gate.answer(operation, asked, asking, request.scope["headers"])
        return _json(answer, wanted, headers)

    async def _events(self, operation: Operation, asked: GraphQLRequest, asking: Asking) -> AsyncIterator[Answer]:
        """The answers to stream: a subscription's events, or the one answer of a query."""
        if operation.kind is OperationType.SUBSCRIPTION:
            found = await self._gate.events(operation, asked, asking)
            return found if not isinstance(found, Answer) else _single(found)
        return _single(await self._gate.answer(operation, asked, asking))


async def _single(answer: Answer) -> AsyncIterator[Answer]:
    yield answer


def _json(answer: Answer, wanted: Negotiated, headers: Mapping[str, str]) -> Response:
    """An answer as JSON."""
    status = 200 if answer.started else wanted.not_begun
    content_type = {"content-type": f"{LEGACY if wanted.media == STREAM else wanted.media}; charset=utf-8"}
    return Response(orjson.dumps(answer.body()), status, {**headers, **content_type, **HARDENED, **_NO_STORE})


_REFUSALS = {401: Outcome.UNAUTHENTICATED, 503: Outcome.OVERLOADED}
_NO_STORE = {"cache-control": "no-store", "vary": "Accept"}


def _failure(bad: BadRequest) -> Response:
    """An answer to what is no GraphQL request: the shape of GraphQL's errors all the same."""
    code = {503: "OVERLOADED", 401: "UNAUTHENTICATED"}.get(bad.status, "BAD_REQUEST")
    body = orjson.dumps({"errors": [{"message": bad.message, "extensions": {"code": code}}]})
    return Response(
        body, bad.status, {**bad.headers, "content-type": "application/json; charset=utf-8", **HARDENED, **_NO_STORE}
    )


def _unauthenticated(unknown: Unauthenticated) -> BadRequest:
    return BadRequest(401, unknown.reason, **{name.replace("-", "_"): value for name, value in unknown.headers})
