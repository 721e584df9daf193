"""Imports an export into an empty table.

The whole file is checked before anything is written. While a table is being filled, its layout item says so, and no
service serves it. The item also counts the rows that are written; an import that was interrupted goes on there. At the
end every row is read again and compared with the file, and the table must hold nothing else.

If the same import runs twice, the one that records a position first goes on, and the other one stops. Rows are written
without a condition, so one that stalled may still write the rest of its chunk.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from datastore.dynamo import Table
from datastore.whole import table as whole_table
from datastore.whole.table import TableRow
from resolvers.transfer.loop import Added, OnProblem, Store, batches, import_records
from resolvers.transfer.readers import Row
from server.commands.files import STANDARD, open_input
from server.commands.transfer.exports import Advance
from server.commands.transfer.file import End, ExportReader
from server.engine import is_embedded
from server.failures import Failed


@contextmanager
def open_export(file: Path, advance: Advance) -> Iterator[tuple[BinaryIO, End]]:
    """A file whose whole content was checked, and its last line. Standard input is kept in a file meanwhile."""
    with open_input(file) as (given, _), tempfile.TemporaryFile(prefix="ringside-") as received:
        source = given if file != STANDARD else cast("BinaryIO", received)
        if file == STANDARD:
            shutil.copyfileobj(given, received)
        reader = ExportReader(source, f"{file}")
        for row in reader.rows():
            if row.number % TableStore.at_once == 0:
                advance("checking the file", row.number)
        if reader.end is None:
            raise AssertionError("an export was read without its end")
        yield source, reader.end


class TableStore(Store[TableRow]):
    """Fills an empty table with a checked export, or goes on with it; then compares both."""

    at_once = 2_000

    def __init__(self, table: Table, source: BinaryIO, end: End, advance: Advance) -> None:
        self._table = table
        self._source = source
        self._end = end
        self._advance = advance
        self._as_transactions = is_embedded(table.client.meta.endpoint_url)
        self._done: int | None = None

    async def begin(self) -> int:
        self._done = await whole_table.begin_import(self._table, self._end.sha256)
        return self._end.items if self._done is None else self._done

    def parse(self, row: Row) -> TableRow:
        stored: TableRow = row.fields
        return stored

    async def add(self, records: Sequence[TableRow]) -> Added:
        before = self._done or 0
        await whole_table.write_rows(self._table, records, as_transactions=self._as_transactions)
        await whole_table.record_import(self._table, self._end.sha256, before, before + len(records))
        self._done = before + len(records)
        return Added(len(records))

    async def finish(self) -> None:
        if self._done is None:  # an earlier run has completed it
            return
        if difference := await _difference(self._table, self._source, self._end, self._advance):
            # Another run of this import may have ended, and members have written since.
            await whole_table.require_position(self._table, self._end.sha256, self._done)
            raise Failed(
                f"The table {self._table.name} is not equal to the export: {difference}. Somebody else is writing to "
                "it. Delete the table, create it again, and repeat the import."
            )
        await whole_table.record_import(self._table, self._end.sha256, self._done, None)


async def import_table(table: Table, source: BinaryIO, end: End, advance: Advance) -> None:
    """Import a checked export."""
    store = TableStore(table, source, end, advance)
    await import_records(_checked_rows(source), store, OnProblem.STOP, partial(advance, "writing"))


async def _difference(table: Table, source: BinaryIO, end: End, advance: Advance) -> str | None:
    """What the table has that the export has not, or the other way round; None if they are equal."""
    now, compared, removed = time.time(), 0, 0
    for rows in batches(_checked_rows(source), TableStore.at_once, lambda row: len(row.raw)):
        for row in await whole_table.lacking_rows(table, [row.fields for row in rows]):
            if not whole_table.is_expired(row, now):
                return f"the item {row.pk.decode()}, {row.sk.decode()} is missing or different"
            removed += 1
        compared += len(rows)
        advance("comparing", compared)
    if (stored := await whole_table.count_rows(table)) not in range(end.items - removed, end.items + 1):
        return f"it has {stored:,} items, and the export has {end.items:,}"
    return None


def _checked_rows(source: BinaryIO) -> Iterator[Row]:
    return ExportReader(source, "the export", checked=True).rows()
