"""Imports an export into an empty table.

The whole file is checked before anything is written. While a table is being filled, its layout item says so, and no
service serves it. The item also counts the items that are written; an import that was interrupted goes on there. At the
end the whole table is read again and compared with the file, by a checksum for which their order is no matter.

If the same import runs twice, the one that records a position first goes on, and the other one stops. Items are written
without a condition, so one that stalled may still write the rest of its chunk.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

from datastore.dynamo import Table
from datastore.whole import table as whole_table
from datastore.whole.layout import Layout
from resolvers.transfer.loop import Added, Advance, OnProblem, Store, import_records
from resolvers.transfer.readers import Row
from server import Failed
from server.commands.files import STANDARD, open_input
from server.commands.transfer.file import End, ExportReader
from server.settings import is_embedded

_MAY_EXPIRE_SECONDS: Final = 24 * 3600


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
                advance(row.number, title="checking the file")
        if reader.end is None:
            raise AssertionError("an export was read without its end")
        yield source, reader.end


class TableStore(Store[bytes]):
    """Fills an empty table with a checked export, or goes on with it; then compares both."""

    at_once = 2_000
    _state: Layout

    def __init__(self, table: Table, source: BinaryIO, end: End, advance: Advance) -> None:
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


async def import_table(table: Table, source: BinaryIO, end: End, advance: Advance) -> None:
    """Import a checked export."""
    await import_records(_checked_rows(source), TableStore(table, source, end, advance), OnProblem.STOP)


def _checked_rows(source: BinaryIO) -> Iterator[Row]:
    return ExportReader(source, "the export", checked=True).rows()
