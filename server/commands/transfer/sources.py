"""The tables that exports read and imports fill.

The embedded engine's table is read from a copy of one moment, by an engine of its own, so no transaction is half in an
export. Other engines have no such copy; `exports` says what that means.

| URL of `ringside copy`              | table                                                                  |
|-------------------------------------|------------------------------------------------------------------------|
| `embedded`, `embedded:FOLDER`       | the embedded engine's, in RINGSIDE_DATA or another folder              |
| `aws`                               | DynamoDB's, in the region of the settings                              |
| `http://127.0.0.1:8001`             | another engine's                                                       |
| any of them with `#NAME` at its end | of that name, not of RINGSIDE_TABLE                                    |
"""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from datastore.dynamo import Table, declaration
from server import Failed
from server.engine import EngineInUse, copy_file, required_binary, run_engine_async, table_file
from server.engine.table import open_engine, read_layout, validate_table
from server.settings import Settings
from server.settings.values import EMBEDDED, parse_engine

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{3,255}")


def at_place(settings: Settings, url: str) -> Settings:
    """The settings for the table that a URL of `ringside copy` names."""
    engine, _, name = url.partition("#")
    if "#" in url and not _NAME.fullmatch(name):
        raise Failed(
            f"{url} does not name a table: after # come 3 to 255 letters, digits, dots, dashes or underscores."
        )
    changes: dict[str, object] = {"table": name} if name else {}
    kind, _, folder = engine.partition(":")
    if kind.lower() == EMBEDDED and folder:
        changes |= {"dynamodb_url": EMBEDDED, "data": Path(folder)}
    else:
        try:
            changes["dynamodb_url"] = parse_engine(engine)
        except ValueError as error:
            raise Failed(
                f"{url} is not the URL of a table: {error}. Write embedded, embedded:FOLDER, aws, or an address such "
                "as http://127.0.0.1:8001, and #NAME after it for a table of another name."
            ) from None
    return settings.model_copy(update=changes)


def identity(settings: Settings) -> str:
    """The same text for the same table."""
    engine = f"{EMBEDDED}:{settings.data.resolve()}" if settings.embedded else settings.dynamodb_url
    return f"{engine}#{settings.table}"


@asynccontextmanager
async def table_to_read(settings: Settings, folder: Path) -> AsyncIterator[Table]:
    """A table to export; the embedded engine's as a copy in `folder`."""
    if not settings.embedded:
        async with open_engine(settings) as table:
            await validate_table(table)
            yield table
        return
    if not table_file(settings.data).exists():
        raise Failed(f"There is no table in {settings.data}. Set RINGSIDE_DATA to the embedded engine's data folder.")
    binary = required_binary(settings.data, settings.engine_binary)
    _copy(settings.data, folder)
    async with _embedded(settings, folder, binary) as table:
        await validate_table(table)
        yield table


def _copy(data: Path, folder: Path) -> None:
    """Copy the table of a data folder to another one, of which nothing else is kept."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    copy_file(table_file(data), table_file(folder))


@asynccontextmanager
async def _embedded(settings: Settings, folder: Path, binary: Path | None) -> AsyncIterator[Table]:
    """The table in a folder, by an engine of its own."""
    async with (
        run_engine_async(folder, binary) as engine,
        open_engine(settings.model_copy(update={"dynamodb_url": engine.url})) as table,
    ):
        yield table


@asynccontextmanager
async def table_to_fill(settings: Settings) -> AsyncIterator[Table]:
    """A table to import into. The embedded engine's is created; the service must not run on it."""
    if not settings.embedded:
        async with open_engine(settings) as table:
            await read_layout(table)
            yield table
        return
    try:
        async with _embedded(settings, settings.data, settings.engine_binary) as table:
            await declaration.create(table)
            await read_layout(table)
            yield table
    except EngineInUse as in_use:
        raise Failed(
            f"The table cannot be filled while process {in_use.pid} serves it. Stop that process first."
        ) from None
