"""Tables of other layouts: read as plain values, and written only as test data for a migration."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from datastore.dynamo.errors import Throttled
from datastore.dynamo.retries import retry

if TYPE_CHECKING:
    from datastore.dynamo.table import Table


async def foreign_rows(table: Table) -> AsyncIterator[Mapping[str, Any]]:
    """Every item of a table with any keys, as plain values; in constant memory."""
    async for item in table.scan_items():
        yield {name: _plain(attribute) for name, attribute in item.items()}


def _plain(attribute: Mapping[str, Any]) -> Any:
    kind, value = next(iter(attribute.items()))
    if kind == "M":
        return {name: _plain(inner) for name, inner in value.items()}
    if kind == "L":
        return [_plain(inner) for inner in value]
    return None if kind == "NULL" else value


async def create_foreign(table: Table, partition: str, sort: str) -> None:
    """Create a table with these keys, as test data for a migration."""
    await table.client.create_table(
        TableName=table.name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": partition, "KeyType": "HASH"},
            {"AttributeName": sort, "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": partition, "AttributeType": "S"},
            {"AttributeName": sort, "AttributeType": "S"},
        ],
    )


async def write_foreign(table: Table, items: Iterable[Mapping[str, Any]]) -> None:
    """Write the items of such a table."""
    remaining = iter(items)
    while batch := [{"PutRequest": {"Item": item}} for item in islice(remaining, 25)]:
        await _write_batch(table, batch)


async def _write_batch(table: Table, batch: Sequence[Mapping[str, Any]]) -> None:
    unprocessed: Mapping[str, Any] = {table.name: batch}

    async def write() -> None:
        nonlocal unprocessed
        unprocessed = (await table.client.batch_write_item(RequestItems=unprocessed)).get("UnprocessedItems") or {}
        if unprocessed:
            raise Throttled("a part of a batch was not written")

    await retry(write)
