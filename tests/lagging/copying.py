"""Copies a table that exists already to the engine that follows."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

Post = Callable[[str, str, bytes], Awaitable[dict[str, Any]]]
"""Sends an operation to an engine."""

_INDEX_FIELDS: Final = ("IndexName", "KeySchema", "Projection")
_BATCH: Final = 25


async def copy_table(post: Post, leader: str, follower: str, name: str) -> None:
    """Create the leader's table in the follower and put its items there. A table that the leader lacks is skipped."""
    described = (await post(leader, "DescribeTable", orjson.dumps({"TableName": name}))).get("Table")
    if described is None:
        return
    indexes = [{part: index[part] for part in _INDEX_FIELDS} for index in described.get("GlobalSecondaryIndexes", ())]
    definition = {part: described[part] for part in ("TableName", "KeySchema", "AttributeDefinitions")}
    definition |= {"BillingMode": "PAY_PER_REQUEST"} | ({"GlobalSecondaryIndexes": indexes} if indexes else {})
    await post(follower, "CreateTable", orjson.dumps(definition))
    start: dict[str, Any] = {}
    while True:
        page = await post(leader, "Scan", orjson.dumps({"TableName": name, "ConsistentRead": True, **start}))
        puts = [{"PutRequest": {"Item": item}} for item in page["Items"]]
        for begin in range(0, len(puts), _BATCH):
            request = {"RequestItems": {name: puts[begin : begin + _BATCH]}}
            await post(follower, "BatchWriteItem", orjson.dumps(request))
        if "LastEvaluatedKey" not in page:
            return
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
