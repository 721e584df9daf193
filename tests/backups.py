"""Writers beside a backup or an export: each transaction adds an item and counts it in another one.

A copy that holds a transaction in half has another number of items than it counts.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from datastore.dynamo import Table

WRITERS = 4


@asynccontextmanager
async def counting_writers(table: Table, size: int = 300) -> AsyncIterator[list[int]]:
    """Writes until the block ends; the list holds how many transactions of each writer were acknowledged."""
    done, stop = [0] * WRITERS, asyncio.Event()

    async def write(writer: int) -> None:
        for number in count():
            if stop.is_set():
                return
            await table.client.transact_write_items(TransactItems=_transaction(table.name, writer, number, "x" * size))
            done[writer] += 1

    writers = [asyncio.create_task(write(writer)) for writer in range(WRITERS)]
    try:
        while not all(done) and not any(writer.done() for writer in writers):
            await asyncio.sleep(0.01)
        yield done
    finally:
        stop.set()
        await asyncio.gather(*writers)


def _transaction(table: str, writer: int, number: int, filling: str) -> list[dict[str, object]]:
    item = {"pk": {"S": f"COUNTED#{writer}"}, "sk": {"S": f"{number:09d}"}, "filling": {"S": filling}}
    return [
        {"Put": {"TableName": table, "Item": item}},
        {
            "Update": {
                "TableName": table,
                "Key": {"pk": {"S": "COUNTS"}, "sk": {"S": f"{writer}"}},
                "UpdateExpression": "ADD counted :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            }
        },
    ]


async def counted(table: Table) -> tuple[int, int]:
    """How many items the counts say that there are, and how many there are."""
    said = found = 0
    async for item in table.scan_items(consistent=True):
        if item["pk"]["S"] == "COUNTS":
            said += int(item["counted"]["N"])
        found += item["pk"]["S"].startswith("COUNTED#")
    return said, found
