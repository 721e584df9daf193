"""GraphQL over HTTP: POST, GET, Server-Sent Events and, for a browser, the explorer, all at one address."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial

from graphql import OperationType
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from datastore.refusals import Overloaded
from resolvers.requests.context import Context
from resolvers.values.network_addresses import network
from server.auth.credentials import Credentials
from server.auth.identification import Identified
from server.execution.answers import Answer
from server.execution.documents import GraphQLRequest, InvalidOperation, Operation
from server.http.compression import compress
from server.http.demo_viewers import demo_viewers
from server.http.explorer import Explorer, wants_page
from server.http.pipeline import Pipeline
from server.http.protocol import IS_FIRST
from server.http.request import DEFAULT_FORMAT, STREAM, Headers, ResponseFormat, negotiate, read_request
from server.http.request_turns import Client
from server.http.response import answer_response, error_response, overloaded
from server.http.sse import EventStream, ended_stream
from server.telemetry import Outcome

_OUTCOMES = {401: Outcome.UNAUTHENTICATED, 503: Outcome.OVERLOADED}
_OVERLOADED = error_response(overloaded())
"""Made once: under ten times the load, refusing is most of the work."""


class GraphQLEndpoint:
    """The ASGI application of /graphql for HTTP. Its pipeline is in the state of the lifespan."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pipeline: Pipeline = scope["state"]["pipeline"]
        if scope["method"] != "POST" and pipeline.has_explorer and wants_page(Request(scope)):
            response = self._explorer.page(demo_viewers(pipeline.settings, scope))
        else:
            response = await _respond(pipeline, scope, receive)
        await compress(response, scope["headers"])
        await response(scope, receive, send)


async def _respond(pipeline: Pipeline, scope: Scope, receive: Receive) -> Response:
    """The response to a GraphQL request, errors included."""
    began, response_format, reader_cookie = time.perf_counter(), DEFAULT_FORMAT, None
    connected = scope.get("client")
    address = connected[0] if connected else ""
    if pipeline.requests.is_full(address):  # before anything is read
        pipeline.metrics.finished(None, Outcome.OVERLOADED, 0.0)
        return _OVERLOADED
    try:
        headers = dict(reversed(scope["headers"]))  # of several with one name, the first
        response_format = negotiate(b",".join(value for name, value in scope["headers"] if name == b"accept"))
        request = await read_request(scope, headers, receive, pipeline.settings.max_body_bytes)
        identified = await pipeline.identification.identify(
            scope["headers"], secure=scope["scheme"] == "https", address=address
        )
        reader_cookie = identified.reader_cookie
        # Again after reading: a request that arrives slowly takes up no capacity meanwhile.
        with pipeline.in_flight(address):
            client = Client(network(address), scope["state"].get(IS_FIRST, False))
            await pipeline.request_turns.take(client)
            return await _execute(pipeline, scope, headers, request, identified, address, client, response_format)
    except HTTPException as error:
        outcome = _OUTCOMES.get(error.status_code, Outcome.INVALID)
        response = error_response(error, response_format.media_type)
    except Overloaded:
        outcome, response = Outcome.OVERLOADED, error_response(overloaded(), response_format.media_type)
    except InvalidOperation as invalid:
        answer = Answer.not_executed(*invalid.errors)
        outcome, response = Outcome.INVALID, answer_response(answer, response_format, reader_cookie)
    pipeline.metrics.finished(None, outcome, time.perf_counter() - began)
    return response


async def _execute(
    pipeline: Pipeline,
    scope: Scope,
    headers: Headers,
    request: GraphQLRequest,
    identified: Identified,
    address: str,
    client: Client,
    response_format: ResponseFormat,
) -> Response:
    viewer = identified.viewer
    introspection = pipeline.may_introspect(viewer)
    operation = await pipeline.operation(request, client, introspection=introspection)
    if operation.kind is not OperationType.QUERY:
        _check_kind(operation, scope["method"], response_format)
    last_event, secure = headers.get(b"last-event-id"), scope["scheme"] == "https"
    ctx = Context(
        pipeline.services,
        viewer,
        address,
        page_origin=headers.get(b"origin", b"").decode("latin-1"),
        own_origin=f"{scope['scheme']}://{headers.get(b'host', b'').decode('latin-1').lower()}",
        explain=request.wants_plan and pipeline.may_see_plans(viewer),
        last_event=last_event.decode("latin-1") if last_event is not None else None,
    )
    is_mutation = operation.kind is OperationType.MUTATION
    set_cookie = identified.mutation_cookie if is_mutation else identified.reader_cookie
    answer: Answer | AsyncIterator[Answer]
    if operation.kind is OperationType.SUBSCRIPTION:
        answer = await pipeline.subscribe(operation, request.variables, ctx, suggestions=introspection)
        if not isinstance(answer, Answer):
            identify = partial(pipeline.identification.identify, scope["headers"], secure=secure, address=address)
            credentials = Credentials(pipeline.identification, identified, identify)
            return EventStream(answer, pipeline.closing, set_cookie, credentials, pipeline.streams.held(address))
    else:
        answer = await pipeline.execute(
            operation, request.variables, ctx, suggestions=introspection, headers=scope["headers"]
        )
        if operation.kind is OperationType.QUERY and answer.is_overloaded:
            return error_response(overloaded(), response_format.media_type)
    if answer.executed and (response_format.media_type == STREAM or operation.kind is OperationType.SUBSCRIPTION):
        return ended_stream(answer, set_cookie)
    return answer_response(answer, response_format, set_cookie)


def _check_kind(operation: Operation, method: str, response_format: ResponseFormat) -> None:
    """HTTPException if this kind of operation cannot be asked for in this way."""
    if method == "GET":
        raise HTTPException(405, "GET runs queries only; send this with POST.", {"allow": "POST"})
    if operation.kind is OperationType.SUBSCRIPTION and not response_format.accepts_stream:
        raise HTTPException(406, f"Subscriptions come over a WebSocket (graphql-transport-ws) or as {STREAM}.")
