"""The rows that an export has read so far, on disk and sorted by their keys, and how far it has come.

A page's rows and the position after them are committed together, so that an export which was killed in its first pass
goes on from there. Each further pass over the table marks what is new or has changed, and drops what is gone.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from datastore.whole.table import SEGMENTS, TableRow, is_expired

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS state (source TEXT, pass INTEGER);
CREATE TABLE IF NOT EXISTS segments (segment INTEGER PRIMARY KEY, position BLOB, done INTEGER);
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


class SpoolInUse(Exception):
    """Another process writes to the spool."""


class Spool:
    """The rows of one table, or of one copy of it. `number` is the number of the pass over the table, from 1."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.number = 1
        self.seen = 0
        """Rows that this process has read in this pass."""

    def begin(self, source: str) -> None:
        """Go on with what was read from this source; rows of another one are dropped.

        The first pass goes on where it stopped. A later one gives way to a new one: what an earlier process has read of
        it may be days old, and would not be compared with the table again.
        """
        known = f"{source} {SEGMENTS}"
        state = self._connection.execute("SELECT source, pass FROM state").fetchone()
        if state is None or state[0] != known:
            with self._connection as connection:
                for table in ("state", "segments", "items"):
                    connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names of the schema above
                connection.execute("INSERT INTO state VALUES (?, 1)", (known,))
            state = known, 1
        self.number = int(state[1])
        if self.number > 1:
            with self._connection as connection:
                self._begin_pass(connection)

    def position(self, segment: int) -> tuple[bytes | None, bool]:
        """Where the segment's pass goes on, and whether it is done."""
        found = self._connection.execute("SELECT position, done FROM segments WHERE segment = ?", (segment,)).fetchone()
        return (found[0], bool(found[1])) if found else (None, False)

    def add(self, segment: int, rows: Sequence[TableRow], position: bytes | None) -> None:
        """Keep a page of a segment; without a position it was the last one."""
        with self._connection as connection:
            connection.executemany(_ADD, [(*row, self.number) for row in rows])
            connection.execute(
                "INSERT OR REPLACE INTO segments VALUES (?, ?, ?)", (segment, position, position is None)
            )
        self.seen += len(rows)

    def end_pass(self) -> int:
        """Drop what the pass did not find any more, and begin another; returns how many rows differ from before.

        An item that the engine itself removed because its time was over is not counted.
        """
        now = time.time()
        with self._connection as connection:
            gone = connection.execute("SELECT pk, sk, line FROM items WHERE seen < ?", (self.number,))
            differing = sum(not is_expired(TableRow(*found), now) for found in gone)
            connection.execute("DELETE FROM items WHERE seen < ?", (self.number,))
            differing += connection.execute("SELECT count(*) FROM items WHERE changed = ?", (self.number,)).fetchone()[
                0
            ]
            self._begin_pass(connection)
        return int(differing)

    def _begin_pass(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM segments")
        connection.execute("UPDATE state SET pass = ?", (self.number + 1,))
        self.number += 1
        self.seen = 0

    def rows(self) -> Iterator[TableRow]:
        """All rows in the order of their keys."""
        for found in self._connection.execute("SELECT pk, sk, line FROM items ORDER BY pk, sk"):
            yield TableRow(*found)


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
