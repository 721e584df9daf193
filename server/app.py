"""The ASGI application: what a process needs, in the order it is opened, and its routes.

table ── checked ── house ── gate ──┬── /graphql     POST, GET, SSE, WebSocket, the explorer
                                    ├── /            the voting page, in demo mode
                                    ├── /livez       the process runs
                                    ├── /readyz      the table answers
                                    ├── /unsubscribe the link in a mail
                                    └── /metrics     Prometheus
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import FrameType
from typing import TypeAlias

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from datastore.dynamo import DynamoError, Rejected, Table, deadline, open_table
from datastore.dynamo.declaration import differences, refuses_transactions
from resolvers.context import Services
from resolvers.policy import Policy
from schema import schema
from server.auth.identification import Identification
from server.execution.documents import Documents, read_manifest
from server.gc_tuning import set_aside
from server.http import voting_page as booth
from server.http.explorer import Explorer
from server.http.pipeline import GraphQL, Pipeline
from server.http.request import Headers, headers_of
from server.http.websocket import Sockets
from server.mail.unsubscribe import UnsubscribeEndpoint
from server.settings import AWS, BadSettings, Introspection, Settings
from server.telemetry import Metrics, configure_logging, open_traces, with_request_ids

_log = structlog.get_logger("ringside.app")

READINESS_SECONDS = 2.0
START_SECONDS = 10.0


class Unfit(Exception):
    """The engine or its table cannot serve; the message says why and what to do."""


Direct: TypeAlias = Callable[[Scope, Headers, Receive, Send], Awaitable[None]]


class Ringside(FastAPI):
    """FastAPI, and before it a way of its own for nearly every request: a POST to /graphql.

    The way through FastAPI's middlewares, router and exit stack takes longer than answering a page from memory. Pages
    of other origins go through it all the same, since their browsers want the headers of CORS.
    """

    direct: Direct | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.direct is not None and scope["type"] == "http" and scope["method"] == "POST":
            headers = headers_of(scope)
            if scope["path"] == "/graphql" and b"origin" not in headers:
                await self.direct(scope, headers, receive, send)
                return
        await super().__call__(scope, receive, send)


def application(settings: Settings, table: Table | None = None) -> Ringside:
    """The service for these settings. Its table must be there: `ringside serve` and `ringside table create` make it.

    A table that is given was opened and checked by whoever gives it, and is closed there.
    """
    if settings.embedded:
        message = (
            "An application needs the address of an engine; `ringside serve` starts the embedded one and gives its."
        )
        raise BadSettings(message)
    configure_logging(settings.log)
    manifest = read_manifest(settings.trusted_documents) if settings.trusted_documents else None
    documents = Documents(schema._schema, manifest=manifest)  # noqa: SLF001 - Strawberry keeps graphql-core's schema there

    metrics = Metrics(documents.trusted_names)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            ours = await stack.enter_async_context(_checked(settings)) if table is None else table
            seal = settings.seal()
            identification = Identification(settings, seal)
            stack.push_async_callback(identification.close)
            services = app.state.services = Services(ours, seal, policy_of(settings))
            stack.push_async_callback(services.close)
            metrics.watch_loads(services.loaders.loads)
            traces = open_traces(settings.otlp_endpoint)
            stack.push_async_callback(traces.close)
            pipeline = Pipeline(
                schema._schema,  # noqa: SLF001
                documents,
                services,
                identification,
                settings,
                metrics,
                traces,
                app.state.closing,
            )
            explorer = Explorer()
            graphql = GraphQL(pipeline, explorer)
            ringside.direct = graphql.direct
            app.router.routes.extend(
                [
                    Route("/graphql", graphql),
                    WebSocketRoute("/graphql", Sockets(pipeline).endpoint),
                    Route("/readyz", Readiness(ours).endpoint),
                    Route("/unsubscribe", UnsubscribeEndpoint(services).endpoint, methods=["GET", "POST"]),
                    explorer.mount(),
                ]
            )
            if settings.demo:
                app.router.routes.extend(booth.routes())
            _close_at_signals(app.state.closing)
            yield
            app.state.closing.set()

    app = ringside = Ringside(title="Ringside", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.closing = asyncio.Event()
    app.add_route("/livez", lambda _: JSONResponse({"status": "alive"}))
    app.add_route("/metrics", lambda request: _exposition(metrics, request))
    app.add_middleware(with_request_ids)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
            allow_credentials=True,
            max_age=600,
        )
    return app


def _close_at_signals(closing: asyncio.Event) -> None:
    """Tells streams and sockets at the first signal: the server waits for them before it ends the lifespan."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        servers_own = signal.getsignal(number)

        def handle(signum: int, frame: FrameType | None, then: object = servers_own) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(closing.set)
            if callable(then):
                then(signum, frame)

        signal.signal(number, handle)


def _exposition(metrics: Metrics, request: Request) -> Response:
    body, content_type = metrics.render(request.headers.get("accept", ""))
    return Response(body, headers={"content-type": content_type})


def from_environment() -> Ringside:
    """For uvicorn's workers, which read the environment that `ringside serve` prepared."""
    app = application(Settings.load())
    set_aside()
    return app


def policy_of(settings: Settings) -> Policy:
    """The community's rules as the operator set them."""
    return Policy(
        development=settings.introspection is Introspection.ON,
        comment_rate=settings.comment_rate,
        premoderation=settings.premoderation,
        ballot_seconds=settings.ballot_hours * 3600,
        votes_per_visitor=settings.votes_per_visitor,
        votes_per_address=settings.votes_per_address,
        day_begins_at=settings.day_begins_at,
    )


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Table]:
    """The table that the settings name, not yet looked at."""
    url = None if settings.dynamodb_url == AWS else settings.dynamodb_url
    async with open_table(settings.table, url=url, region=settings.aws_region) as table:
        yield table


@asynccontextmanager
async def _checked(settings: Settings) -> AsyncIterator[Table]:
    async with open_engine(settings) as table:
        await check(table)
        yield table


async def check(table: Table) -> None:
    """Unfit, with the reason, unless the engine and the table can serve."""
    try:
        with deadline(START_SECONDS):
            wrong = differences(await table.describe())
            if wrong:
                message = (
                    f"The table {table.name} is not ours: {'; '.join(wrong)}. "
                    "Name another one with RINGSIDE_TABLE; `ringside table create` makes it."
                )
                raise Unfit(message)
            if reason := await refuses_transactions(table):
                message = (
                    f"This engine has no transactions, which votes, predictions and counts need: {reason}. "
                    "Use DynamoDB, DynamoDB Local or the embedded engine."
                )
                raise Unfit(message)
    except Rejected as refused:
        message = f"The table {table.name} cannot be used: {refused}. `ringside table create` makes it."
        raise Unfit(message) from None
    except DynamoError as error:
        message = f"The engine did not answer within {START_SECONDS:.0f} s: {error}. Is RINGSIDE_DYNAMODB_URL right?"
        raise Unfit(message) from None


class Readiness:
    """Whether the table answers; asked at most every two seconds, however often orchestrators ask."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known_until = 0.0
        self._state: tuple[int, Mapping[str, str]] = (503, {})
        self._lock = asyncio.Lock()

    async def endpoint(self, _: object) -> JSONResponse:
        async with self._lock:
            if time.monotonic() > self._known_until:
                self._state = await self._looked()
                self._known_until = time.monotonic() + READINESS_SECONDS
        status, body = self._state
        return JSONResponse(dict(body), status)

    async def _looked(self) -> tuple[int, Mapping[str, str]]:
        try:
            with deadline(READINESS_SECONDS):
                status = (await self._table.describe())["TableStatus"]
        except DynamoError as error:
            return 503, {"status": "unready", "reason": f"the table does not answer: {type(error).__name__}"}
        if status not in ("ACTIVE", "UPDATING"):
            return 503, {"status": "unready", "reason": f"the table is {status}"}
        return 200, {"status": "ready"}
