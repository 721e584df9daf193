"""`ringside jobs`: lists jobs, and works on those that are not finished."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.table import Table as Grid

from datastore.dynamo import iso
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job
from resolvers.jobs.running import JobRunner
from resolvers.requests.context import Services
from resolvers.values.node_ids import node_id
from server.commands import err, out
from server.commands.running import run_with_services

_REFRESH_SECONDS = 0.5
app = typer.Typer()


@app.command()
def jobs(
    *, resume: Annotated[bool, typer.Option("--resume", help="Work on unfinished jobs until none is due.")] = False
) -> None:
    """Lists the jobs of the last 30 days, newest first. A serving process works on them by itself."""
    found = run_with_services(_resume if resume else _list)
    grid = Grid("id", "kind", "state", "done", "of", "started", "finished", "message")
    for one in found:
        grid.add_row(
            node_id("Job", one.id),
            one.kind,
            one.state,
            f"{one.done:,}",
            "" if one.total is None else f"{one.total:,}",
            iso(one.started_at),
            "" if one.finished_at is None else iso(one.finished_at),
            one.message or "",
        )
    out.print(grid if found else "There are no jobs.")


async def _list(services: Services) -> list[Job]:
    return [one async for one in job_store.all_jobs(services.table)]


async def _resume(services: Services) -> list[Job]:
    """Work on every due job whose process is gone, and wait for the others."""
    from resolvers.whole.jobs import JOB_KINDS

    services.get(JobRunner).start(JOB_KINDS)
    with err.status("Looking for unfinished jobs"):
        while await _some_are_due(services):  # noqa: ASYNC110 - others finish some of them
            await asyncio.sleep(_REFRESH_SECONDS)
    return await _list(services)


async def _some_are_due(services: Services) -> bool:
    return any(one.is_due(services.clock()) for one in await job_store.read_unfinished_jobs(services.table))
