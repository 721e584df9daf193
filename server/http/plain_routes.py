"""The addresses that answer outside GraphQL: health checks, a member's file, and a product's ratings."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from hashlib import sha256
from http import HTTPStatus
from typing import Final

import orjson
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from datastore.dynamo import DynamoError, Rejected, StorageFailed, Table, deadline
from datastore.dynamo.declaration import probe_write
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import JobState
from datastore.members import exports as export_store
from datastore.members.exports import Export
from datastore.refusals import InvalidInput, Overloaded
from datastore.values.seal import Forged
from resolvers.comments.structured_data import product_data
from resolvers.requests.context import Context
from resolvers.whole.exporting import PURPOSE
from server.http.messages import SECURITY_HEADERS, client_address
from server.http.pipeline import Pipeline
from server.telemetry import Outcome

# ── what proxies hide ──
# Load balancers may compare a path as the client has sent it, and the service routes by what it means.


def as_written(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Answer at its path alone, and not at one like /%6Detrics."""

    async def answer(request: Request) -> Response:
        path = request.scope["path"].encode()
        if request.scope.get("raw_path", path) != path:
            raise HTTPException(404)
        return await endpoint(request)

    return answer


# ── health ──
# /livez says that the process runs, /readyz that the table answers.
#
# With the embedded engine, whose disk can be full, /readyz also writes an item of 64 KB and removes it. On DynamoDB it
# only reads the table's status: throttled writes pass, and removing the process from service would make them worse.
#
# A failed check counts in the metrics like a request: where unready processes get no requests any more, nothing else
# tells the alert that the table does not answer.

READINESS_SECONDS = 2.0


async def alive(_: Request) -> JSONResponse:
    return JSONResponse({"status": "alive"})


class Readiness:
    """Whether the table answers, checked at most every two seconds however often orchestrators ask."""

    def __init__(self, *, probe_writes: bool) -> None:
        self._probe_writes = probe_writes
        self._checked_until = 0.0
        self._status: tuple[int, Mapping[str, str]] = (503, {})
        self._lock = asyncio.Lock()

    async def endpoint(self, request: Request) -> JSONResponse:
        async with self._lock:
            if time.monotonic() > self._checked_until:
                pipeline: Pipeline = request.state.pipeline
                self._status = await _check(pipeline.services.table, probe_writes=self._probe_writes)
                self._checked_until = time.monotonic() + READINESS_SECONDS
                if self._status[0] != HTTPStatus.OK:
                    pipeline.metrics.finished(None, Outcome.UNAVAILABLE, 0.0)
        status, body = self._status
        return JSONResponse(dict(body), status)


async def _check(table: Table, *, probe_writes: bool) -> tuple[int, Mapping[str, str]]:
    try:
        with deadline(READINESS_SECONDS):
            status = (await table.describe())["TableStatus"]
            if probe_writes:
                await probe_write(table)
    except StorageFailed as error:
        return 503, {"status": "unready", "reason": f"the table cannot be written: {error}"}
    except DynamoError as error:
        reason = error.code if isinstance(error, Rejected) else error  # a refusal's text may name the account
        return 503, {"status": "unready", "reason": f"the table does not answer: {reason}"}
    if status not in ("ACTIVE", "UPDATING"):
        return 503, {"status": "unready", "reason": f"the table is {status}"}
    return 200, {"status": "ready"}


# ── member export ──
# /member-export: the link to a member's file. It is good once, within an hour after its job is done.
#
# | answer | when                                                                 |
# |--------|----------------------------------------------------------------------|
# | 200    | the file, as JSON Lines; the link ends with the last byte            |
# | 400    | the link was altered                                                 |
# | 410    | the file was fetched before, an hour has passed, or the job failed   |
# | 425    | the job is not done yet: `Retry-After` says when to ask again        |
# | 503    | the service is busy, or its table does not answer                    |

_RETRY_SECONDS = 3
_EXPORT_HEADERS = {**SECURITY_HEADERS, "cache-control": "no-store"}
_log = structlog.get_logger("ringside.members")


async def member_export(request: Request) -> Response:
    """The file of a sealed link."""
    pipeline: Pipeline = request.state.pipeline
    services = pipeline.services
    try:
        job_id = services.seal.open_text(PURPOSE, request.query_params.get("token", "")).decode()
    except Forged:
        return _refused(400, "This link is not complete. Copy the whole link.")
    try:
        async with pipeline.plain_request(client_address(request.scope)) as ctx:
            # The file counts as a stream. Whether there is room for it is known before its headers are sent.
            with pipeline.kept_open(pipeline.streams, ctx.address):
                job = await job_store.read_job(ctx.table, job_id)
                export = await export_store.read_export(ctx.table, job_id)
    except (Overloaded, DynamoError):
        return _refused(503, "The service is busy. Try again in a minute.", _RETRY_SECONDS)
    if export is not None and export.expires > services.clock():
        headers = {**_EXPORT_HEADERS, "content-disposition": 'attachment; filename="member.jsonl"'}
        if request.method == "HEAD":  # it fetches nothing, so the link stays good
            return Response(headers=headers, media_type="application/jsonl")
        return StreamingResponse(_content(pipeline, ctx, export), headers=headers, media_type="application/jsonl")
    if job is not None and job.state is JobState.RUNNING:
        return _refused(425, "The file is still being written.", _RETRY_SECONDS)
    return _refused(410, "This file was fetched before, or its hour has passed. Ask for a new one.")


async def _content(pipeline: Pipeline, ctx: Context, export: Export) -> AsyncIterator[bytes]:
    """The pieces; after the last one the link ends. Each is read within a deadline of its own."""
    with pipeline.kept_open(pipeline.streams, ctx.address):  # a slow client holds a piece
        for number in range(export.pieces):
            with pipeline.budget(ctx):
                piece = await export_store.read_piece(ctx.table, export, number)
            yield piece
    try:
        with pipeline.budget(ctx):
            await export_store.end_link(ctx.table, export)
    except DynamoError as error:
        _log.warning("a fetched file was not removed; it expires within the hour", reason=str(error))


def _refused(status: int, text: str, retry_after: int | None = None) -> Response:
    headers = dict(_EXPORT_HEADERS) if retry_after is None else {**_EXPORT_HEADERS, "retry-after": str(retry_after)}
    return PlainTextResponse(f"{text}\n", status, headers)


# ── product data ──
# GET /products/<id>.jsonld: a product's ratings for search engines, to be put into the shop's page by its server.
#
# | answer | when                                                                                |
# |--------|-------------------------------------------------------------------------------------|
# | 200    | the JSON-LD, for pages of every origin, the same for everybody                      |
# | 304    | it has not changed since the client read it                                         |
# | 400    | no product can have this id                                                         |
# | 404    | the product has no rated comments                                                   |
# | 503    | the service is busy or its table does not answer: `Retry-After` says when to ask again |
#
# All but the 503 may be kept for a minute, by shared caches too.

_DATA_HEADERS: Final = {
    **SECURITY_HEADERS,
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": "public, max-age=60",
}
# Pages put the text between script tags, where no `<` may stand.
_ESCAPED: Final = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}


async def product_jsonld(request: Request) -> Response:
    pipeline: Pipeline = request.state.pipeline
    try:
        async with pipeline.plain_request(client_address(request.scope)) as ctx:
            data = await product_data(ctx, request.path_params["product"])
    except InvalidInput as refused:
        return PlainTextResponse(f"{refused.message}\n", 400, _DATA_HEADERS)
    except (Overloaded, DynamoError):
        # A shared cache would go on telling everybody after the service is free again.
        busy = {**_DATA_HEADERS, "Cache-Control": "no-store", "Retry-After": "1"}
        return PlainTextResponse("The service is busy.\n", 503, busy)
    if data is None:
        return PlainTextResponse("This product has no rated comments.\n", 404, _DATA_HEADERS)
    body = orjson.dumps(data)
    for character, escape in _ESCAPED.items():
        body = body.replace(character, escape)
    headers = {**_DATA_HEADERS, "ETag": f'"{sha256(body).hexdigest()[:32]}"'}
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if headers["ETag"] in known:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/ld+json")
