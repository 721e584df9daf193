"""A proxy in front of two engines that together behave like DynamoDB.

    async with LaggingEngine(leader.url, follower.url, seed=7) as engine:
        client(engine.url)
        await engine.catch_up()                 every index and every read shows what was written
        engine.ledger.hottest_write()           the partition key with the most units in a second

Writes go to the leader. Each item touched is read back and applied to the follower after a lag of its own. Index
queries, index scans and a share of the reads that did not ask for consistency are answered by the follower. With
`limits`, an empty bucket of a partition key throttles what would use it, as DynamoDB does: transactions with
`ThrottlingError`, batches by partial processing, writes also for the sake of a full index. The faults of
`tests/fault/proxy.py` apply on top.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from random import Random
from typing import Any, Final, cast

import orjson

from datastore.dynamo.attributes import Item
from tests.fault import faults
from tests.fault.faults import BATCHES, JSON, WRITES, Answer, Body
from tests.fault.proxy import Proxy
from tests.lagging.capacity import Capacity, Ledger, Limits, PartitionKey, partition_keys, read_units, write_units
from tests.lagging.copying import copy_table
from tests.lagging.replica import ItemName, Lag, Replica
from tests.lagging.requests import (
    TRANSACTIONAL_FACTOR,
    got_keys,
    index_keys_set,
    queried_partition,
    table_names,
    written,
)

CATCH_UP: Final = "CatchUp"
"""An operation of this engine alone: let every index and every read show everything written so far."""
SCHEMA: Final = {"CreateTable", "DeleteTable", "UpdateTimeToLive"}
WRITING: Final = {*WRITES, "TransactWriteItems", "BatchWriteItem"}
GETTING: Final = {"GetItem", "BatchGetItem"}
THROTTLED: Final = faults.refused("ProvisionedThroughputExceededException", "The partition's throughput is exceeded.")


class LaggingEngine(Proxy):
    """Two engines as one table in the cloud."""

    def __init__(
        self,
        leader: str,
        follower: str,
        *,
        seed: int = 0,
        lag: Lag | None = None,
        limits: Limits | None = None,
        delay: float = 0.0,
        **proxy: Any,
    ) -> None:
        super().__init__(leader, seed=seed, **proxy)
        self.delay = delay
        self.throttled = 0
        self.now = time.monotonic
        self._follower = follower
        self._capacity = Capacity(limits)
        self._stale = Random(f"stale {seed}")
        self._replica = Replica(lag or Lag(), seed, self._put, self._delete)
        self._reading_back: dict[ItemName, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._followed: dict[str, asyncio.Task[None]] = {}

    @property
    def ledger(self) -> Ledger:
        return self._capacity.ledger

    async def catch_up(self) -> None:
        """Let every index and every read show everything written so far."""
        await self._replica.catch_up()

    async def __aexit__(self, *_: object) -> None:
        await self._replica.close()
        await super().__aexit__(*_)

    async def _forward(self, raw: bytes, headers: dict[str, str]) -> Answer:
        operation = headers.get("X-Amz-Target", headers.get("x-amz-target", "")).rpartition(".")[2]
        if self.delay:
            await asyncio.sleep(self.delay)
        body = orjson.loads(raw)
        if operation == CATCH_UP:
            await self.catch_up()
            return Answer(200, b"{}", JSON)
        if operation in SCHEMA:
            self._followed[body["TableName"]] = asyncio.create_task(asyncio.sleep(0))
            await self._post(self._follower, operation, raw)
            return await super()._forward(raw, headers)
        await self._follow_tables(operation, body)
        if operation in WRITING:
            return await self._write(operation, body, headers)
        if operation in GETTING:
            return await self._get(operation, body, headers)
        if operation in ("Query", "Scan"):
            return await self._search(operation, body, headers)
        return await super()._forward(raw, headers)

    # ── writes ──

    async def _write(self, operation: str, body: Body, headers: dict[str, str]) -> Answer:
        actions = written(operation, body)
        before = {name: await self._image(name) for name, _ in actions}
        full = [not self._admit(before[name], action) for name, action in actions]
        left: Body = {}
        if any(full):
            self.throttled += 1
            if operation not in BATCHES or all(full):
                return _throttled(operation, full)
            body, left = _split(operation, body, full)
        answer = await super()._forward(orjson.dumps(body), headers)
        if answer.status >= 500 or answer.status == 200:  # what failed may have been applied
            factor = TRANSACTIONAL_FACTOR if operation == "TransactWriteItems" else 1
            sent = [name for (name, _), is_full in zip(actions, full, strict=True) if not is_full]
            await asyncio.gather(*(self._follow_up(name, before[name], factor) for name in sent))
        return faults.with_unprocessed(operation, answer, left)

    async def _image(self, name: ItemName) -> Item | None:
        if name in self._replica.latest:
            return self._replica.latest[name]
        return await self._read_back(name)

    async def _read_back(self, name: ItemName) -> Item | None:
        asked = {
            "TableName": name.table,
            "Key": {"pk": {"S": name.pk}, "sk": {"S": name.sk}},
            "ConsistentRead": True,
        }
        said = await self._post(self._engine, "GetItem", orjson.dumps(asked))
        return cast("Item | None", said.get("Item"))

    def _admit(self, before: Item | None, action: Mapping[str, Any]) -> bool:
        name = action.get("Key") or action["Item"]
        keys = {PartitionKey("", name["pk"]["S"]), *partition_keys(before), *index_keys_set(action)}
        return self._capacity.admit_write(keys, self.now())

    async def _follow_up(self, name: ItemName, old: Item | None, factor: int) -> None:
        """Read an item back and hand it to the follower; one at a time per item, so that images keep their order."""
        async with self._reading_back[name]:
            new = await self._read_back(name)
            self._capacity.count_writes(write_units(name.pk, old, new, factor=factor), self.now())
            # Another write may have been followed up since `old` was read.
            if self._replica.latest.get(name, old) != new:
                self._replica.change(name, new)

    # ── reads ──

    async def _get(self, operation: str, body: Body, headers: dict[str, str]) -> Answer:
        keys = got_keys(operation, body)
        partitions = [PartitionKey("", key["pk"]["S"]) for _, key, _ in keys]
        full = [not self._capacity.admit_read(partition, self.now()) for partition in partitions]
        left: Body = {}
        if any(full):
            self.throttled += 1
            if operation == "GetItem" or all(full):
                return THROTTLED
            body, left = _split(operation, body, full)
        consistent = any(wanted for _, _, wanted in keys)
        engine = self._follower if not consistent and self._is_stale() else self._engine
        answer = await self._answer_from(engine, operation, body, headers)
        for table, key, wanted in keys:
            image = self._replica.latest.get(ItemName(table, key["pk"]["S"], key["sk"]["S"]))
            units = read_units(image, consistent=wanted)
            self._capacity.count_read(PartitionKey("", key["pk"]["S"]), units, self.now())
        return faults.with_unprocessed(operation, answer, left)

    async def _search(self, operation: str, body: Body, headers: dict[str, str]) -> Answer:
        on_index = "IndexName" in body
        partition = queried_partition(body) if operation == "Query" else None
        if partition and not self._capacity.admit_read(partition, self.now()):
            self.throttled += 1
            return THROTTLED
        behind = on_index or (not body.get("ConsistentRead") and self._is_stale())
        engine = self._follower if behind else self._engine
        answer = await self._answer_from(engine, operation, {**body, "ReturnConsumedCapacity": "TOTAL"}, headers)
        if partition and answer.status == 200:
            units = orjson.loads(answer.body).get("ConsumedCapacity", {}).get("CapacityUnits", 0.5)
            self._capacity.count_read(partition, units, self.now())
        return answer

    def _is_stale(self) -> bool:
        return self._stale.random() < self._replica.lag.stale

    # ── the two engines ──

    async def _follow_tables(self, operation: str, body: Body) -> None:
        """Copy tables that were made and filled without this proxy, before their first use through it."""
        for name in table_names(operation, body):
            if name not in self._followed:
                copying = copy_table(self._post, self._engine, self._follower, name)
                self._followed[name] = asyncio.create_task(copying)
            await asyncio.shield(self._followed[name])

    async def _answer_from(self, engine: str, operation: str, body: Body, headers: dict[str, str]) -> Answer:
        if engine == self._engine:
            return await super()._forward(orjson.dumps(body), headers)
        async with self._session.post(engine, data=orjson.dumps(body), headers=_headers(operation)) as response:
            return Answer(response.status, await response.read(), JSON)

    async def _post(self, engine: str, operation: str, raw: bytes) -> dict[str, Any]:
        async with self._session.post(engine, data=raw, headers=_headers(operation)) as response:
            return cast("dict[str, Any]", orjson.loads(await response.read()))

    async def _put(self, table: str, item: Item) -> None:
        await self._post(self._follower, "PutItem", orjson.dumps({"TableName": table, "Item": item}))

    async def _delete(self, table: str, key: Item) -> None:
        await self._post(self._follower, "DeleteItem", orjson.dumps({"TableName": table, "Key": key}))


def _headers(operation: str) -> dict[str, str]:
    """What an engine wants of a request of ours; local engines do not look at the signature itself."""
    return {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": "AWS4-HMAC-SHA256 Credential=tests/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host, Signature=0",
        "X-Amz-Date": "20260101T000000Z",
    }


def _throttled(operation: str, full: list[bool]) -> Answer:
    if operation != "TransactWriteItems":
        return THROTTLED
    reason = {"Code": "ThrottlingError", "Message": "Throughput exceeds the current capacity."}
    held = [reason if is_full else {"Code": "None"} for is_full in full]
    return faults.cancelled(held)


def _split(operation: str, body: Body, full: list[bool]) -> tuple[Body, Body]:
    """The part of a batch that has room, and the part that is left, in the same shape."""
    done: dict[str, Any] = {}
    left: dict[str, Any] = {}
    places = iter(full)
    for table, asked in body["RequestItems"].items():
        entries = asked["Keys"] if operation == "BatchGetItem" else asked
        for entry in entries:
            target = left if next(places) else done
            target.setdefault(table, []).append(entry)
    if operation == "BatchGetItem":
        asked = body["RequestItems"]
        done = {table: {**asked[table], "Keys": keys} for table, keys in done.items()}
        left = {table: {**asked[table], "Keys": keys} for table, keys in left.items()}
    return {**body, "RequestItems": done}, left
