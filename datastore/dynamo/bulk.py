"""The whole table, item by item as it is stored: scanned in segments, written and compared in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datastore.dynamo.budgets import deadline
from datastore.dynamo.entity import ItemKey, Partition
from datastore.dynamo.retries import retry
from datastore.dynamo.table import BATCH_WRITE
from datastore.dynamo.writes import Delete

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from datastore.dynamo.attributes import Item
    from datastore.dynamo.table import Table


PATIENCE = 300.0
"""Seconds for which a throttled call, or one to an engine that is away, is repeated: nobody waits for an answer."""


async def scan_segment(
    table: Table, segment: int, segments: int, start: Item | None
) -> AsyncIterator[tuple[Sequence[Item], Item | None]]:
    """The pages of one segment of a consistent scan, each with the key that the next one starts after."""
    async for answer in _scan(table, segment, segments, start):
        yield answer["Items"], answer.get("LastEvaluatedKey")


async def count_items(table: Table, segment: int, segments: int) -> int:
    """How many items a segment has, by a consistent scan."""
    return sum([int(answer["Count"]) async for answer in _scan(table, segment, segments, None, Select="COUNT")])


async def _scan(
    table: Table, segment: int, segments: int, start: Item | None, **more: Any
) -> AsyncIterator[Mapping[str, Any]]:
    request = {"TableName": table.name, "ConsistentRead": True, "Segment": segment, "TotalSegments": segments, **more}
    while True:
        answer = await _patiently(table.client.scan, **request, **({"ExclusiveStartKey": start} if start else {}))
        yield answer
        start = answer.get("LastEvaluatedKey")
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


async def get_items(table: Table, keys: Sequence[Item]) -> Mapping[tuple[str, str], Item]:
    """What the table holds under up to 100 keys, by a consistent read."""
    with deadline(PATIENCE):
        items = await table.read_batch(keys, consistent=True)
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in items}


async def _patiently(call: Callable[..., Awaitable[Any]], **parameters: Any) -> Any:
    with deadline(PATIENCE):
        return await retry(call, **parameters)


async def clear_partition(table: Table, partition: Partition[Any]) -> None:
    """Delete every item between the bounds of a partition of the table, of whatever entity. Safe to repeat."""
    entity, batch = partition.entity, list[Delete]()
    async for sort in table.sort_keys_in("", partition):
        batch.append(entity.delete(ItemKey(entity, partition.pk, sort)))
        if len(batch) == BATCH_WRITE:
            await table.write_many(batch)
            batch.clear()
    await table.write_many(batch)
