"""Health checks for orchestrators: /livez says that the process runs, /readyz that the table answers.

With the embedded engine, whose disk can be full, /readyz also writes an item of 64 KB and removes it. On DynamoDB it
only reads the table's status: throttled writes pass, and removing the process from service would make them worse.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse

from datastore.dynamo import DynamoError, StorageFailed, Table, deadline
from datastore.dynamo.declaration import probe_write

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
                self._status = await _check(request.state.services.table, probe_writes=self._probe_writes)
                self._checked_until = time.monotonic() + READINESS_SECONDS
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
        return 503, {"status": "unready", "reason": f"the table does not answer: {type(error).__name__}"}
    if status not in ("ACTIVE", "UPDATING"):
        return 503, {"status": "unready", "reason": f"the table is {status}"}
    return 200, {"status": "ready"}
