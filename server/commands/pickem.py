"""`ringside score`, and `ringside import events` and `ringside export events`: a season's cards as a JSON file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from datastore.ids import is_ulid
from datastore.pickem import VersionConflict, create_event, every_event, read_matches
from resolvers.context import Services
from resolvers.jobs.running import JobRunner, refuse_failed
from resolvers.node_ids import parse_node_key
from resolvers.pickem.cache import load_settled_event
from resolvers.pickem.event_jobs import SCORE_EVENT, event_job
from resolvers.pickem.scoring import begin_scoring, score_event_job
from resolvers.pickem.season_files import Card, InvalidSeasonFile, parse_season, season_document
from resolvers.texts import CONTROL_CHARACTERS
from server.commands import err, out
from server.commands.files import STANDARD, read_text, write_text
from server.commands.running import run_with_services
from server.failures import Failed

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
    runner, new = services.get(JobRunner), event_job(services, SCORE_EVENT, event_id, actor=None)
    job = await begin_scoring(services, new, confirm_missing=confirm_missing)
    with _progress_bar() as bar:
        task, ended = bar.add_task("predictions", total=None), runner.finish(job, score_event_job)
        while not ended.done():
            await asyncio.wait({ended}, timeout=_REFRESH_SECONDS)
            current = await runner.current(job)
            bar.update(task, completed=current.done, total=current.total)
    job = refuse_failed(ended.result())
    event = await load_settled_event(services, event_id)
    name = event_id if event is None else event.name
    return CONTROL_CHARACTERS.sub(" ", name), job.done  # names were once accepted with them


def _parse_event_id(text: str) -> str:
    return text if is_ulid(text) else parse_node_key("Event", text)


def import_events(
    file: Annotated[
        Path,
        typer.Argument(
            allow_dash=True, help="A season file, as `ringside export events` writes it; - reads standard input."
        ),
    ],
) -> None:
    """Imports a season's cards. Existing events are left alone, so the same file can be imported again."""
    try:
        document = orjson.loads(read_text(file))
    except orjson.JSONDecodeError as error:
        raise Failed(f"{file} is not JSON: {error}.") from None
    created, existing = run_with_services(lambda services: _import_cards(services, document, file))
    out.print(f"{created} events were created, {existing} existed already.")


async def _import_cards(services: Services, document: Any, file: Path) -> tuple[int, int]:
    """How many events were created, and how many existed."""
    try:
        cards = parse_season(document, services.clock(), services.policy.image_hosts)
    except InvalidSeasonFile as error:
        raise Failed(f"{file}: {str(error).removesuffix('.')}. Nothing was imported.") from None
    created = 0
    with _progress_bar() as bar:
        for card in bar.track(cards, description="events"):
            created += await _create(services, card)
    return created, len(cards) - created


async def _create(services: Services, card: Card) -> bool:
    """Whether the event is new."""
    try:
        await create_event(services.table, card.event, card.matches, services.once())
    except VersionConflict:
        return False
    return True


def export_events(
    file: Annotated[Path, typer.Argument(help="The file to write; - prints.", allow_dash=True)] = STANDARD,
    season: Annotated[str | None, typer.Option(help="Only the events of this season.")] = None,
) -> None:
    """Exports cards and results as a season file, oldest event first."""

    async def export(services: Services) -> dict[str, Any]:
        cards = [card async for card in _cards(services, season)]
        if season is not None and not cards:
            raise Failed(f"There is no event of the season {season}.")
        return season_document(cards)

    indented = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    write_text(file, orjson.dumps(run_with_services(export), option=indented).decode())


async def _cards(services: Services, season: str | None) -> AsyncIterator[Card]:
    """As the table has them: an index may lack an event of a moment ago, or show it without its latest results."""
    for event in sorted(await every_event(services.table), key=lambda event: (event.starts_at, event.id)):
        if season in (None, event.season):
            matches = await read_matches(services.table, event.id)
            yield Card(event, tuple(matches.values()))


def _progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    )
