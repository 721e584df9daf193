"""The whole table as lines, one for each item, to export it and to fill another table with it.

| wanted                          | read or write                                            | requests            |
|---------------------------------|----------------------------------------------------------|---------------------|
| the lines                       | Scan, consistent                                         | 1 per 1,000 or 1 MB |
| write lines                     | BatchWriteItem, at most `BATCHES_AT_ONCE` at a time      | 1 per 25 items      |
| the same, embedded              | TransactWriteItems                                       | 1 per 100 items     |
| begin, record, end an import    | GetItem, Scan of a few items, PutItem LAYOUT LAYOUT      | 4, 1, 1             |

A Scan is no snapshot: each of its pages shows a later moment. The lines leave out the items that are about the table
itself: its layout, and the one with which an engine is tried.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple

import orjson

from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.attributes import Item
from datastore.dynamo.bulk import item_line, put_as_transaction, put_items, read_line, scan_pages
from datastore.dynamo.declaration import PROBE
from datastore.dynamo.entity import TTL
from datastore.dynamo.retries import chunks, gather_or_cancel
from datastore.dynamo.table import BATCH_WRITE
from datastore.dynamo.writes import where
from datastore.refusals import Conflict
from datastore.whole.layout import CURRENT_LAYOUT, LAYOUT, Layout, read_layout

# ── rows ──

PAGE = 1_000
BATCHES_AT_ONCE = 8
_TRANSACTION = 100
_SAFE_TRANSACTION = 9
"""Items of any size that a transaction takes: an item has 400 KB, and a transaction 4 MB."""
_TRANSACTION_BYTES = 9 * 400_000
_OWN = ("LAYOUT", PROBE)


class ImportRefused(Conflict):
    """The table holds something else; the message says what and what to do."""


class TableRow(NamedTuple):
    """An item as its line, and its keys, by whose bytes rows are ordered."""

    pk: bytes
    sk: bytes
    line: bytes


def is_expired(line: bytes, by: float) -> bool:
    """Whether the engine may have removed the item by itself, by then."""
    ttl = orjson.loads(line).get(TTL, {}).get("N")
    return ttl is not None and float(ttl) < by


@dataclass(slots=True)
class Fingerprint:
    """Equal for equal lines in any order, leaving out items that expire before `by`: the engine may remove those."""

    by: float
    items: int = 0
    checksum: int = 0

    def add(self, line: bytes) -> None:
        if not is_expired(line, self.by):
            self.items += 1
            self.checksum = (self.checksum + int.from_bytes(sha256(line).digest())) % 2**256


async def read_pages(table: Table, start: bytes | None = None) -> AsyncIterator[tuple[list[TableRow], bytes | None]]:
    """The rows, each page with the position that the next one starts from: None after the last."""
    async for items, end in scan_pages(table, PAGE, orjson.loads(start) if start else None):
        rows = [_row(item) for item in items if item["pk"]["S"] not in _OWN]
        yield rows, orjson.dumps(end) if end else None


def _row(item: Item) -> TableRow:
    return TableRow(item["pk"]["S"].encode(), item["sk"]["S"].encode(), item_line(item))


async def write_lines(table: Table, lines: Sequence[bytes], *, as_transactions: bool = False) -> None:
    """Write items, in any order; what is stored under their keys is replaced.

    With `as_transactions` the embedded engine syncs its file once for each transaction instead of once for each item,
    which is 18 times as fast; DynamoDB takes twice the units.
    """
    put = put_as_transaction if as_transactions else put_items
    batches = _for_transactions(lines) if as_transactions else _mixed(lines)
    await gather_or_cancel((put(table, [*map(read_line, batch)]) for batch in batches), BATCHES_AT_ONCE)


def _mixed(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Batches with items from everywhere: neighbours share a partition key, which has its own limit."""
    count = -(-len(lines) // BATCH_WRITE)
    return (lines[first::count] for first in range(count))


def _for_transactions(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for some in chunks(lines, _TRANSACTION):
        is_small = sum(map(len, some)) <= _TRANSACTION_BYTES
        yield from [some] if is_small else chunks(some, _SAFE_TRANSACTION)


# ── imports ──


async def begin_import(table: Table, checksum: str) -> Layout:
    """The state of this export's import; it is completed unless it says how many items are in the table.

    Until then the table cannot be served. ImportRefused if it holds anything else.
    """
    state = await read_layout(table)
    if state is not None and state.imported == checksum:
        return state
    await require_empty(table)
    return await _replace_state(table, state, Layout(CURRENT_LAYOUT, imported=checksum, imported_items=0))


async def record_import(table: Table, state: Layout, items: int | None) -> Layout:
    """From here an interrupted import continues; with None it is complete, and the table can be served.

    ImportRefused unless the table's state is still this one.
    """
    return await _replace_state(table, state, replace(state, imported_items=items))


async def _replace_state(table: Table, before: Layout | None, after: Layout) -> Layout:
    imported, items = (before.imported, before.imported_items) if before is not None else (None, None)
    try:
        await table.write(LAYOUT.put(after, when=where(imported=imported, imported_items=items)))
    except ConditionFailed as failed:
        if not failed.was_written(LAYOUT, after):
            raise ImportRefused(
                f"Another import into the table {table.name} has begun, gone on or ended meanwhile, so this one stops. "
                "If members have written since it was completed, this run may have overwritten some of their changes: "
                "see docs/moving-data.md."
            ) from None
    return after


async def require_empty(table: Table) -> None:
    """ImportRefused if the table has an item, or another import has begun."""
    state = await read_layout(table)
    if state is not None and state.imported_items is not None:
        raise ImportRefused(
            f"The table {table.name} was filled in part from another export. Run that import again, or delete the "
            "table and create it again."
        )
    async with aclosing(table.scan_items(at_once=10, consistent=True)) as items:
        async for item in items:
            if item["pk"]["S"] not in _OWN:
                raise ImportRefused(
                    f"The table {table.name} is not empty. Choose an empty one: name it with RINGSIDE_TABLE, or with "
                    "# at the end of a copy's URL; `ringside table create` makes it."
                )
