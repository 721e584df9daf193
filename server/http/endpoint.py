"""GraphQL over HTTP at one address: POST, GET, Server-Sent Events, for a browser the explorer; and what wraps it."""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import structlog
from graphql import GraphQLError, OperationType
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from datastore.dynamo import Rates
from datastore.refusals import NotSignedIn, Overloaded, RateLimited
from resolvers.requests.context import Context, addressed_origin
from resolvers.values.network_addresses import network
from server.auth.cookies import LOOPBACK, SESSION_COOKIE, set_bound_cookie
from server.auth.identification import CHANGED, Credentials, Identified
from server.compiler import encode_json
from server.execution.answers import Answer
from server.execution.documents import GraphQLRequest, Operation
from server.execution.limits import InvalidOperation
from server.http import messages
from server.http.browser_pages import Explorer, demo_viewers, wants_page
from server.http.pipeline import OUTCOMES, Client, Pipeline
from server.http.protocol import IS_FIRST
from server.telemetry import Outcome, request_id

# ── endpoint ──

_OVERLOADED = messages.error_response(messages.overloaded())
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
        await messages.compress(response, scope["headers"])
        await response(scope, receive, send)


async def _respond(pipeline: Pipeline, scope: Scope, receive: Receive) -> Response:
    """The response to a GraphQL request, errors included."""
    began, response_format, reader_cookie = time.perf_counter(), messages.DEFAULT_FORMAT, None
    address = messages.client_address(scope)
    if pipeline.requests.is_full(address):  # before anything is read
        pipeline.metrics.finished(None, Outcome.OVERLOADED, 0.0)
        return _OVERLOADED
    try:
        headers = dict(reversed(scope["headers"]))  # of several with one name, the first
        response_format = messages.negotiate(b",".join(value for name, value in scope["headers"] if name == b"accept"))
        held, most = partial(pipeline.bodies.held, address), pipeline.settings.max_body_bytes
        request = await messages.read_request(scope, headers, receive, most, held)
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
        outcome, reason = OUTCOMES.get(messages.code_of(error), Outcome.INVALID), error.detail
        response = messages.error_response(error, response_format.media_type)
    except Overloaded:
        outcome, reason = Outcome.OVERLOADED, Overloaded.explanation
        response = messages.error_response(messages.overloaded(), response_format.media_type)
    except InvalidOperation as invalid:
        answer = Answer.not_executed(*invalid.errors)
        outcome, reason = Outcome.INVALID, answer.errors[0]["extensions"]["code"]  # the messages quote the document
        response = messages.answer_response(answer, response_format, reader_cookie)
    except Exception:
        pipeline.metrics.finished(None, Outcome.FAILED, time.perf_counter() - began)
        raise
    pipeline.metrics.finished(None, outcome, time.perf_counter() - began)
    pipeline.log.info("refused", outcome=outcome.value, reason=reason)
    return response


async def _execute(
    pipeline: Pipeline,
    scope: Scope,
    headers: messages.Headers,
    request: GraphQLRequest,
    identified: Identified,
    address: str,
    client: Client,
    response_format: messages.ResponseFormat,
) -> Response:
    viewer = identified.viewer
    introspection = pipeline.may_introspect(viewer)
    operation = await pipeline.operation(request, client, introspection=introspection)
    if operation.kind is not OperationType.QUERY:
        _check_kind(operation, scope["method"], response_format)
    host = headers.get(b"host", b"").decode("latin-1").lower()
    last_event, secure = headers.get(b"last-event-id"), scope["scheme"] == "https"
    ctx = Context(
        pipeline.services,
        viewer,
        address,
        page_origin=headers.get(b"origin", b"").decode("latin-1"),
        own_origin=addressed_origin(scope["scheme"], host),
        explain=request.wants_plan and pipeline.may_see_plans(viewer),
        last_event=last_event.decode("latin-1") if last_event is not None else None,
        language=headers.get(b"accept-language", b"").decode("latin-1"),
        sets_cookies=True,
    )
    is_mutation = operation.kind is OperationType.MUTATION
    set_cookie = identified.mutation_cookie if is_mutation else identified.reader_cookie
    answer: Answer | AsyncGenerator[Answer, None]
    if operation.kind is OperationType.SUBSCRIPTION:
        answer = await pipeline.subscribe(operation, request, ctx, suggestions=introspection)
        if not isinstance(answer, Answer):
            identify = partial(pipeline.identification.identify, scope["headers"], secure=secure, address=address)
            credentials = Credentials(identified, identify)
            place = pipeline.kept_open(pipeline.streams, address)
            return EventStream(answer, pipeline.closing, set_cookie, credentials, place)
    else:
        answer = await pipeline.execute(operation, request, ctx, suggestions=introspection, headers=scope["headers"])
        if operation.kind is OperationType.QUERY and answer.is_overloaded:
            return messages.error_response(messages.overloaded(), response_format.media_type)
    if answer.executed and (
        response_format.media_type == messages.STREAM or operation.kind is OperationType.SUBSCRIPTION
    ):
        response: Response = ended_stream(answer, set_cookie)
    else:
        response = messages.answer_response(answer, response_format, set_cookie)
    _set_session(response, ctx, host, secure=secure)
    return response


def _set_session(response: Response, ctx: Context, host: str, *, secure: bool) -> None:
    """Give the browser the session that the operation began, or take away the one that it ended."""
    if ctx.cookie_session is not None:
        token, ends = ctx.cookie_session
        age = max(0, int((ends - ctx.now()).total_seconds()))
        response.headers.append("set-cookie", set_bound_cookie(SESSION_COOKIE, token, age, host, secure=secure))


def _check_kind(operation: Operation, method: str, response_format: messages.ResponseFormat) -> None:
    """HTTPException if this kind of operation cannot be asked for in this way."""
    if method == "GET":
        raise HTTPException(405, "GET runs queries only; send this with POST.", {"allow": "POST"})
    if operation.kind is OperationType.SUBSCRIPTION and not response_format.accepts_stream:
        raise HTTPException(406, f"Subscriptions come over a WebSocket (graphql-transport-ws) or as {messages.STREAM}.")


# ── fast path ──
# What wraps the application: ids of requests, the fast path, allowed hosts, foreign origins. On the fast path
# POST /graphql goes straight to its endpoint, past FastAPI's middleware stack and router.
#
# It is a shortcut to the endpoint that FastAPI's routes lead to as well, so that without it everything works the same.
# It saves 25 to 60 µs of CPU a request: 3 to 6 % of a page of comments read from the table, 7 to 11 % of a leaderboard,
# a quarter of a page answered from memory. `python -m bench.fast_path` measures it.

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_HEADER = b"x-request-id"


class FastPath:
    """An ASGI application that hands POST requests for one path to their endpoint, and all others to `app`."""

    def __init__(self, app: ASGIApp, path: str, endpoint: ASGIApp) -> None:
        self._app = app
        self._path = path
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        posted = scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == self._path
        await (self._endpoint if posted else self._app)(scope, receive, send)


def with_request_ids(app: ASGIApp) -> ASGIApp:
    """Give each request an id, the caller's X-Request-ID if it is plain and short, and return it in the response."""

    async def identified(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == _HEADER), b"")
        id_ = given if _REQUEST_ID.fullmatch(given) else os.urandom(16).hex().encode()
        request_id.set(id_.decode())

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (_HEADER, id_)]
            await send(message)

        await app(scope, receive, send_with_id)

    return identified


# ── allowed hosts ──
# Refuses requests that name another host than this service's.
#
# A page of another site can let its own name point to this address (DNS rebinding), and then read the answers as if
# they were its own site's. What the service on a developer's machine holds must not be read that way, so on loopback
# the host is checked by default. Health checks and metrics are not checked: orchestrators ask by address.

UNCHECKED = frozenset({"/livez", "/readyz", "/metrics"})
_HOST = re.compile(r"(\[[^\]]*\]|[^:@\[\]]*)(?::[0-9]*)?")
"""A name or an address, which has brackets if it is IPv6, and perhaps a port."""


class AllowedHosts:
    """An ASGI application that hands requests for these hosts to `app`."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_allowed(scope) or scope["path"] in UNCHECKED:
            await self._app(scope, receive, send)
        else:
            message = "The request names another host. RINGSIDE_ALLOWED_HOSTS lists the service's."
            await messages.error_response(HTTPException(400, message))(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        """Whether each host named is allowed; a request without one comes from no browser."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        return all(_named_host(host) in self._hosts for host in hosts)


@messages.remembered(256)
def _named_host(value: bytes) -> str:
    """The host of a Host header, without its port; "" if it holds anything else, as in `localhost:80@evil.example`."""
    found = _HOST.fullmatch(value.decode("latin-1").lower())
    return found[1].rstrip(".") if found else ""


# ── foreign origins ──
# Logs pages of origins that are not listed: their browsers show only "Failed to fetch", or a closed socket. Opening
# a page or sending a form makes no script wait for an answer, and the forms of our own pages name the origin `null`.

_LINES_OF_EACH = "1/minute"
_LINES_OF_ALL = "10/minute"
"""In the log: whoever sends a request chooses its origin."""
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]{0,31}://[a-z0-9._:\[\]-]{1,255}|null", re.IGNORECASE)
_log = structlog.get_logger("ringside.origins")


class ForeignOrigins:
    """An ASGI application that hands everything to `app`, and logs origins that are neither listed nor its own."""

    def __init__(self, app: ASGIApp, listed: Sequence[str]) -> None:
        self._app = app
        self._listed = listed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            self._look_at(scope)
        await self._app(scope, receive, send)

    def _look_at(self, scope: Scope) -> None:
        origin, host = "", b""
        for name, value in scope["headers"]:
            if name == b"origin":
                origin = value.decode("latin-1")
            elif name == b"host":
                host = host or value
            elif name == b"sec-fetch-mode" and value == b"navigate":
                return
        own = addressed_origin(scope["scheme"], host.decode("latin-1"))
        services = scope["state"]["pipeline"].services
        if origin and not services.policy.admits_page(origin, own):
            with suppress(RateLimited):
                self._log(services.rates, origin if _ORIGIN.fullmatch(origin) else "(no origin)")

    def _log(self, rates: Rates, origin: str) -> None:
        rates.check(_LINES_OF_EACH, "origin", origin)
        rates.hit(_LINES_OF_ALL, "origins")
        rates.hit(_LINES_OF_EACH, "origin", origin)
        near = {"similar": similar} if (similar := _similar(origin, self._listed)) else {}
        advice = "a page of an origin that RINGSIDE_CORS_ORIGINS does not list may not read the answers"
        _log.warning(advice, origin=origin, **near)


def _similar(origin: str, listed: Sequence[str]) -> str | None:
    """The listed origin that differs in nothing but its scheme, its port or an alias of its host."""
    host = _host_of(origin)
    return next((each for each in listed if host and _host_of(each) == host), None)


def _host_of(origin: str) -> str:
    try:
        host = (urlsplit(origin).hostname or "").rstrip(".").removeprefix("www.")
    except ValueError:
        return ""
    return LOOPBACK[0] if host in (*LOOPBACK, "::1") else host


# ── Server-Sent Events ──
# The "distinct connections mode" of the GraphQL over SSE protocol.
#
# Each answer is an event `next`, the end of the operation an event `complete`. A comment every fifteen seconds keeps
# proxies from closing a stream without events. When the token of the request ends, the stream ends with an error
# NOT_SIGNED_IN. When the service closes, it ends without `complete`, so that clients connect again.

QUIET_SECONDS = 15.0
_QUIET = b":\n\n"
_COMPLETE = b"event: complete\ndata:\n\n"


def ended_stream(answer: Answer, set_cookie: str | None) -> Response:
    """The stream of an answer that no other follows.

    It counts towards no limit and does not end with the service: otherwise something carried out might go unanswered.
    """
    return StreamingResponse(_only(answer), headers=_headers(set_cookie))


def _headers(set_cookie: str | None) -> dict[str, str]:
    headers = {"cache-control": "no-store", "x-accel-buffering": "no", "content-type": messages.STREAM}
    return {**headers, "set-cookie": set_cookie} if set_cookie else headers


async def _only(answer: Answer) -> AsyncIterator[bytes]:
    yield _QUIET + _event(answer) + _COMPLETE


class EventStream(StreamingResponse):
    """The answers as a stream that ends with them, with the client, the credentials or the service.

    It counts towards the limit of its kind, and is refused above it.
    """

    def __init__(
        self,
        answers: AsyncGenerator[Answer, None],
        closing: asyncio.Event,
        set_cookie: str | None,
        credentials: Credentials,
        place: AbstractContextManager[None],
    ) -> None:
        super().__init__(_events(answers, closing, credentials), headers=_headers(set_cookie))
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as stack:
            try:
                stack.enter_context(self._place)
            except Overloaded:
                await messages.error_response(messages.overloaded())(scope, receive, send)
            else:
                await super().__call__(scope, receive, send)


async def _events(
    answers: AsyncGenerator[Answer, None], closing: asyncio.Event, credentials: Credentials
) -> AsyncIterator[bytes]:
    yield _QUIET
    lapse = asyncio.ensure_future(credentials.lapse())
    try:
        async for answer in until_closing(closing, answers, QUIET_SECONDS, lapse):
            yield _QUIET if answer is None else _event(answer)
        if lapse.done():
            yield _event(_signed_out(lapse.result()))
    finally:
        lapse.cancel()
    if not closing.is_set():
        yield _COMPLETE


def _signed_out(reason: str) -> Answer:
    advice = "Ask again." if reason == CHANGED else "Ask again with a new token."
    refused = NotSignedIn(f"The stream ended: {reason.removesuffix('.')}. {advice}")
    return Answer.not_executed(GraphQLError(refused.message, original_error=refused))


def _event(answer: Answer) -> bytes:
    """An event. A client that reconnects sends its id back as Last-Event-ID."""
    event_id = f"id: {answer.event_id}\n".encode() if answer.event_id else b""
    return b"event: next\n" + event_id + b"data: " + encode_json(answer.body()) + b"\n\n"


async def until_closing(
    closing: asyncio.Event,
    answers: AsyncGenerator[Answer, None],
    quiet_seconds: float | None = None,
    lapse: asyncio.Future[str] | None = None,
) -> AsyncIterator[Answer | None]:
    """The answers until they or the credentials end or the service closes; None after `quiet_seconds` without one."""
    closed: asyncio.Future[Any] = asyncio.ensure_future(closing.wait())
    following: asyncio.Future[Any] = asyncio.ensure_future(anext(answers))
    try:
        while True:
            futures = {closed, following, *((lapse,) if lapse else ())}
            done, _ = await asyncio.wait(futures, timeout=quiet_seconds, return_when=asyncio.FIRST_COMPLETED)
            if closed in done or lapse in done:
                return
            if not done:
                yield None
                continue
            try:
                yield following.result()
            except StopAsyncIteration:
                return
            following = asyncio.ensure_future(anext(answers))
    finally:
        closed.cancel()
        following.cancel()
        await asyncio.gather(closed, following, return_exceptions=True)
        await answers.aclose()
