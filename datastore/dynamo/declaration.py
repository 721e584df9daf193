"""The one declaration of the table, from which it is created and checked; tests compare `deploy/table.*` with it.

Generic keys `pk` and `sk`; three sparse secondary indexes that project everything; a time to live in `ttl`.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from datastore.dynamo.entity import INDEXES, TTL
from datastore.dynamo.errors import Rejected
from datastore.dynamo.retries import retry
from datastore.dynamo.table import Table

PROBE = "PROBE"
"""The partition of the items with which an engine is tried."""
_UNKNOWN_SECONDS = 30.0
KEY_ATTRIBUTES = ("pk", "sk", *(f"{index}{part}" for index in INDEXES for part in ("pk", "sk")))


def _schema(prefix: str = "") -> list[dict[str, str]]:
    return [
        {"AttributeName": f"{prefix}pk", "KeyType": "HASH"},
        {"AttributeName": f"{prefix}sk", "KeyType": "RANGE"},
    ]


def definition(name: str) -> dict[str, Any]:
    """The table as `CreateTable` takes it."""
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in KEY_ATTRIBUTES],
        "KeySchema": _schema(),
        "GlobalSecondaryIndexes": [
            {"IndexName": index, "KeySchema": _schema(index), "Projection": {"ProjectionType": "ALL"}}
            for index in INDEXES
        ],
    }


async def create(table: Table) -> bool:
    """Create the table unless it exists, and wait until it can be used. Return whether it was created.

    The time to live is set in a second step, also of a table of which an earlier call could only do the first. A table
    that is not like the declared one is somebody else's, and left alone.
    """
    created = True
    try:
        await retry(table.client.create_table, **definition(table.name))
    except Rejected as rejected:
        if rejected.code != "ResourceInUseException":
            raise
        created = False
    unknown_until = time.monotonic() + _UNKNOWN_SECONDS if created else 0.0
    # Nothing tells when: it can only be polled.
    while (described := await _described(table, unknown_until)).get("TableStatus") != "ACTIVE":  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    if not differences(described) and not await removes_expired_items(table):
        wanted = {"Enabled": True, "AttributeName": TTL}
        await retry(table.client.update_time_to_live, TableName=table.name, TimeToLiveSpecification=wanted)
    return created


async def _described(table: Table, unknown_until: float) -> Mapping[str, Any]:
    """The table's description; an empty one while DynamoDB may not know yet that it has created it."""
    try:
        return await table.describe()
    except Rejected as rejected:
        if rejected.code != "ResourceNotFoundException" or time.monotonic() > unknown_until:
            raise
        return {}


async def removes_expired_items(table: Table) -> bool:
    """Whether the table's time to live is on. DynamoDB restores a table without it."""
    answer = await retry(table.client.describe_time_to_live, TableName=table.name)
    return answer["TimeToLiveDescription"].get("TimeToLiveStatus") in ("ENABLED", "ENABLING")


def differences(described: Mapping[str, Any]) -> list[str]:
    """The differences between a described table and the declared one; empty if the table can be used."""
    wanted = definition(str(described.get("TableName", "")))
    different: list[str] = []
    if described.get("KeySchema") != wanted["KeySchema"]:
        different.append(f"its keys are {_keys(described.get('KeySchema', ()))}, not pk (hash) and sk (range)")
    types = {entry["AttributeName"]: entry["AttributeType"] for entry in described.get("AttributeDefinitions", ())}
    different += [
        f"its key attribute {key} is of type {types[key]}, not S (text)"
        for key in KEY_ATTRIBUTES
        if types.get(key, "S") != "S"
    ]
    indexes = {index["IndexName"]: index for index in described.get("GlobalSecondaryIndexes", ())}
    for index in wanted["GlobalSecondaryIndexes"]:
        name = index["IndexName"]
        if name not in indexes:
            different.append(f"its secondary index {name} is missing")
        elif indexes[name]["KeySchema"] != index["KeySchema"]:
            different.append(f"its secondary index {name} has the keys {_keys(indexes[name]['KeySchema'])}")
        elif indexes[name].get("Projection", {}).get("ProjectionType") != "ALL":
            different.append(f"its secondary index {name} does not project all attributes")
    if described.get("MultiRegionConsistency") == "STRONG":
        different.append("it is a global table with multi-Region strong consistency, which has no transactions")
    return different


def _keys(schema: Any) -> str:
    return " and ".join(f"{entry['AttributeName']} ({entry['KeyType'].lower()})" for entry in schema) or "missing"


async def refuses_transactions(table: Table) -> str | None:
    """The reason why an engine cannot be used: it has no transactions. None if it has them.

    Rejected if it only does not let this process use them.
    """
    probe = {"pk": {"S": PROBE}, "sk": {"S": PROBE}}
    check = {"TableName": table.name, "Key": probe, "ConditionExpression": "attribute_not_exists(pk)"}
    try:
        await retry(lambda: table.client.transact_write_items(TransactItems=[{"ConditionCheck": check}]))
    except Rejected as refused:
        if refused.is_denied:
            raise
        return str(refused)
    return None


async def probe_write(table: Table) -> None:
    """Write and remove an item of 64 KB: a DynamoError if the engine cannot store it."""
    key = {"pk": {"S": PROBE}, "sk": {"S": PROBE}}
    await retry(table.client.put_item, TableName=table.name, Item={**key, "filling": {"S": "0" * 65_536}})
    await retry(table.client.delete_item, TableName=table.name, Key=key)
