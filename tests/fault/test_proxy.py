"""The proxy does to a client what it says, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from tests.engines import RunningEngine, sdk_client
from tests.fault.faults import Fault
from tests.fault.proxy import Proxy
from tests.waiting import LONGEST, until

NO_ANSWER = BotoCoreError


class Items:
    """A table as seen through the proxy."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self.dynamodb = dynamodb
        self.table = table

    async def put(self, key: str, **more: Any) -> None:
        """Write one item."""
        await self.dynamodb.put_item(TableName=self.table, Item=_key(key), **more)

    async def put_all(self, *keys: str, new: bool = False) -> None:
        """Write several in one transaction, which may insist that none was there."""
        condition = {"ConditionExpression": "attribute_not_exists(pk)"} if new else {}
        puts = [{"Put": {"TableName": self.table, "Item": _key(key), **condition}} for key in keys]
        await self.dynamodb.transact_write_items(TransactItems=puts)

    async def keys(self) -> list[str]:
        """Read what is there, page by page."""
        pages = self.dynamodb.get_paginator("query").paginate(
            TableName=self.table,
            ConsistentRead=True,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": "all"}},
        )
        return [item["sk"]["S"] async for page in pages for item in page["Items"]]


def _key(key: str) -> dict[str, dict[str, str]]:
    return {"pk": {"S": "all"}, "sk": {"S": key}}


@pytest.fixture
async def proxy(default_engine: RunningEngine) -> AsyncIterator[Proxy]:
    """Good weather, until a test expects something else."""
    async with Proxy(default_engine.url, record=True) as one:
        yield one


@pytest.fixture
async def items(proxy: Proxy, table_name: str) -> AsyncIterator[Items]:
    """An empty table."""
    async with sdk_client(proxy.url) as dynamodb:
        await dynamodb.create_table(
            TableName=table_name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        )
        proxy.reset_counts()
        yield Items(dynamodb, table_name)


async def _code(doing: Awaitable[object]) -> str:
    with pytest.raises(ClientError) as refused:
        await doing
    return str(refused.value.response["Error"]["Code"])


async def _reasons(doing: Awaitable[object]) -> list[str]:
    with pytest.raises(ClientError) as refused:
        await doing
    return [reason["Code"] for reason in refused.value.response["CancellationReasons"]]


async def test_without_faults_nothing_is_changed(proxy: Proxy, items: Items) -> None:
    """What is asked is counted and recorded, what is answered is the engine's."""
    await items.put("a")
    await items.put_all("b", "c")
    assert await items.keys() == ["a", "b", "c"]
    assert proxy.requests == {"PutItem": 1, "TransactWriteItems": 1, "Query": 1}
    assert not proxy.faults
    operation, body = proxy.recorded[0]
    assert (operation, body["Item"]) == ("PutItem", _key("a"))


async def test_a_throttled_write_is_not_applied(proxy: Proxy, items: Items) -> None:
    """A transaction is throttled as a whole, or for one of its items."""
    proxy.inject(Fault.THROTTLED)
    assert await _code(items.put("a")) == "ProvisionedThroughputExceededException"
    codes = set()
    for _ in range(20):
        proxy.inject(Fault.THROTTLED)
        codes.add(await _code(items.put_all("a", "b")))
    assert codes == {"ProvisionedThroughputExceededException", "TransactionCanceledException"}
    assert await items.keys() == []
    assert proxy.faults == {Fault.THROTTLED: 21}


@pytest.mark.parametrize(("fault", "there"), [(Fault.FAILED_BEFORE, []), (Fault.FAILED_AFTER, ["a"])])
async def test_a_server_error_does_not_tell_whether_a_write_was_applied(
    proxy: Proxy, items: Items, fault: Fault, there: list[str]
) -> None:
    """The answer is the same, before and after."""
    proxy.inject(fault)
    assert await _code(items.put("a")) == "InternalServerError"
    assert await items.keys() == there


@pytest.mark.parametrize(("fault", "there"), [(Fault.RESET_BEFORE, []), (Fault.RESET_AFTER, ["a"])])
async def test_a_reset_does_not_tell_whether_a_write_was_applied(
    proxy: Proxy, items: Items, fault: Fault, there: list[str]
) -> None:
    """There is no answer, before and after; the next request gets one."""
    proxy.inject(fault)
    with pytest.raises(NO_ANSWER):
        await items.put("a")
    assert await items.keys() == there


async def test_a_conflict_cancels_the_whole_transaction(proxy: Proxy, items: Items) -> None:
    """One of its items is held by somebody else."""
    proxy.inject(Fault.CONFLICT)
    assert sorted(await _reasons(items.put_all("a", "b"))) == ["None", "TransactionConflict"]
    assert await items.keys() == []


async def test_a_conflict_may_come_with_a_failed_condition(proxy: Proxy, items: Items) -> None:
    """Only where there is a condition that could fail: a transaction without any is left alone."""
    proxy.inject(Fault.MIXED_CONFLICT)
    await items.put_all("a", "b")
    assert sorted(await _reasons(items.put_all("c", "d", new=True))) == [
        "ConditionalCheckFailed",
        "TransactionConflict",
    ]
    assert await items.keys() == ["a", "b"]


async def test_an_injected_fault_waits_for_its_operation(proxy: Proxy, items: Items) -> None:
    """Others pass, and it happens once."""
    proxy.inject(Fault.FAILED_BEFORE, "TransactWriteItems")
    await items.put("a")
    assert await _code(items.put_all("b")) == "InternalServerError"
    await items.put_all("b")
    assert await items.keys() == ["a", "b"]


async def test_a_partial_batch_reports_its_unprocessed_items(proxy: Proxy, items: Items) -> None:
    """What is done and what is left make up the whole."""
    keys = {f"{number:02d}" for number in range(25)}
    proxy.inject(Fault.SHORT)
    puts = [{"PutRequest": {"Item": _key(key)}} for key in keys]
    answer = await items.dynamodb.batch_write_item(RequestItems={items.table: puts})
    left = {put["PutRequest"]["Item"]["sk"]["S"] for put in answer["UnprocessedItems"][items.table]}
    assert 0 < len(left) < len(keys)
    assert set(await items.keys()) == keys - left


async def test_unprocessed_keys_can_be_requested_as_they_are(proxy: Proxy, items: Items) -> None:
    """It keeps how the items are to be read."""
    keys = {"a", "b", "c"}
    await items.put_all(*keys)
    proxy.inject(Fault.SHORT)
    proxy.inject(Fault.SHORT)
    wanted: dict[str, Any] = {items.table: {"Keys": [_key(key) for key in keys], "ConsistentRead": True}}
    read: list[str] = []
    while wanted:
        answer = await items.dynamodb.batch_get_item(RequestItems=wanted)
        read += [item["sk"]["S"] for item in answer["Responses"].get(items.table, [])]
        wanted = answer["UnprocessedKeys"]
        assert all(table["ConsistentRead"] for table in wanted.values())
    assert sorted(read) == sorted(keys)
    assert proxy.requests["BatchGetItem"] > 1


async def test_a_partial_page_has_a_key_to_continue(proxy: Proxy, items: Items) -> None:
    """As a page does that reaches 1 MB."""
    await items.put_all("a", "b", "c")
    one_page: dict[str, Any] = {
        "TableName": items.table,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "all"}},
        "Limit": 3,
    }
    proxy.inject(Fault.SHORT)
    page = await items.dynamodb.query(**one_page)
    assert 0 < len(page["Items"]) < one_page["Limit"]
    assert page["LastEvaluatedKey"] == page["Items"][-1]


async def test_a_disconnected_engine_refuses_connections_until_it_is_back(proxy: Proxy, items: Items) -> None:
    """At the same address, with its data."""
    await items.put("a")
    async with proxy.disconnected():
        with pytest.raises(NO_ANSWER):
            await items.put("b")
    assert await items.keys() == ["a"]


async def test_a_fault_rate_produces_every_kind_of_fault(default_engine: RunningEngine, items: Items) -> None:
    """The seed decides which, and the table's own making is spared."""
    codes = []
    for _ in range(2):
        async with (
            Proxy(default_engine.url, seed=7, fault_rate=0.5, max_delay=0) as bad,
            sdk_client(bad.url) as dynamodb,
        ):
            through = Items(dynamodb, items.table)
            codes.append([await _outcome(partial(through.put_all, "a", "b")) for _ in range(60)])
            await dynamodb.describe_table(TableName=items.table)
            assert bad.requests == {"TransactWriteItems": 60, "DescribeTable": 1}
            assert set(bad.faults) == set(Fault) - {Fault.SHORT, Fault.MIXED_CONFLICT}
    assert codes[0] == codes[1]


async def _outcome(act: Callable[[], Awaitable[None]]) -> str:
    try:
        await act()
    except ClientError as refused:
        return str(refused.response["Error"]["Code"])
    except NO_ANSWER:
        return "reset"
    return "done"


async def test_a_transaction_in_flight_locks_its_items(proxy: Proxy, items: Items) -> None:
    """Ten at once on one item: one is applied, the others are told of the conflict, and later all is free again."""
    proxy.conflict_seconds = 12  # by then all have come, also to a busy machine
    outcomes = await asyncio.gather(*(_outcome(lambda: items.put_all("a", "b")) for _ in range(10)))
    assert sorted(outcomes) == ["TransactionCanceledException"] * 9 + ["done"]
    assert proxy.conflicts == 9
    assert await _outcome(lambda: items.put_all("a")) == "done"


async def test_a_locked_item_can_be_read_but_not_written(proxy: Proxy, items: Items) -> None:
    """Other items are nobody's concern."""
    proxy.conflict_seconds = LONGEST
    transaction = asyncio.create_task(items.put_all("a"))
    await until(items.keys, "the transaction is applied")
    assert await _outcome(lambda: items.put("a")) == "TransactionConflictException"
    assert await _outcome(lambda: items.put("b")) == "done"
    transaction.cancel()
