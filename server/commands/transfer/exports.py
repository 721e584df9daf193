"""Exports a whole table.

A Scan shows each item at another moment, so while others write it may hold half of a transaction. The embedded engine's
table is therefore read from a copy of one moment. Other tables are read again, consistently, until two passes agree:
each item then had, at the end of the first of both, the value that both have seen, so the export is the table of that
moment. (Unless a value changed and changed back in between, which no count of the service does without a trace.) If
writers do not pause for that long, `PASSES` passes end it; the export then holds each item as it was at some time of
the last pass, and says how many changed meanwhile.

What was read is kept next to the file, in FILE.part, until the export is complete. An interrupted export goes on with
it if that was a first pass. A later pass must show that nothing has changed, so one process reads it from its beginning
to its end; and rows of two copies are never mixed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from datastore.whole.table import TableRow, is_expired, read_pages
from resolvers.transfer.loop import Advance
from server import Failed
from server.commands.files import STANDARD, open_output, owner_only
from server.commands.transfer.file import End, identity, is_export, table_to_read, write_export
from server.engine.folder import refuse_own_file, sync
from server.settings import Settings

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


def export_table(settings: Settings, file: Path, advance: Advance) -> End:
    """Export the table of these settings to a file, which appears once it is complete."""
    if file != STANDARD:
        return _export_to_file(settings, file, advance)
    with tempfile.TemporaryDirectory(prefix="ringside-") as folder:
        whole = Path(folder, "export")
        end = _export_to_file(settings, whole, advance)
        with whole.open("rb") as source, open_output(file) as target:
            shutil.copyfileobj(source, target)
    return end


def _export_to_file(settings: Settings, file: Path, advance: Advance) -> End:
    refuse_own_file(file)
    if file.exists() and not (file.is_file() and is_export(file)):
        raise Failed(f"{file} exists and is not an export. Choose another file.")
    part = file.with_name(f"{file.name}.part")
    whole = part / "whole"
    try:
        part.mkdir(mode=0o700, exist_ok=True)
        with open_spool(part / "rows") as spool:
            changed = asyncio.run(_read(settings, spool, part / "copy", advance))
            with open(whole, "wb", opener=owner_only) as target:
                end = write_export(target, spool.lines(), changed, advance)
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
    async with table_to_read(settings, copy) as table:
        start = spool.begin(None if settings.embedded else identity(settings))
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
