"""`ringside export all`, `ringside import all` and `ringside copy`: the whole table, between files and engines."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from datastore.dynamo import Table
from datastore.whole import table as whole_table
from resolvers.requests.context import Services
from resolvers.transfer.loop import Advance
from server import Failed
from server.commands import err, out
from server.commands.files import progress_bar
from server.commands.transfer.exports import export_table
from server.commands.transfer.file import End, at_place, identity, table_to_fill
from server.commands.transfer.imports import import_table, open_export
from server.settings import Settings

app = typer.Typer()


def export_all(
    file: Annotated[
        Path,
        typer.Argument(
            help="The file to write, or an export to continue; - writes to standard output.", allow_dash=True
        ),
    ],
) -> None:
    """Exports the whole table to one compressed file. If run again after an interruption, it continues.

    The embedded engine's table is exported as it is at one moment. Any other is read until two passes agree; if writers
    do not pause for that long, the export says how many items changed meanwhile.
    """
    with progress_bar("") as advance:
        end = export_table(Settings.load(), file, advance)
    err.print(f"{end.items:,} items written.")
    _warn(end)


def import_all(
    file: Annotated[
        Path, typer.Argument(help="An export of the whole table; - reads standard input.", allow_dash=True)
    ],
) -> None:
    """Imports a whole table into an empty one, compares both, and audits it. Safe to run again after an interruption.

    The file is checked before anything is written. Exit code 1 if the audit finds a breach; the import is complete even
    then.
    """
    settings = Settings.load()
    with progress_bar("") as advance:
        end, broken = _import(settings, file, advance)
    _report(settings, end, broken)


@app.command()
def copy(
    source: Annotated[str, typer.Option("--from", metavar="URL", help="The table to copy.")],
    target: Annotated[str, typer.Option("--to", metavar="URL", help="An empty table.")],
) -> None:
    """Copies the whole table to another engine, like an export and an import. It continues if run again.

    A URL is `embedded`, `embedded:FOLDER`, `aws`, or an address such as `http://127.0.0.1:8001`; with `#NAME` at its
    end, it names a table other than RINGSIDE_TABLE.
    """
    settings = Settings.load()
    old, new = at_place(settings, source), at_place(settings, target)
    if identity(old) == identity(new):
        raise Failed(f"{source} and {target} are the same table.")
    with progress_bar("") as advance:
        end, broken = _copy(old, new, settings.data, advance)
    _report(new, end, broken)


def _import(settings: Settings, file: Path, advance: Advance) -> tuple[End, list[str]]:
    """The end of the export, and the breaches that the audit finds."""

    async def fill(source: BinaryIO, end: End) -> list[str]:
        async with table_to_fill(settings) as table:
            await import_table(table, source, end, advance)
            return await _audit(settings, table, advance)

    with open_export(file, advance) as (source, end):
        return end, asyncio.run(fill(source, end))


def _copy(old: Settings, new: Settings, data: Path, advance: Advance) -> tuple[End, list[str]]:
    """What was exported is kept in the data folder until it is imported."""
    pair = hashlib.sha256(f"{identity(old)} {identity(new)}".encode()).hexdigest()[:16]
    folder = data / f"copy-{pair}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "export"
    if not asyncio.run(_was_begun(new, file)):
        export_table(old, file, advance)
    result = _import(new, file, advance)
    shutil.rmtree(folder)
    return result


async def _was_begun(new: Settings, file: Path) -> bool:
    """Whether an earlier run began to fill the table from this file; ImportRefused if it holds anything else."""
    async with table_to_fill(new) as table:
        state = await whole_table.read_state(table)
        if state is not None and state.imported is not None and await asyncio.to_thread(file.exists):
            return True
        await whole_table.require_empty(table)
        return False


async def _audit(settings: Settings, table: Table, advance: Advance) -> list[str]:
    from server.audit import breaches

    advance(0, title="auditing")
    services = Services(table, settings.seal(), settings.policy())
    try:
        return [breach async for breach in breaches(services)]
    finally:
        await services.close()


def _report(settings: Settings, end: End, broken: list[str]) -> None:
    out.print(f"The table {settings.table} holds the {end.items:,} items of the export.")
    _warn(end)
    for breach in broken:
        err.print(breach, style="red")
    if broken:
        raise Failed("The import is complete, but not all checks passed. `ringside audit` repeats them.")


def _warn(end: End) -> None:
    if end.changed:
        err.print(
            f"{end.changed:,} items were written while the table was read: the export may hold halves of some "
            "transactions. To export the table of one moment, stop the service meanwhile, or export a table that was "
            "restored to a moment (DynamoDB: RestoreTableToPointInTime).",
            style="yellow",
        )
