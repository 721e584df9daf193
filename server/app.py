"""The ASGI application: a composition of layers, from the outside in, and the services that its lifespan opens.

request ids ─ hosts ─ origins ─ CORS ─ fast path
  ├─ /graphql       POST
  └─ gzip ─ FastAPI ─┬─ /graphql       GET, WebSocket; the explorer for a browser
                     ├─ /explorer      the explorer's files
                     ├─ /elements.js   the elements' script, and its parts
                     ├─ /              the front page of elements, or what this is
                     ├─ /livez         the process runs
                     ├─ /readyz        the table answers
                     ├─ /sign-in       the page on which people sign in
                     ├─ /admin         the pages for members with a role
                     ├─ /products      a product's ratings for search engines
                     ├─ /member-export the link to a member's file
                     ├─ /confirm       the link in an email that asks for it
                     ├─ /unsubscribe   the link in an email
                     └─ /metrics       Prometheus

The lifespan opens the table, the services and the pipeline; requests find them in their ASGI state.
"""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from types import FrameType
from typing import Any, Final

import structlog
from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from datastore.changes.revisions import Watched
from datastore.dynamo import DynamoError, Table, deadline
from datastore.voting.boards import ensure_main
from resolvers.comments.holding import Holding
from resolvers.comments.proofs import Proofs
from resolvers.jobs.running import JobRunner
from resolvers.journal.usage import UsageReports
from resolvers.live.background import LONGEST_WAIT, Repeated, uneven
from resolvers.live.watch import Refresh, Watch
from resolvers.members.sign_in_codes import PATH as SIGN_IN_PATH
from resolvers.members.suspensions import Suspensions
from resolvers.people.confirmations import PATH as CONFIRM_PATH
from resolvers.requests.context import Services
from resolvers.whole.exporting import PATH as EXPORT_PATH
from resolvers.whole.jobs import JOB_KINDS
from server.auth.identification import Identification
from server.auth.tokens import ProofReader
from server.engine import backup_figures
from server.engine.table import START_SECONDS, not_answered, open_checked_table
from server.execution.documents import Documents
from server.http.browser_pages import AdminPages, Elements, Explorer, front_page_routes, home
from server.http.endpoint import AllowedHosts, FastPath, ForeignOrigins, GraphQLEndpoint, with_request_ids
from server.http.hosts import ANY, public_host
from server.http.messages import GZIP_LEVEL, GZIP_MIN_BYTES, accepts_gzip, outside_graphql
from server.http.pipeline import Pipeline, Quota, most_of_address
from server.http.plain_routes import Readiness, alive, as_written, member_export, product_jsonld
from server.http.process import end_with_parent, tune_process
from server.http.protocol import most_connections
from server.http.sign_in import SignInPage, page_documents
from server.http.websocket import serve_socket
from server.mail.pages import confirm, unsubscribe
from server.mail.requested import send_requested_emails
from server.mail.runs import email_schedules
from server.settings import BadSettings, Settings, is_embedded
from server.telemetry import Metrics, Traces, configure_logging
from server.webhooks import Deliverer, open_sender

_DAY: Final = timedelta(days=1)
_log = structlog.get_logger("ringside.engine")


def application(settings: Settings, table: Table | None = None) -> ASGIApp:
    """The service with these settings. Its table must exist: `ringside serve` and `ringside table create` create it.

    A table that is passed in has been opened and checked by the caller, who also closes it.
    """
    if settings.embedded:
        raise BadSettings(
            "An application needs the address of an engine; `ringside serve` starts the embedded one and gives its."
        )
    configure_logging(settings.log)
    elements = Elements()
    documents = Documents.of(settings, settings.trusted_documents, {**elements.documents(), **page_documents()})
    hours = settings.backup_hours
    backups = (lambda: {**backup_figures(settings.data), "period": hours * 3600}) if hours is not None else None
    metrics = Metrics(documents.trusted_names, backups)
    explorer = Explorer()
    graphql = GraphQLEndpoint(explorer)
    fastapi = FastAPI(
        title="Ringside",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,  # it would redirect to whatever host the request names
        lifespan=lambda _: _opened(settings, documents, metrics, table),
        routes=_routes(settings, graphql, explorer, elements, metrics),
        exception_handlers={HTTPException: outside_graphql},
    )
    pages = _compressed(fastapi)
    app: ASGIApp = FastPath(pages, "/graphql", graphql)
    if settings.cors_origins:
        app = _ListedOrigins(
            app,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "last-event-id", "traceparent", "x-request-id"],
            expose_headers=["retry-after", "x-request-id"],
            allow_credentials=True,
            max_age=600,
        )
    app = ForeignOrigins(app, settings.cors_origins)
    if settings.allowed_hosts and ANY not in settings.allowed_hosts:
        app = AllowedHosts(app, (*settings.allowed_hosts, *public_host(settings.public_url)))
    return with_request_ids(app)


class _ListedOrigins(CORSMiddleware):
    """Lets pages of listed origins ask. What pages of every origin may read stays the same for theirs.

    Shared caches keep it, and some of them give one site's copy to another, whatever its `Vary` says.
    """

    @staticmethod
    def allow_explicit_origin(headers: MutableHeaders, origin: str) -> None:
        if headers.get("access-control-allow-origin") != "*":
            CORSMiddleware.allow_explicit_origin(headers, origin)


def _compressed(app: ASGIApp) -> ASGIApp:
    """Compresses for clients that accept it; Starlette's middleware alone also for those that refuse it."""
    compressing = GZipMiddleware(app, GZIP_MIN_BYTES, GZIP_LEVEL)

    async def pages(scope: Scope, receive: Receive, send: Send) -> None:
        accepted = b",".join(value for name, value in scope.get("headers", ()) if name == b"accept-encoding")
        await (compressing if accepts_gzip(accepted) else app)(scope, receive, send)

    return pages


def _routes(
    settings: Settings, graphql: GraphQLEndpoint, explorer: Explorer, elements: Elements, metrics: Metrics
) -> list[BaseRoute]:
    async def exposition(request: Request) -> Response:
        metrics.settle()
        body, content_type = await asyncio.to_thread(metrics.render, request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    return [
        Route("/graphql", graphql),
        WebSocketRoute("/graphql", serve_socket),
        *explorer.routes(),
        *elements.routes(),
        Route("/livez", alive),
        Route("/readyz", as_written(Readiness(probe_writes=is_embedded(settings.dynamodb_url)).endpoint)),
        Route("/metrics", as_written(exposition)),
        *SignInPage(settings).routes(),
        *AdminPages(settings).routes(),
        Route(EXPORT_PATH, member_export),
        Route("/products/{product:path}.jsonld", product_jsonld),
        Route(CONFIRM_PATH, confirm, methods=["GET", "POST"]),
        Route("/unsubscribe", unsubscribe, methods=["GET", "POST"]),
        *(front_page_routes(settings) or [Route("/", home)]),
    ]


@asynccontextmanager
async def _opened(
    settings: Settings, documents: Documents, metrics: Metrics, table: Table | None
) -> AsyncIterator[dict[str, Any]]:
    """The ASGI state of requests, as long as the service runs."""
    async with AsyncExitStack() as stack:
        traces = Traces(settings.otlp_endpoint) if settings.otlp_endpoint else None
        if traces:  # which end last: a collector that does not answer would take the time of all others
            stack.push_async_callback(traces.close)
        if table is None:
            table = await stack.enter_async_context(open_checked_table(settings))
        services = Services(table, settings.seal(), settings.policy())
        stack.push_async_callback(services.close)
        await _prepare(services)
        send_requested_emails(settings, services)
        if settings.proof_keys:
            proofs = ProofReader(settings)
            stack.push_async_callback(proofs.close)
            services.get(Proofs).start(proofs.read)
        services.get(JobRunner).start(JOB_KINDS)
        deliverer = Deliverer(services, await stack.enter_async_context(open_sender(settings.webhook_networks)))
        identification = Identification(settings, services)
        stack.push_async_callback(identification.close)
        metrics.watch_loads(services.cache.loads)
        usage = UsageReports(services, metrics.take_figures)
        schedules = (*email_schedules(settings, services), *_removals(settings, services))
        for repeated in (deliverer, _watch(services, deliverer), usage, *schedules):
            stack.push_async_callback(repeated.close)
            repeated.start()
        closing = asyncio.Event()
        _set_at_signals(closing)
        quotas = _quotas(settings)
        pipeline = Pipeline(documents, services, identification, settings, metrics, traces, *quotas, closing)
        oidc_client = None
        if settings.oidc_client_id is not None:
            from server.auth.oidc_client import OidcClient  # noqa: PLC0415 - it needs the memory of server.auth.tokens

            redirect = f"{settings.public_url}{SIGN_IN_PATH}/callback"
            oidc_client = OidcClient(settings, redirect, services.cache)
            stack.push_async_callback(oidc_client.close)
        yield {"pipeline": pipeline, "services": services, "oidc_client": oidc_client}
        closing.set()
        with deadline(LONGEST_WAIT):  # a table that does not answer must not keep the process
            await stack.aclose()


def _quotas(settings: Settings) -> tuple[Quota, Quota, Quota]:
    """Of requests, of streams and of subscriptions."""
    most = most_connections(settings) // 2  # the other half is for requests
    return (
        Quota("requests", settings.max_in_flight, most_of_address(settings.max_in_flight)),
        Quota("sockets and streams", min(settings.max_streams, most), settings.streams_per_address),
        Quota("subscriptions", settings.max_subscriptions, settings.subscriptions_per_address),
    )


def _watch(services: Services, deliverer: Deliverer) -> Watch:
    refreshes: dict[Watched, Refresh] = {
        "rights": services.get(Suspensions).refresh,
        "hold_rules": services.get(Holding).refresh,
        "webhooks": deliverer.acquire_free,
    }
    return Watch(services.table, services.journal, refreshes)


def _removals(settings: Settings, services: Services) -> Sequence[Repeated]:
    """Of what has expired: DynamoDB removes it within two days, and the embedded engine never does.

    A day late, so that a clock that is a little ahead ends nothing.
    """
    if not is_embedded(settings.dynamodb_url):
        return ()

    async def remove() -> None:
        if removed := await services.table.remove_expired(services.clock() - _DAY):
            _log.info("what had expired was removed", items=removed)

    return (Repeated(remove, lambda: uneven(_DAY.total_seconds()), "what has expired could not be removed", _log),)


def _set_at_signals(closing: asyncio.Event) -> None:
    """Set the event at the first signal: the server waits for streams and sockets before it ends the lifespan."""
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
    end_with_parent()
    tune_process()
    return app


async def _prepare(services: Services) -> None:
    """Learn the webhooks, who is suspended and who has which role, and create the board `main` at the first start.

    Webhooks are learned before anything is recorded: by a job or a query too, and only mutations check whether they are
    known.
    """
    try:
        with deadline(START_SECONDS):
            await services.journal.learn(services.table)
            await services.get(Suspensions).refresh()
            await ensure_main(services.table, services.clock())
    except DynamoError as error:
        raise not_answered(services.table, error) from None
