"""`ringside export all`, `ringside import all` and `ringside copy`: the whole table, between files and engines."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, Final, cast

import typer

from datastore.dynamo import Table
from datastore.whole import table as whole_table
from datastore.whole.layout import Layout, read_layout
from datastore.whole.table import TableRow, is_expired, read_pages
from resolvers.requests.context import Services
from resolvers.transfer.loop import Added, Advance, OnProblem, Store, import_records
from resolvers.transfer.readers import Row
from server import Failed
from server.commands import err, export_file, out
from server.commands.files import STANDARD, keep_standard_input, named_output, open_input, owner_only, progress_bar
from server.commands.running import load_settings
from server.engine.folder import refuse_own_file, sync
from server.settings import Settings, is_embedded

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
    with progress_bar("") as advance, named_output(file) as named:
        end = export_table(load_settings(), named, advance)
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
    settings = load_settings()
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
    settings = load_settings()
    old, new = export_file.at_place(settings, source), export_file.at_place(settings, target)
    if export_file.identity(old) == export_file.identity(new):
        raise Failed(f"{source} and {target} are the same table.")
    with progress_bar("") as advance:
        end, broken = _copy(old, new, settings.data, advance)
    _report(new, end, broken)


def _import(settings: Settings, file: Path, advance: Advance) -> tuple[export_file.End, list[str]]:
    """The end of the export, and the breaches that the audit finds."""

    async def fill(source: BinaryIO, end: export_file.End) -> list[str]:
        async with export_file.table_to_fill(settings) as table:
            await import_table(table, source, end, advance)
            return await _audit(settings, table, advance)

    with open_export(file, advance) as (source, end):
        return end, asyncio.run(fill(source, end))


def _copy(old: Settings, new: Settings, data: Path, advance: Advance) -> tuple[export_file.End, list[str]]:
    """What was exported is kept in the data folder until it is imported."""
    pair = hashlib.sha256(f"{export_file.identity(old)} {export_file.identity(new)}".encode()).hexdigest()[:16]
    folder = data / f"copy-{pair}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Failed(
            f"What is copied cannot be kept in {data}: {error.strerror}. Set RINGSIDE_DATA to a writable folder."
        ) from None
    file = folder / "export"
    if not asyncio.run(_was_begun(new, file)):
        export_table(old, file, advance)
    result = _import(new, file, advance)
    shutil.rmtree(folder)
    return result


async def _was_begun(new: Settings, file: Path) -> bool:
    """Whether an earlier run began to fill the table from this file; ImportRefused if it holds anything else."""
    async with export_file.table_to_fill(new) as table:
        state = await read_layout(table)
        if state is not None and state.imported is not None and await asyncio.to_thread(file.exists):
            return True
        await whole_table.require_empty(table)
        return False


async def _audit(settings: Settings, table: Table, advance: Advance) -> list[str]:
    from server.audit import find_breaches

    advance(0, title="auditing")
    services = Services(table, settings.seal(), settings.policy())
    try:
        return await find_breaches(services)
    finally:
        await services.close()


def _report(settings: Settings, end: export_file.End, broken: list[str]) -> None:
    out.print(f"The table {settings.table} holds the {end.items:,} items of the export.")
    _warn(end)
    for breach in broken:
        err.print(breach, style="red")
    if broken:
        raise Failed("The import is complete, but not all checks passed. `ringside audit` repeats them.")


def _warn(end: export_file.End) -> None:
    if end.changed:
        err.print(
            f"{end.changed:,} items were written while the table was read: the export may hold halves of some "
            "transactions. To export the table of one moment, stop the service meanwhile, or export a table that was "
            "restored to a moment (DynamoDB: RestoreTableToPointInTime).",
            style="yellow",
        )


# ── exports ──
# A Scan shows each item at another moment, so while others write it may hold half of a transaction. The embedded
# engine's table is therefore read from a copy of one moment. Other tables are read again, consistently, until two
# passes agree: each item then had, at the end of the first of both, the value that both have seen, so the export is the
# table of that moment. (Unless a value changed and changed back in between, which no count of the service does without
# a trace.) If writers do not pause for that long, `PASSES` passes end it; the export then holds each item as it was at
# some time of the last pass, and says how many changed meanwhile.
#
# What was read is kept next to the file, in FILE.part, until the export is complete. An interrupted export goes on with
# it if that was a first pass. A later pass must show that nothing has changed, so one process reads it from its
# beginning to its end; and rows of two copies are never mixed.

PASSES: Final = 4
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS state (source TEXT, position BLOB);
CREATE TABLE IF NOT EXISTS items (
    pk BLOB, sk BLOB, line BLOB, seen INTEGER, changed INTEGER, PRIMARY KEY (pk, sk)
) WITHOUT ROWID;
"""
_ADD: Final = """
INSERT INTO items VALUES (?1, ?2, ?3, ?4, ?4)
ON CONFLICT (pk, sk) DO UPDATE SET
    changed = CASE WHEN line = excluded.line THEN changed ELSE excluded.changed END,
    line = excluded.line, seen = excluded.seen
"""


def export_table(settings: Settings, file: Path, advance: Advance) -> export_file.End:
    """Export the table of these settings to a file, which appears once it is complete."""
    refuse_own_file(file)
    if file.exists() and not (file.is_file() and export_file.is_export(file)):
        raise Failed(f"{file} exists and is not an export. Choose another file.")
    part = file.with_name(f"{file.name}.part")
    whole = part / "whole"
    try:
        part.mkdir(mode=0o700, exist_ok=True)
        with open_spool(part / "rows") as spool:
            changed = asyncio.run(_read(settings, spool, part / "copy", advance))
            with open(whole, "wb", opener=owner_only) as target:
                end = export_file.write_export(target, spool.lines(), changed, advance)
                target.flush()
                os.fsync(target.fileno())
        whole.rename(file)
        sync(file.parent)
        shutil.rmtree(part)
    except SpoolInUse:
        raise Failed(f"Another export is writing {file}. Wait for it, or choose another file.") from None
    except sqlite3.Error as error:
        raise Failed(f"What was read cannot be kept in {part}: {error}.") from None
    except OSError as error:
        raise Failed(f"{file} cannot be written: {error.strerror}.") from None
    return end


async def _read(settings: Settings, spool: Spool, copy: Path, advance: Advance) -> int:
    """Read the table until two passes agree; returns how many items differ between the last two.

    After what an earlier run has read a whole pass follows even so: what was kept may be days old.
    """
    changed = 0
    async with export_file.table_to_read(settings, copy) as table:
        start = spool.begin(None if settings.embedded else export_file.identity(settings))
        for number in range(1, PASSES + 1):
            read = 0
            async for rows, position in read_pages(table, start):
                spool.add(number, rows, position)
                advance(read := read + len(rows), title="reading" if number == 1 else "reading again")
            changed, start = spool.end_pass(number), None
            if settings.embedded:
                return 0
            if number > 1 and not changed:
                break
    return changed


class SpoolInUse(Exception):
    """Another process writes to the spool."""


class Spool:
    """The rows that an export has read so far, on disk and sorted by their keys.

    A page's rows and the position after them are committed together. Each pass over the table marks what is new or has
    changed, and drops what is gone.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def begin(self, source: str | None) -> bytes | None:
        """Where the first pass goes on with what was kept of this source. Of others nothing is kept, nor without one.

        The rows of an earlier process's later pass count as those of a first one.
        """
        with self._connection as connection:
            kept = connection.execute("SELECT position FROM state WHERE source = ?", (source,)).fetchone()
            if kept is None:
                connection.execute("DELETE FROM state")
                connection.execute("DELETE FROM items")
                connection.execute("INSERT INTO state VALUES (?, NULL)", (source,))
            connection.execute("UPDATE items SET seen = 1, changed = 1")
        return kept[0] if kept else None

    def add(self, number: int, rows: Sequence[TableRow], position: bytes | None) -> None:
        """Keep a page of a pass, and after a page of the first one where it goes on; not after its last."""
        with self._connection as connection:
            connection.executemany(_ADD, [(*row, number) for row in rows])
            if number == 1 and position is not None:
                connection.execute("UPDATE state SET position = ?", (position,))

    def end_pass(self, number: int) -> int:
        """Drop what the pass did not find any more; returns how many rows differ from before.

        An item that the engine itself removed because its time was over is not counted.
        """
        now = time.time()
        with self._connection as connection:
            gone = connection.execute("SELECT line FROM items WHERE seen < ?", (number,))
            differing = sum(not is_expired(line, now) for (line,) in gone)
            connection.execute("DELETE FROM items WHERE seen < ?", (number,))
            (new,) = connection.execute("SELECT count(*) FROM items WHERE changed = ?", (number,)).fetchone()
        return int(differing + new)

    def lines(self) -> Iterator[bytes]:
        """All rows in the order of their keys."""
        for (line,) in self._connection.execute("SELECT line FROM items ORDER BY pk, sk"):
            yield line


@contextmanager
def open_spool(file: Path) -> Iterator[Spool]:
    """The spool in a file, which no other process can open meanwhile."""
    with closing(sqlite3.connect(file, timeout=0)) as connection:
        try:
            for pragma in ("locking_mode = EXCLUSIVE", "synchronous = NORMAL", "cache_size = -16384"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise SpoolInUse from None
            raise
        yield Spool(connection)


# ── imports ──
# The whole file is checked before anything is written. While a table is being filled, its layout item says so, and no
# service serves it. The item also counts the items that are written; an import that was interrupted goes on there. At
# the end the whole table is read again and compared with the file, by a checksum for which their order is no matter.
#
# If the same import runs twice, the one that records a position first goes on, and the other one stops. Items are
# written without a condition, so one that stalled may still write the rest of its chunk.

_MAY_EXPIRE_SECONDS: Final = 24 * 3600


@contextmanager
def open_export(file: Path, advance: Advance) -> Iterator[tuple[BinaryIO, export_file.End]]:
    """A file whose whole content was checked, and its last line. Standard input is kept in a file meanwhile."""
    with open_input(file) as (given, _), tempfile.TemporaryFile(prefix="ringside-") as received:
        source = given if file != STANDARD else cast("BinaryIO", received)
        if file == STANDARD:
            keep_standard_input(received.fileno())
        reader = export_file.ExportReader(source, f"{file}")
        for row in reader.rows():
            if row.number % TableStore.at_once == 0:
                advance(row.number, title="checking the file")
        if reader.end is None:
            raise AssertionError("an export was read without its end")
        yield source, reader.end


class TableStore(Store[bytes]):
    """Fills an empty table with a checked export, or goes on with it; then compares both."""

    at_once = 2_000
    _state: Layout

    def __init__(self, table: Table, source: BinaryIO, end: export_file.End, advance: Advance) -> None:
        self._table = table
        self._source = source
        self._end = end
        self._advance = advance
        self._as_transactions = is_embedded(table.client.meta.endpoint_url)

    async def begin(self) -> int:
        self._state = await whole_table.begin_import(self._table, self._end.sha256)
        done = self._state.imported_items
        return self._end.items if done is None else done

    def parse(self, row: Row) -> bytes:
        return row.raw

    async def add(self, records: Sequence[bytes]) -> Added:
        await whole_table.write_lines(self._table, records, as_transactions=self._as_transactions)
        done = (self._state.imported_items or 0) + len(records)
        self._state = await whole_table.record_import(self._table, self._state, done)
        self._advance(done, title="writing the table")
        return Added(len(records))

    async def finish(self) -> None:
        if self._state.imported_items is None:  # an earlier run has completed it
            return
        if difference := await self._difference():
            # Another run of this import may have ended, and members have written since.
            await whole_table.record_import(self._table, self._state, self._state.imported_items)
            raise Failed(
                f"The table {self._table.name} is not equal to the export: {difference}. Somebody else is writing to "
                "it. Delete the table, create it again, and repeat the import."
            )
        await whole_table.record_import(self._table, self._state, None)

    async def _difference(self) -> str | None:
        """What distinguishes the table from the export, besides what the engine may remove by itself meanwhile."""
        by = time.time() + _MAY_EXPIRE_SECONDS
        wanted, stored = whole_table.Fingerprint(by), whole_table.Fingerprint(by)
        for row in _checked_rows(self._source):
            wanted.add(row.raw)
        async for page, _ in whole_table.read_pages(self._table):
            for item in page:
                stored.add(item.line)
            self._advance(stored.items, title="comparing")
        if stored == wanted:
            return None
        if stored.items == wanted.items:
            return f"some of its {stored.items:,} items are different"
        return f"it has {stored.items:,} items, and the export has {wanted.items:,}"


async def import_table(table: Table, source: BinaryIO, end: export_file.End, advance: Advance) -> None:
    """Import a checked export."""
    await import_records(_checked_rows(source), TableStore(table, source, end, advance), OnProblem.STOP)


def _checked_rows(source: BinaryIO) -> Iterator[Row]:
    return export_file.ExportReader(source, "the export", checked=True).rows()
