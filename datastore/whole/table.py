"""The whole table as rows, to export it, to fill another table with them, and to compare both.

| wanted                          | read or write                                            | requests            |
|---------------------------------|----------------------------------------------------------|---------------------|
| the rows of a segment           | Scan, consistent, one of `SEGMENTS`                      | 1 per 1 MB          |
| write rows                      | BatchWriteItem, at most `BATCHES_AT_ONCE` at a time      | 1 per 25 rows       |
| the same, embedded              | TransactWriteItems                                       | 1 per 100 rows      |
| rows that the table lacks       | BatchGetItem, consistent, as many at a time              | 1 per 100 rows      |
| how many rows there are         | Scan of counts, consistent; BatchGetItem                 | 1 per 1 MB, and 1   |
| begin, record, end an import    | GetItem, Scan of a few items, PutItem LAYOUT LAYOUT      | 4, 1, 1             |
| whether this run's import is on | GetItem LAYOUT LAYOUT, consistent                        | 1                   |

A Scan is no snapshot: each of its pages shows a later moment. Rows leave out the items that are about the table
itself: its layout, and the one with which an engine is tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple, TypeVar

import orjson

from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.attributes import Item
from datastore.dynamo.bulk import count_items, get_items, put_as_transaction, put_items, scan_segment
from datastore.dynamo.concurrency import gather_or_cancel
from datastore.dynamo.conditions import Condition, where
from datastore.dynamo.declaration import PROBE, TTL
from datastore.dynamo.lines import BadLine, item_line, parse_line, read_line
from datastore.dynamo.table import BATCH_READ, BATCH_WRITE
from datastore.refusals import Conflict
from datastore.whole.layout import CURRENT_LAYOUT, LAYOUT, Layout

T = TypeVar("T")

SEGMENTS = 4
BATCHES_AT_ONCE = 8
_TRANSACTION = 100
_TRANSACTION_BYTES = 3 * 2**20
"""Of lines: a transaction takes 4 MB of items."""
_OWN = ("LAYOUT", PROBE)
_OWN_KEYS: Sequence[Item] = [{"pk": {"S": name}, "sk": {"S": name}} for name in _OWN]

__all__ = ["SEGMENTS", "BadLine", "ImportRefused", "TableRow", "parse_row", "read_row"]


class ImportRefused(Conflict):
    """The table holds something else; the message says what and what to do."""


class TableRow(NamedTuple):
    """An item as its line, and its keys, by whose bytes rows are ordered."""

    pk: bytes
    sk: bytes
    line: bytes


def parse_row(line: bytes) -> TableRow:
    """The row of a line of an export; BadLine if it is none."""
    item = parse_line(line)
    return TableRow(item["pk"]["S"].encode(), item["sk"]["S"].encode(), line)


def read_row(line: bytes) -> TableRow:
    """The row of a line that was parsed before: a tenth of the work."""
    item = orjson.loads(line)
    return TableRow(item["pk"]["S"].encode(), item["sk"]["S"].encode(), line)


def _row(item: Item) -> TableRow:
    return TableRow(item["pk"]["S"].encode(), item["sk"]["S"].encode(), item_line(item))


def is_expired(row: TableRow, now: float) -> bool:
    """Whether the engine may have removed the item by itself."""
    ttl = orjson.loads(row.line).get(TTL, {}).get("N")
    return ttl is not None and float(ttl) < now


# ── reading ──


async def read_rows(
    table: Table, segment: int, start: bytes | None
) -> AsyncIterator[tuple[list[TableRow], bytes | None]]:
    """The pages of a segment; each with the position that the next one starts from, None after the last."""
    position = orjson.loads(start) if start else None
    async for items, end in scan_segment(table, segment, SEGMENTS, position):
        rows = [_row(item) for item in items if item["pk"]["S"] not in _OWN]
        yield rows, orjson.dumps(end) if end else None


async def count_rows(table: Table) -> int:
    counts = await asyncio.gather(*(count_items(table, segment, SEGMENTS) for segment in range(SEGMENTS)))
    return sum(counts) - len(await get_items(table, _OWN_KEYS))


async def lacking_rows(table: Table, rows: Sequence[TableRow]) -> list[TableRow]:
    """Those of the rows that the table does not have, or has in another version."""

    async def lacking(batch: Sequence[TableRow]) -> list[TableRow]:
        keys: list[Item] = [{"pk": {"S": row.pk.decode()}, "sk": {"S": row.sk.decode()}} for row in batch]
        stored = await get_items(table, keys)
        found = (stored.get((key["pk"]["S"], key["sk"]["S"])) for key in keys)
        return [row for row, item in zip(batch, found, strict=True) if item is None or item_line(item) != row.line]

    return [row for batch in await _in_batches(_mixed(rows, BATCH_READ), lacking) for row in batch]


# ── writing ──


async def write_rows(table: Table, rows: Sequence[TableRow], *, as_transactions: bool = False) -> None:
    """Write rows, in any order; what is stored under their keys is replaced.

    With `as_transactions` the embedded engine syncs its file once for each transaction instead of once for each item,
    which is 18 times as fast; DynamoDB takes twice the units.
    """

    async def write(batch: Sequence[TableRow]) -> None:
        put = put_as_transaction if as_transactions else put_items
        await put(table, [read_line(row.line) for row in batch])

    await _in_batches(_for_transactions(rows) if as_transactions else _mixed(rows, BATCH_WRITE), write)


def _mixed(rows: Sequence[TableRow], size: int) -> list[Sequence[TableRow]]:
    """Batches with rows from everywhere: neighbours share a partition key, which has its own limit."""
    count = -(-len(rows) // size)
    return [rows[first::count] for first in range(count)]


def _for_transactions(rows: Sequence[TableRow]) -> list[Sequence[TableRow]]:
    batches: list[list[TableRow]] = []
    size = _TRANSACTION_BYTES
    for row in rows:
        size += len(row.line)
        if size > _TRANSACTION_BYTES or len(batches[-1]) == _TRANSACTION:
            batches.append([])
            size = len(row.line)
        batches[-1].append(row)
    return list(batches)


async def _in_batches(
    batches: Sequence[Sequence[TableRow]], work: Callable[[Sequence[TableRow]], Awaitable[T]]
) -> list[T]:
    """Some batches at a time; after a failure no further one is begun."""
    limit = asyncio.Semaphore(BATCHES_AT_ONCE)

    async def limited(batch: Sequence[TableRow]) -> T:
        async with limit:
            return await work(batch)

    return await gather_or_cancel(limited(batch) for batch in batches)


# ── imports ──


async def begin_import(table: Table, checksum: str) -> int | None:
    """How many rows of this export are in the table already; None if all are, since its import was completed.

    Until the import is recorded as complete, the table cannot be served. ImportRefused if it holds anything else.
    """
    layout = await table.get(LAYOUT.at(), consistent=True)
    before = layout.imported if layout is not None else None
    if layout is not None and before == checksum:
        return layout.imported_items
    await require_empty(table)
    begun = Layout(CURRENT_LAYOUT, imported=checksum, imported_items=0)
    if not await _write_import(table, begun, where(imported=before, imported_items=None)):
        raise ImportRefused(f"Another import into the table {table.name} has just begun.")
    return 0


async def was_import_begun(table: Table) -> bool:
    """Whether the table was filled by an import, at least in part."""
    layout = await table.get(LAYOUT.at(), consistent=True)
    return layout is not None and layout.imported is not None


async def require_empty(table: Table) -> None:
    """ImportRefused if the table has a row, or another import has begun."""
    layout = await table.get(LAYOUT.at(), consistent=True)
    if layout is not None and layout.imported_items is not None:
        raise ImportRefused(
            f"The table {table.name} was filled in part from another export. Run that import again, or delete the "
            "table and create it again."
        )
    if not await _has_no_rows(table):
        raise ImportRefused(
            f"The table {table.name} is not empty. Choose an empty one: name it with RINGSIDE_TABLE, or with # at the "
            "end of a copy's URL; `ringside table create` makes it."
        )


async def _has_no_rows(table: Table) -> bool:
    async with aclosing(table.scan_items(at_once=10, consistent=True)) as items:
        async for item in items:
            if item["pk"]["S"] not in _OWN:
                return False
    return True


async def record_import(table: Table, checksum: str, before: int, after: int | None) -> None:
    """From here an interrupted import continues; with None it is complete, and the table can be served.

    ImportRefused unless its position is still `before`.
    """
    layout = Layout(CURRENT_LAYOUT, imported=checksum, imported_items=after)
    if not await _write_import(table, layout, where(imported=checksum, imported_items=before)):
        raise _outrun(table)


async def require_position(table: Table, checksum: str, items: int) -> None:
    """ImportRefused unless the import is under way with exactly this many items recorded."""
    layout = await table.get(LAYOUT.at(), consistent=True)
    if layout is None or (layout.imported, layout.imported_items) != (checksum, items):
        raise _outrun(table)


async def _write_import(table: Table, layout: Layout, when: Condition) -> bool:
    """Whether the layout is written, maybe by an attempt whose answer was lost."""
    try:
        await table.write(LAYOUT.put(layout, when=when))
    except ConditionFailed as failed:
        return failed.was_written(LAYOUT, layout)
    return True


def _outrun(table: Table) -> ImportRefused:
    return ImportRefused(
        f"Another run of this import has gone on with the table {table.name} meanwhile, or completed it, so this one "
        "stops. If members have written since it was completed, this run may have overwritten some of their changes: "
        "see docs/moving-data.md."
    )
