"""The ASGI application: a composition of layers, from the outside in, and the services that its lifespan opens.

request ids ─ CORS ─ fast path ─┬─ /graphql       POST
                                └─ FastAPI ─┬──── /graphql       GET, WebSocket; the explorer for a browser
                                            ├──── /explorer      the explorer's files
                                            ├──── /              the voting page, in demo mode
                                            ├──── /livez         the process runs
                                            ├──── /readyz        the table answers
                                            ├──── /unsubscribe   the link in an email
                                            └──── /metrics       Prometheus

The lifespan opens the table, the services and the pipeline; requests find them in their ASGI state.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import FrameType
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp

from datastore.dynamo import DynamoError, Rejected, Table, deadline, open_table
from datastore.dynamo.declaration import differences, refuses_transactions
from resolvers.context import Services
from resolvers.policy import Policy
from schema import schema
from server.auth.identification import Identification
from server.execution.documents import Documents, read_manifest
from server.gc_tuning import tune_gc
from server.http import voting_page
from server.http.endpoint import GraphQLEndpoint
from server.http.explorer import Explorer
from server.http.fast_path import FastPath
from server.http.health import Readiness, alive
from server.http.pipeline import Pipeline
from server.http.websocket import serve_socket
from server.mail.unsubscribe import unsubscribe
from server.settings import AWS, BadSettings, Settings
from server.telemetry import Metrics, configure_logging, open_traces, with_request_ids

START_SECONDS = 10.0


class UnusableTable(Exception):
    """The engine or its table cannot be used; the message says why and what to do."""


def application(settings: Settings, table: Table | None = None) -> ASGIApp:
    """The service with these settings. Its table must exist: `ringside serve` and `ringside table create` create it.

    A table that is passed in has been opened and checked by the caller, who also closes it.
    """
    if settings.embedded:
        raise BadSettings(
            "An application needs the address of an engine; `ringside serve` starts the embedded one and gives its."
        )
    configure_logging(settings.log)
    manifest = read_manifest(settings.trusted_documents) if settings.trusted_documents else None
    documents = Documents(schema._schema, manifest=manifest)  # noqa: SLF001 - Strawberry keeps graphql-core's schema there
    metrics = Metrics(documents.trusted_names)
    explorer = Explorer()
    graphql = GraphQLEndpoint(explorer)
    fastapi = FastAPI(
        title="Ringside",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lambda _: _opened(settings, documents, metrics, table),
        routes=_routes(settings, graphql, explorer, metrics),
    )
    app: ASGIApp = FastPath(fastapi, "/graphql", graphql)
    if settings.cors_origins:
        app = CORSMiddleware(
            app,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
            allow_credentials=True,
            max_age=600,
        )
    return with_request_ids(app)


def _routes(settings: Settings, graphql: GraphQLEndpoint, explorer: Explorer, metrics: Metrics) -> list[BaseRoute]:
    def exposition(request: Request) -> Response:
        body, content_type = metrics.render(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    return [
        Route("/graphql", graphql),
        WebSocketRoute("/graphql", serve_socket),
        explorer.mount(),
        Route("/livez", alive),
        Route("/readyz", Readiness().endpoint),
        Route("/metrics", exposition),
        Route("/unsubscribe", unsubscribe, methods=["GET", "POST"]),
        *(voting_page.routes() if settings.demo else ()),
    ]


@asynccontextmanager
async def _opened(
    settings: Settings, documents: Documents, metrics: Metrics, table: Table | None
) -> AsyncIterator[dict[str, Any]]:
    """The ASGI state of requests, as long as the service runs."""
    async with AsyncExitStack() as stack:
        if table is None:
            table = await stack.enter_async_context(_checked_table(settings))
        seal = settings.seal()
        identification = Identification(settings, seal)
        stack.push_async_callback(identification.close)
        services = Services(table, seal, policy(settings))
        stack.push_async_callback(services.close)
        metrics.watch_loads(services.loaders.loads)
        traces = open_traces(settings.otlp_endpoint)
        if traces:
            stack.push_async_callback(traces.close)
        closing = asyncio.Event()
        _set_at_signals(closing)
        pipeline = Pipeline(documents, services, identification, settings, metrics, traces, closing)
        yield {"pipeline": pipeline, "services": services}
        closing.set()


def _set_at_signals(closing: asyncio.Event) -> None:
    """Sets the event at the first signal: the server waits for streams and sockets before it ends the lifespan."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        server_handler = signal.getsignal(number)

        def handle(signum: int, frame: FrameType | None, server_handler: object = server_handler) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(closing.set)
            if callable(server_handler):
                server_handler(signum, frame)

        signal.signal(number, handle)


def from_environment() -> ASGIApp:
    """The application for uvicorn's workers, which read the environment that `ringside serve` prepared."""
    app = application(Settings.load())
    tune_gc()
    return app


def policy(settings: Settings) -> Policy:
    """The rules that the operator set."""
    return Policy(
        comment_rate=settings.comment_rate,
        premoderation=settings.premoderation,
        ballot_seconds=settings.ballot_hours * 3600,
        votes_per_visitor=settings.votes_per_visitor,
        votes_per_address=settings.votes_per_address,
        day_begins_at=settings.day_begins_at,
    )


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Table]:
    """The table that the settings name, not checked yet."""
    url = None if settings.dynamodb_url == AWS else settings.dynamodb_url
    async with open_table(settings.table, url=url, region=settings.aws_region) as table:
        yield table


@asynccontextmanager
async def _checked_table(settings: Settings) -> AsyncIterator[Table]:
    async with open_engine(settings) as table:
        await validate_table(table)
        yield table


async def validate_table(table: Table) -> None:
    """UnusableTable, with the reason, unless the engine and the table fit the service."""
    try:
        with deadline(START_SECONDS):
            wrong = differences(await table.describe())
            if wrong:
                raise UnusableTable(
                    f"The table {table.name} is not ours: {'; '.join(wrong)}. "
                    "Name another one with RINGSIDE_TABLE; `ringside table create` makes it."
                )
            if reason := await refuses_transactions(table):
                raise UnusableTable(
                    f"This engine has no transactions, which votes, predictions and counts need: {reason}. "
                    "Use DynamoDB, DynamoDB Local or the embedded engine."
                )
    except Rejected as error:
        raise UnusableTable(
            f"The table {table.name} cannot be used: {error}. `ringside table create` makes it."
        ) from None
    except DynamoError as error:
        raise UnusableTable(
            f"The engine did not answer within {START_SECONDS:.0f} s: {error}. Is RINGSIDE_DYNAMODB_URL right?"
        ) from None
