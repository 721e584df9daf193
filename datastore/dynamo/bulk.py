"""The whole table, item by item as it is stored: scanned, and written in batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from datastore.dynamo.attributes import Item
from datastore.dynamo.budgets import deadline
from datastore.dynamo.concurrency import batches
from datastore.dynamo.entity import ItemKey, Partition
from datastore.dynamo.retries import retry
from datastore.dynamo.table import BATCH_WRITE, Table

PATIENCE = 300.0
"""Seconds for which a throttled call, or one to an engine that is away, is repeated: nobody waits for an answer."""


async def scan_pages(table: Table, limit: int, start: Item | None) -> AsyncIterator[tuple[Sequence[Item], Item | None]]:
    """The pages of a consistent scan, each with the key that the next one starts after."""
    request: dict[str, Any] = {"TableName": table.name, "ConsistentRead": True, "Limit": limit}
    while True:
        more = {"ExclusiveStartKey": start} if start else {}
        answer = await _patiently(table.client.scan, **request, **more)
        start = answer.get("LastEvaluatedKey")
        yield answer["Items"], start
        if start is None:
            return


async def put_items(table: Table, items: Sequence[Item]) -> None:
    """Write a batch of up to 25 items."""
    with deadline(PATIENCE):
        await table.write_batch([{"PutRequest": {"Item": item}} for item in items])


async def put_as_transaction(table: Table, items: Sequence[Item]) -> None:
    """Write up to 100 items, of 4 MB in all, in one transaction."""
    puts = [{"Put": {"TableName": table.name, "Item": item}} for item in items]
    await _patiently(table.client.transact_write_items, TransactItems=puts)


async def _patiently(call: Callable[..., Awaitable[Any]], **parameters: Any) -> Any:
    with deadline(PATIENCE):
        return await retry(call, **parameters)


async def clear_partition(table: Table, partition: Partition[Any]) -> None:
    """Delete every item between the bounds of a partition of the table, of whatever entity. Safe to repeat."""
    entity = partition.entity
    async for sorts in batches(table.sort_keys_in("", partition), BATCH_WRITE):
        await table.write_many(entity.delete(ItemKey(entity, partition.pk, sort)) for sort in sorts)
