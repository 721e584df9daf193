"""Tables of other layouts: read as plain values; written only to make up data for trials."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from datastore.dynamo.retries import persist

if TYPE_CHECKING:
    from datastore.dynamo.table import Table


async def foreign_rows(table: Table) -> AsyncIterator[Mapping[str, Any]]:
    """Every item of a table of whatever keys, in flat memory, each attribute as text, number, bool, list or mapping."""
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
    """A table with these keys: for data made to try a migration out."""
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
    """Items for such a table."""
    rest = iter(items)
    while batch := [{"PutRequest": {"Item": item}} for item in islice(rest, 25)]:
        left: Mapping[str, Any] = {table.name: batch}
        while left:
            answer = await persist(table.client.batch_write_item, RequestItems=left)
            left = answer.get("UnprocessedItems") or {}
