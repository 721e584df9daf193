"""Scoring from the command line, and a season's cards as files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from datastore.ids import is_ulid
from datastore.pickem import events as stored
from datastore.pickem.events import Event, VersionConflict
from datastore.refusals import InvalidInput, Refusal
from resolvers.context import Services
from resolvers.node_ids import key_of
from resolvers.pickem import scoring
from resolvers.pickem.cache import unasked
from resolvers.pickem.season_files import BadSeasonFile, Card, cards_from, document_of
from resolvers.pickem.views import Scored
from server.commands import Failed, err, out, with_house

_LOOK_SECONDS = 0.2


def score(event: Annotated[str, typer.Argument(help="The event's id, as the API or an export shows it.")]) -> None:
    """Scores what is not scored of an event yet. It may be ended and started again, also several times at once."""

    async def scored(services: Services) -> Scored:
        with _bar() as bar:
            return await _watched(services, _event_id(event), bar)

    try:
        done = with_house(scored)
    except Refusal as refused:
        raise Failed(refused.message) from None
    out.print(f"{done.event.name}: {done.predictions_scored} predictions are scored.")


async def _watched(services: Services, event: str, bar: Progress) -> Scored:
    task = bar.add_task("predictions", total=None)
    under_way = services.get(scoring.Scorings).begin(event)
    while not under_way.running.done():
        await asyncio.wait({under_way.running}, timeout=_LOOK_SECONDS)
        bar.update(task, completed=under_way.progress.done, total=under_way.progress.total)
    return under_way.running.result()


def _event_id(text: str) -> str:
    if is_ulid(text):
        return text
    try:
        return key_of("Event", text)
    except InvalidInput as refused:
        raise Failed(refused.message) from None


def import_events(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="A season file; see `ringside export events`.")
    ],
) -> None:
    """Reads a season's cards. What is there already is left alone, so the same file may be read again."""
    try:
        document = orjson.loads(file.read_bytes())
    except orjson.JSONDecodeError as wrong:
        message = f"{file} is not JSON: {wrong}."
        raise Failed(message) from None
    made, there = with_house(lambda services: _imported(services, document, file))
    out.print(f"{made} events were created, {there} were there already.")


async def _imported(services: Services, document: Any, file: Path) -> tuple[int, int]:
    try:
        cards = cards_from(document, services.clock())
    except BadSeasonFile as bad:
        message = f"{file}: {bad}. Nothing was imported."
        raise Failed(message) from None
    made = 0
    with _bar() as bar:
        for card in bar.track(cards, description="events"):
            made += await _created(services, card)
    return made, len(cards) - made


async def _created(services: Services, card: Card) -> bool:
    try:
        await stored.create_event(services.table, card.event, card.matches, unasked(services.clock()))
    except VersionConflict:
        return False
    return True


def export_events(
    file: Annotated[Path | None, typer.Option("--out", help="Write to this file instead.")] = None,
    season: Annotated[str | None, typer.Option(help="Only events of this season.")] = None,
) -> None:
    """Writes cards and results as a season file, oldest event first."""

    async def exported(services: Services) -> dict[str, Any]:
        return document_of([card async for card in _cards(services, season)])

    text = orjson.dumps(with_house(exported), option=orjson.OPT_INDENT_2).decode()
    if file is None:
        print(text)  # noqa: T201 - a command's output
    else:
        file.write_text(text + "\n", encoding="utf-8")


async def _cards(services: Services, season: str | None) -> AsyncIterator[Card]:
    async for event in stored.all_events(services.table):
        if season in (None, event.season):
            yield Card(event, await _matches(services, event))


async def _matches(services: Services, event: Event) -> tuple[Any, ...]:
    return tuple((await stored.matches_of(services.table, event.id)).values())


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    )
