"""/member-export: the link to a member's file. It is good once, within an hour after its job is done.

| answer | when                                                                 |
|--------|----------------------------------------------------------------------|
| 200    | the file, as JSON Lines; the link ends with the last byte            |
| 400    | the link was altered                                                 |
| 410    | the file was fetched before, an hour has passed, or the job failed   |
| 425    | the job is not done yet: `Retry-After` says when to ask again        |
| 503    | the table does not answer                                            |
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from datastore.dynamo import DynamoError, deadline
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import JobState
from datastore.members import exports as export_store
from datastore.members.exports import Export
from datastore.values.seal import Forged
from resolvers.requests.context import Services
from resolvers.whole.exporting import PURPOSE
from server.http.messages import SECURITY_HEADERS

TIMEOUT = 10.0
_RETRY_SECONDS = 3
_HEADERS = {**SECURITY_HEADERS, "cache-control": "no-store"}
_log = structlog.get_logger("ringside.members")


async def member_export(request: Request) -> Response:
    """The file of a sealed link."""
    services: Services = request.state.services
    try:
        job_id = services.seal.open_text(PURPOSE, request.query_params.get("token", "")).decode()
    except Forged:
        return _refused(400, "This link is not complete. Copy the whole link.")
    try:
        with deadline(TIMEOUT):
            job = await job_store.read_job(services.table, job_id)
            export = await export_store.read_export(services.table, job_id)
    except DynamoError:
        return _refused(503, "The service is busy. Try again in a minute.", _RETRY_SECONDS)
    if export is not None and export.expires > services.clock():
        headers = {**_HEADERS, "content-disposition": 'attachment; filename="member.jsonl"'}
        if request.method == "HEAD":  # it fetches nothing, so the link stays good
            return Response(headers=headers, media_type="application/jsonl")
        return StreamingResponse(_content(services, export), headers=headers, media_type="application/jsonl")
    if job is not None and job.state is JobState.RUNNING:
        return _refused(425, "The file is still being written.", _RETRY_SECONDS)
    return _refused(410, "This file was fetched before, or its hour has passed. Ask for a new one.")


async def _content(services: Services, export: Export) -> AsyncIterator[bytes]:
    """The pieces; after the last one the link ends."""
    async for piece in export_store.read_pieces(services.table, export):
        yield piece
    try:
        await export_store.end_link(services.table, export)
    except DynamoError as error:
        _log.warning("a fetched file was not removed; it expires within the hour", reason=str(error))


def _refused(status: int, text: str, retry_after: int | None = None) -> Response:
    headers = dict(_HEADERS) if retry_after is None else {**_HEADERS, "retry-after": str(retry_after)}
    return PlainTextResponse(f"{text}\n", status, headers)
