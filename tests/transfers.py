"""Imports and exports as their commands make them, with a client's services."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

import orjson

from datastore.dynamo import Table
from datastore.refusals import InvalidInput
from resolvers.comments.transfer import CommentStore
from resolvers.pickem.season_files import EventAndMatches, SeasonStore, season_rows
from resolvers.requests.context import Services
from resolvers.transfer.loop import Imported, OnProblem, Problem, import_records
from resolvers.transfer.readers import json_lines
from resolvers.vocabulary.transfer import WordStore, ensure_list
from resolvers.voting.transfer import ContenderStore, open_votes
from server import Failed
from server.commands.imports import read_contenders, read_words


async def import_lines(services: Services, source: BinaryIO) -> tuple[int, int, int]:
    """How many comments were read, are new, and were left out; Failed for an invalid line."""
    imported = await import_records(json_lines(source), CommentStore(services), OnProblem.STOP)
    for problem in imported.problems:
        raise Failed(f"{problem}")
    return imported.read, imported.added, imported.left_out


async def import_words(services: Services, file: Path, name: str) -> Imported:
    store = WordStore(services, partial(ensure_list, name=name, level=None))
    return await import_records(read_words(file), store, OnProblem.SKIP)


async def import_contenders(services: Services, source: Path, board: str = "main") -> Imported:
    rows, folder = read_contenders(source)
    return await import_records(rows, ContenderStore(services, board, folder), OnProblem.REFUSE)


async def voted(table: Table, board: str | None) -> list[Any]:
    """The votes as an export has them."""
    return [orjson.loads(line) async for line in await open_votes(table, board)]


def parse_season(document: Any, now: datetime, image_hosts: Sequence[str] = ()) -> list[EventAndMatches]:
    """Failed for the first event that is not valid."""
    services = SimpleNamespace(clock=lambda: now, policy=SimpleNamespace(image_hosts=tuple(image_hosts)))
    store, cards = SeasonStore(cast("Services", services)), list[EventAndMatches]()
    for row in season_rows(document):
        try:
            row.require_read()
            cards.append(store.parse(row))
        except InvalidInput as refused:
            raise Failed(f"{Problem.of(row, refused)}") from None
    return cards
