"""Imports and exports as their commands make them, with a client's services."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

import orjson

from datastore.dynamo import Table
from datastore.refusals import InvalidInput
from resolvers.comments.transfer import import_comments
from resolvers.context import Services
from resolvers.pickem.season_files import Card, SeasonStore, season_rows
from resolvers.transfer.loop import Imported, OnProblem, Problem, import_records
from resolvers.vocabulary.transfer import WordStore, ensure_list
from resolvers.voting.transfer import ContenderStore, open_votes
from server.commands.imports import read_contenders, read_words
from server.failures import Failed


async def import_lines(services: Services, source: BinaryIO) -> tuple[int, int, int]:
    """How many comments were read, are new, and were left out; Failed for an invalid line."""
    imported = await import_comments(services, source)
    for problem in imported.problems:
        raise Failed(f"{problem}")
    return imported.read, imported.added, imported.left_out


async def import_words(services: Services, file: Path, name: str) -> Imported:
    rows = read_words(file)
    return await import_records(rows, WordStore(services, await ensure_list(services, name, None)), OnProblem.SKIP)


async def import_contenders(services: Services, source: Path, board: str = "main") -> Imported:
    rows, folder = read_contenders(source)
    return await import_records(rows, ContenderStore(services, board, folder), OnProblem.REFUSE)


async def contender_problems(source: Path) -> Sequence[Problem]:
    """What is wrong in a file or a folder; nothing is imported."""
    found = await import_contenders(_services(), source, "No such board!")
    return found.problems


async def voted(table: Table, board: str | None) -> list[Any]:
    """The votes as an export has them."""
    return [orjson.loads(line) async for line in await open_votes(table, board)]


def parse_season(document: Any, now: datetime, image_hosts: Sequence[str] = ()) -> list[Card]:
    """Failed for the first event that is not valid."""
    store, cards = SeasonStore(_services(now, image_hosts)), list[Card]()
    for row in season_rows(document):
        try:
            row.require_read()
            cards.append(store.parse(row))
        except InvalidInput as refused:
            raise Failed(f"{Problem.of(row, refused)}") from None
    return cards


def _services(now: datetime | None = None, image_hosts: Sequence[str] = ()) -> Services:
    """Without a table."""
    return cast("Services", SimpleNamespace(clock=lambda: now, policy=SimpleNamespace(image_hosts=tuple(image_hosts))))
