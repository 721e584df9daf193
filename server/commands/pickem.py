"""`ringside score`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from datastore.ids import is_ulid
from resolvers.context import Services
from resolvers.node_ids import parse_node_key
from resolvers.pickem import scoring
from resolvers.pickem.cache import load_settled_event
from resolvers.texts import CONTROL_CHARACTERS
from server.commands import out
from server.commands.progress import progress_bar
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
    scored = run_with_services(lambda services: _score(services, event_id, confirm_missing))
    name = CONTROL_CHARACTERS.sub(" ", scored.event.name)  # names were once accepted with them
    out.print(f"{name}: {scored.predictions_scored} predictions are scored.")


async def _score(services: Services, event_id: str, confirm_missing: bool) -> scoring.Scored:
    event = None if confirm_missing else await load_settled_event(services, event_id)
    if event is not None:
        await scoring.refuse_missing_results(services, event)
    with progress_bar("predictions") as advance:
        under_way = services.get(scoring.Scorings).begin(event_id)
        while not under_way.result.done():
            await asyncio.wait({under_way.result}, timeout=_REFRESH_SECONDS)
            advance(under_way.progress.done, under_way.progress.total)
        return under_way.result.result()


def _parse_event_id(text: str) -> str:
    return text if is_ulid(text) else parse_node_key("Event", text)
