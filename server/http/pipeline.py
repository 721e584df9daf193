"""GraphQL over HTTP: one address for POST, GET, Server-Sent Events and, to a browser, the explorer.

request ── page? ── read ── who ── room? ── document ── cost ── run ── answer
             │       4xx    401     503       400        400     │
          explorer                                            deadline
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import structlog
from graphql import GraphQLError, GraphQLSchema, OperationType
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from datastore.dynamo import budget, timeout_at
from datastore.refusals import Overloaded
from resolvers.context import Context, Services
from resolvers.viewer import Role, Viewer
from server.auth.identification import Identification, Identified
from server.auth.tokens import KeysUnavailable, Unauthenticated
from server.execution.answers import Answer, events, refused, run, worded
from server.execution.documents import Documents, Faulty, Operation
from server.http import request as requests
from server.http.explorer import Explorer, wants_page
from server.http.protocol import WHOLE
from server.http.request import STREAM, BadRequest, GraphQLRequest, Negotiated, headers_of
from server.http.request import Headers as ByName
from server.http.response import Reply, answered, failure
from server.http.sse import stream
from server.settings import Introspection, Settings
from server.telemetry import Metrics, Outcome, Traces, request_id, tells

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]
_ON, _BY_ROLE = Introspection.ON, Introspection.ROLE
_log = structlog.get_logger("ringside.graphql")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Everything a request passes on its way to the resolvers, made once per process."""

    schema: GraphQLSchema
    documents: Documents
    services: Services
    identification: Identification
    settings: Settings
    metrics: Metrics
    traces: Traces
    closing: asyncio.Event

    def may_introspect(self, viewer: Viewer) -> bool:
        setting = self.settings.introspection
        return setting == _ON or (setting == _BY_ROLE and viewer.may(Role.EDITOR))

    def operation(self, asked: GraphQLRequest, viewer: Viewer) -> Operation:
        """The operation asked for, or Faulty."""
        introspection, known = self.may_introspect(viewer), asked.known
        if known is not None and known[0] is self.documents and known[1] is introspection:
            return known[2]
        operation = self.documents.operation(
            asked.query, asked.operation_name, key=asked.document_id, introspection=introspection
        )
        self.documents.check_cost(operation, asked.variables)
        asked.known = (self.documents, introspection, operation)
        return operation

    def explains(self, viewer: Viewer) -> bool:
        """Whether answers may tell how they came about: to editors, and to anybody on their own machine."""
        return self.services.policy.development or viewer.may(Role.EDITOR)

    async def answer(self, operation: Operation, asked: GraphQLRequest, ctx: Context, headers: Headers = ()) -> Answer:
        """A query's or mutation's answer, within its deadline, measured and logged."""
        began, seconds = time.perf_counter(), self.settings.request_timeout
        with (
            self.traces.operation(operation.kind, operation.name, operation.hash, headers) as ended,
            budget(seconds) as (ends, spent),
        ):
            try:
                # A little later than the deadline of engine calls, whose own error says more.
                with timeout_at(ends + 0.5):
                    answer = await run(
                        self.schema,
                        operation,
                        asked.variables,
                        ctx,
                        suggestions=self.may_introspect(ctx.viewer),
                        fell_back=self.metrics.fell_back,
                    )
            except TimeoutError:
                late = GraphQLError("The time for this request is used up.", extensions=_UNAVAILABLE)
                answer = Answer(errors=[worded(late)])
            outcome = _outcome(answer)
            ended(outcome)
        took = time.perf_counter() - began
        self.metrics.finished(
            operation.name,
            outcome,
            took,
            read_units=spent.read_units,
            write_units=spent.write_units,
            engine_calls=spent.calls,
        )
        if tells(logging.INFO):
            _log.info(
                "answered",
                operation=operation.name,
                kind=operation.kind.value,
                hash=operation.hash[:16],
                outcome=outcome.value,
                milliseconds=round(took * 1000, 2),
                calls=spent.calls,
                read_units=spent.read_units,
                write_units=spent.write_units,
            )
        return answer

    async def events(self, operation: Operation, asked: GraphQLRequest, ctx: Context) -> Answer | AsyncIterator[Answer]:
        suggestions = self.may_introspect(ctx.viewer)
        return await events(
            self.schema,
            operation,
            asked.variables,
            ctx,
            suggestions=suggestions,
            fell_back=self.metrics.fell_back,
        )


def _outcome(answer: Answer) -> Outcome:
    """As an operator sees it: the worst of the errors decides."""
    if not answer.errors:
        return Outcome.OK
    codes = {error.get("extensions", {}).get("code") for error in answer.errors}
    if "INTERNAL" in codes:
        return Outcome.FAILED
    if "UNAVAILABLE" in codes:
        return Outcome.UNAVAILABLE
    return Outcome.ERRORS if answer.started else Outcome.INVALID


_UNAVAILABLE = {"code": "UNAVAILABLE", "retryAfterSeconds": 1.0}


class GraphQL:
    """The ASGI application of /graphql, but for WebSockets."""

    def __init__(self, pipeline: Pipeline, explorer: Explorer) -> None:
        self._gate = pipeline
        self._explorer = explorer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers any request, behind the middlewares."""
        method = scope["method"]
        if method != "POST" and wants_page(Request(scope)):
            await self._explorer.page()(scope, receive, send)
        elif method not in ("GET", "POST"):
            await _WRONG_METHOD.send(send)
        else:
            found = await self._answered(scope, headers_of(scope), receive)
            await (found.send(send) if isinstance(found, Reply) else found(scope, receive, send))

    async def direct(self, scope: Scope, headers: ByName, receive: Receive, send: Send) -> None:
        """Answers a POST that passed no middleware. Each coroutine and each header less is felt: see bench/results."""
        whole = scope.get("extensions", {}).get(WHOLE)
        id_ = request_id(headers.get(b"x-request-id"))
        found = await self._answered(scope, headers, receive)
        if not isinstance(found, Reply):
            found.headers["x-request-id"] = id_.decode()
            await found(scope, receive, send)
        elif whole is None or not found.hand_over(whole, id_):
            await found.send(send, (b"x-request-id", id_))

    async def _answered(self, scope: Scope, headers: ByName, receive: Receive) -> Reply | Response:
        pipeline, began = self._gate, time.perf_counter()
        if pipeline.metrics.under_way >= pipeline.settings.max_in_flight:
            # Before anything is read of it: under ten times the load, refusing is most of the work.
            pipeline.metrics.finished(None, Outcome.OVERLOADED, 0.0)
            return _OVERLOADED
        who: Identified | None = None
        try:
            wanted = requests.negotiated(headers.get(b"accept", b""))
            asked = await requests.read(scope, headers, receive, pipeline.settings.max_body_bytes)
            who = pipeline.identification.recognised(headers) or await self._who(scope)
            self._enter()
            try:
                operation = pipeline.operation(asked, who.viewer)
                _check_way(operation, scope["method"], wanted)
                ctx = self._asking(scope, headers, asked, who.viewer)
                if wanted.media == STREAM:
                    cookie = {"set-cookie": who.set_cookie} if who.set_cookie else {}
                    return stream(await self._events(operation, asked, ctx), pipeline.closing, cookie)
                answer = await pipeline.answer(operation, asked, ctx, scope["headers"])
                return answered(answer, wanted, who.set_cookie)
            finally:
                pipeline.metrics.left()
        except BadRequest as bad:
            pipeline.metrics.finished(None, _REFUSALS.get(bad.status, Outcome.INVALID), time.perf_counter() - began)
            return failure(bad)
        except Faulty as faulty:
            pipeline.metrics.finished(None, Outcome.INVALID, time.perf_counter() - began)
            return answered(refused(*faulty.errors), wanted, who.set_cookie if who else None)

    async def _who(self, scope: Scope) -> Identified:
        try:
            return await self._gate.identification.viewer(scope["headers"], secure=scope["scheme"] == "https")
        except Unauthenticated as unknown:
            raise _unauthenticated(unknown) from None
        except KeysUnavailable as unknown:
            raise BadRequest(503, str(unknown), retry_after=f"{unknown.retry_after:.0f}") from None

    def _enter(self) -> None:
        """Room for one more request, or 503: beyond its limit a server that takes on more serves nobody.

        Looked at again once the request is read: who sends it slowly takes up no room meanwhile.
        """
        if self._gate.metrics.under_way >= self._gate.settings.max_in_flight:
            raise _no_room()
        self._gate.metrics.entered()

    def _asking(self, scope: Scope, headers: ByName, asked: GraphQLRequest, viewer: Viewer) -> Context:
        client, last_event = scope.get("client"), headers.get(b"last-event-id")
        return Context(
            self._gate.services,
            viewer,
            client[0] if client else "",
            explain=asked.plan and self._gate.explains(viewer),
            last_event=last_event.decode("latin-1") if last_event is not None else None,
        )

    async def _events(self, operation: Operation, asked: GraphQLRequest, ctx: Context) -> AsyncIterator[Answer]:
        """The answers to stream: a subscription's events, or the one answer of a query."""
        if operation.kind is OperationType.SUBSCRIPTION:
            found = await self._gate.events(operation, asked, ctx)
            return found if not isinstance(found, Answer) else _single(found)
        return _single(await self._gate.answer(operation, asked, ctx))


def _check_way(operation: Operation, method: str, wanted: Negotiated) -> None:
    """Not every kind of operation comes by every way."""
    if method == "GET" and operation.kind is not OperationType.QUERY:
        raise BadRequest(405, "GET runs queries only; send this with POST.", allow="POST")
    if operation.kind is OperationType.SUBSCRIPTION and wanted.media != STREAM:
        message = f"Subscriptions come over a WebSocket (graphql-transport-ws) or as {STREAM}."
        raise BadRequest(406, message)


async def _single(answer: Answer) -> AsyncIterator[Answer]:
    yield answer


def _no_room() -> BadRequest:
    return BadRequest(503, Overloaded.explanation, retry_after="1")


_OVERLOADED = failure(_no_room())
_REFUSALS = {401: Outcome.UNAUTHENTICATED, 503: Outcome.OVERLOADED}
_WRONG_METHOD = failure(BadRequest(405, "Ask with POST or GET.", allow="GET, POST"))


def _unauthenticated(unknown: Unauthenticated) -> BadRequest:
    return BadRequest(401, unknown.reason, **{name.replace("-", "_"): value for name, value in unknown.headers})
