"""What a request to DynamoDB touches: the items it writes, the partition keys it reads. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from datastore.dynamo.attributes import Item
from tests.lagging.capacity import INDEXES, PartitionKey
from tests.lagging.replica import ItemName

Body = Mapping[str, Any]

_EQUALS = re.compile(r"(#?\w+)\s*=\s*(:\w+)")
TRANSACTIONAL_FACTOR = 2


def written(operation: str, body: Body) -> list[tuple[ItemName, Body]]:
    """Each item that a request writes or checks, with the action on it, in the request's order."""
    return [(_name(action), action) for action in _actions(operation, body)]


def table_names(operation: str, body: Body) -> set[str]:
    """The tables that a request names."""
    if operation in ("BatchWriteItem", "BatchGetItem"):
        return set(body["RequestItems"])
    if operation == "TransactWriteItems":
        return {name.table for name, _ in written(operation, body)}
    return {body["TableName"]} if "TableName" in body else set()


def _actions(operation: str, body: Body) -> Iterator[Body]:
    match operation:
        case "PutItem" | "UpdateItem" | "DeleteItem":
            yield body
        case "TransactWriteItems":
            for entry in body["TransactItems"]:
                yield from entry.values()
        case "BatchWriteItem":
            for table, entries in body["RequestItems"].items():
                for entry in entries:
                    (action,) = entry.values()
                    yield {**action, "TableName": table}


def _name(action: Body) -> ItemName:
    key = action.get("Key") or action["Item"]
    return ItemName(action["TableName"], key["pk"]["S"], key["sk"]["S"])


def index_keys_set(action: Body) -> Iterator[PartitionKey]:
    """The index partitions that an action names: a put's own, and those that an update sets."""
    for index in INDEXES:
        attribute = f"{index}pk"
        if attribute in action.get("Item", {}):
            yield PartitionKey(index, action["Item"][attribute]["S"])
        names = action.get("ExpressionAttributeNames", {})
        values = action.get("ExpressionAttributeValues", {})
        for name, value in _EQUALS.findall(action.get("UpdateExpression", "")):
            if names.get(name, name) == attribute:
                yield PartitionKey(index, values[value]["S"])


def queried_partition(body: Body) -> PartitionKey:
    """The partition that a Query reads."""
    index = body.get("IndexName", "")
    names, values = body.get("ExpressionAttributeNames", {}), body["ExpressionAttributeValues"]
    for name, value in _EQUALS.findall(body["KeyConditionExpression"]):
        if names.get(name, name) == f"{index}pk":
            return PartitionKey(index, values[value]["S"])
    raise ValueError(f"This query names no partition: {body['KeyConditionExpression']}")


def got_keys(operation: str, body: Body) -> list[tuple[str, Item, bool]]:
    """Table, key and consistency of each item that a request gets by its key."""
    if operation == "GetItem":
        return [(body["TableName"], body["Key"], body.get("ConsistentRead", False))]
    return [
        (table, key, asked.get("ConsistentRead", False))
        for table, asked in body["RequestItems"].items()
        for key in asked["Keys"]
    ]
