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
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from datastore import whole_table
from datastore.dynamo import Table
from datastore.whole_table import Row
from server.commands.files import STANDARD, open_input
from server.commands.transfer.exports import Advance
from server.commands.transfer.file import End, ExportReader
from server.engine import is_embedded
from server.failures import Failed

_CHUNK: Final = 2_000
_CHUNK_BYTES: Final = 8 * 2**20
"""Rows, and bytes of them, that are written at once; then the position is recorded."""


@contextmanager
def open_export(file: Path, advance: Advance) -> Iterator[tuple[BinaryIO, End]]:
    """A file whose whole content was checked, and its last line. Standard input is kept in a file meanwhile."""
    with open_input(file) as (source, _):
        if file != STANDARD:
            yield source, _checked(source, f"{file}", advance)
            return
        with tempfile.TemporaryFile(prefix="ringside-") as received:
            shutil.copyfileobj(source, received)
            yield received, _checked(received, "standard input", advance)


def _checked(source: BinaryIO, name: str, advance: Advance) -> End:
    source.seek(0)
    reader = ExportReader(source, name)
    for number, _ in enumerate(reader.rows(), 1):
        if number % _CHUNK == 0:
            advance("checking the file", number)
    if reader.end is None:
        raise AssertionError("an export was read without its end")
    return reader.end


async def import_table(table: Table, source: BinaryIO, end: End, advance: Advance) -> None:
    """Fill an empty table with a checked export, or go on with it; then compare both."""
    done = await whole_table.begin_import(table, end.sha256)
    if done is None:
        return
    as_transactions = is_embedded(table.client.meta.endpoint_url)
    for rows in _chunks(source, done):
        await whole_table.write_rows(table, rows, as_transactions=as_transactions)
        await whole_table.record_import(table, end.sha256, done, done + len(rows))
        done += len(rows)
        advance("writing", done)
    if difference := await _difference(table, source, end, advance):
        # Another run of this import may have ended, and members have written since.
        await whole_table.require_position(table, end.sha256, done)
        raise _not_equal(table, difference)
    await whole_table.complete_import(table, end.sha256, done)


async def _difference(table: Table, source: BinaryIO, end: End, advance: Advance) -> str | None:
    """What the table has that the export has not, or the other way round; None if they are equal."""
    now, compared, removed = time.time(), 0, 0
    for rows in _chunks(source, 0):
        for row in await whole_table.lacking_rows(table, rows):
            if not whole_table.is_expired(row, now):
                return f"the item {row.pk.decode()}, {row.sk.decode()} is missing or different"
            removed += 1
        compared += len(rows)
        advance("comparing", compared)
    if (stored := await whole_table.count_rows(table)) not in range(end.items - removed, end.items + 1):
        return f"it has {stored:,} items, and the export has {end.items:,}"
    return None


def _not_equal(table: Table, reason: str) -> Failed:
    return Failed(
        f"The table {table.name} is not equal to the export: {reason}. Somebody else is writing to it. Delete the "
        "table, create it again, and repeat the import."
    )


def _chunks(source: BinaryIO, skipped: int) -> Iterator[list[Row]]:
    """The rows of a checked file after some that are skipped, as many at a time as the memory can take."""
    source.seek(0)
    chunk: list[Row] = []
    size = 0
    for row in islice(ExportReader(source, "the export", checked=True).rows(), skipped, None):
        chunk.append(row)
        size += len(row.line)
        if len(chunk) >= _CHUNK or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
