"""`ringside score`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from datastore.values.ids import is_ulid
from resolvers.jobs.running import JobRunner, refuse_failed
from resolvers.pickem.cache import load_locked_if_due
from resolvers.pickem.scoring import SCORE_EVENT, begin_scoring, event_job, score_event_job
from resolvers.requests.context import Services
from resolvers.values.node_ids import parse_node_key
from resolvers.values.texts import CONTROL_CHARACTERS
from server.commands import out
from server.commands.files import progress_bar
from server.commands.running import run_with_services

_REFRESH_SECONDS = 0.2
app = typer.Typer()


@app.command()
def score(
    event: Annotated[str, typer.Argument(help="The event's id, as the API or an export shows it.")],
    *,
    confirm_missing: Annotated[
        bool, typer.Option("--confirm-missing", help="Score even if matches have no result: they give no points.")
    ] = False,
) -> None:
    """Scores the predictions of an event. Safe to interrupt, to repeat and to run several times at once.

    An event that is already scored is checked: wrong points and ranks are repaired.
    """
    event_id = _parse_event_id(event)
    name, scored = run_with_services(lambda services: _score(services, event_id, confirm_missing))
    out.print(f"{name}: {scored} predictions are scored.")


async def _score(services: Services, event_id: str, confirm_missing: bool) -> tuple[str, int]:
    """The event's name, and how many predictions are scored."""
    runner, new = services.get(JobRunner), event_job(services, SCORE_EVENT, event_id, actor=services.operator)
    job = await begin_scoring(services, new, confirm_missing=confirm_missing)
    with progress_bar("predictions") as advance:
        ended = runner.finish(job, score_event_job)
        while not ended.done():
            await asyncio.wait({ended}, timeout=_REFRESH_SECONDS)
            current = await runner.current(job)
            advance(current.done, current.total)
    job = refuse_failed(ended.result())
    event = await load_locked_if_due(services, event_id)
    name = event_id if event is None else event.name
    return CONTROL_CHARACTERS.sub(" ", name), job.done  # names were once accepted with them


def _parse_event_id(text: str) -> str:
    return text if is_ulid(text) else parse_node_key("Event", text)
