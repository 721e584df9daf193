"""Helpers for the tests of jobs: waiting for one, and the settings of a process that works on them."""

from __future__ import annotations

import asyncio

from tests.client import Client

JOB_QUERY = "query ($id: ID!) { job(id: $id) { id kind state done total startedAt finishedAt message } }"
SECRET = "a secret that is long enough to be one in tests"
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")


async def ended(client: Client, id_: str) -> dict[str, object]:
    """The job, once it has ended."""
    async with asyncio.timeout(60):
        while (job := await client.ask(JOB_QUERY, id=id_))["state"] == "RUNNING":
            await asyncio.sleep(0.05)
    return dict(job)
