"""The direct client and the SDK's, compared on real engines: each reads what the other writes, and fails alike."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some

from datastore.dynamo import ReadCache, Reads, Table, TooCostly, metered, open_table, request_budget
from datastore.dynamo.budgets import CALLS_AT_ONCE, HELD_UNITS
from datastore.dynamo.declaration import create
from datastore.dynamo.errors import dynamo_error
from datastore.dynamo.transport.client import DirectClient
from datastore.dynamo.transport.connections import SERVICE, Callers
from datastore.people.profiles import PROFILE, Profile
from resolvers.requests.context import Role, utc_now
from server.telemetry import Outcome
from tests.client import Client
from tests.engines import RunningEngine
from tests.examples import examples
from tests.property.attributes import TEXT, Attributes, nested
from tests.waiting import caught_up

NUMBER = some.one_of(some.integers(-(10**37), 10**37).map(str), some.sampled_from(["0.5", "-1.25e10", "1E-9"]))
NAME = some.text(some.characters(categories=["L"]), min_size=1, max_size=9)
FLAT: Attributes = some.one_of(
    some.builds(lambda value: {"S": value}, TEXT),
    some.builds(lambda value: {"N": value}, NUMBER),
    some.builds(lambda value: {"B": value}, some.binary(min_size=1, max_size=30)),
    some.builds(lambda value: {"BOOL": value}, some.booleans()),
    some.just({"NULL": True}),
    some.builds(lambda value: {"BS": [value]}, some.binary(min_size=1, max_size=9)),
    some.builds(lambda value: {"SS": [value]}, TEXT.filter(bool)),
)
ATTRIBUTE = nested(FLAT, NAME)
ITEM = some.dictionaries(NAME, ATTRIBUTE, max_size=5)


@asynccontextmanager
async def both(engine: RunningEngine, name: str) -> AsyncIterator[tuple[Table, Table]]:
    """A table, through the direct client and through the SDK's."""
    async with AsyncExitStack() as stack:
        direct = await stack.enter_async_context(open_table(name, url=engine.url))
        sdk = await stack.enter_async_context(open_table(name, url=engine.url, sdk_only=True))
        await create(direct)
        yield direct, sdk
        await direct.client.delete_table(TableName=name)


async def outcome(table: Table, method: str, **parameters: Any) -> Any:
    """An answer without the SDK's remarks on it, or what became of the call."""
    try:
        answer = await getattr(table.client, method)(**parameters)
    except (ClientError, OSError) as error:
        known = dynamo_error(error)
        return type(known), getattr(known, "failures", str(known))
    answer.pop("ResponseMetadata", None)
    return answer


@pytest.mark.every_engine
def test_the_direct_client_writes_and_reads_what_the_sdk_does(engine: RunningEngine, table_name: str) -> None:
    """Random items: binary, numbers, nested maps, empty texts, all of Unicode; single, in batches, in transactions."""

    async def held(direct: Table, sdk: Table, items: list[dict[str, Any]], old: bytes) -> None:
        name = direct.name
        keys = [{"pk": {"S": "NOTE#1"}, "sk": {"S": f"NOTE#{place}"}} for place in range(len(items))]
        whole = [{**item, **key} for item, key in zip(items, keys, strict=True)]
        for place, item in enumerate(whole):
            writer = (direct, sdk)[place % 2]
            await writer.client.put_item(TableName=name, Item=item)
        absent = {"ConditionExpression": "attribute_not_exists(pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        put = {"TableName": name, "Item": {**whole[0], "old": {"B": old}}, **absent}
        query = {
            "KeyConditionExpression": "pk = :p",
            "ExpressionAttributeValues": {":p": {"S": "NOTE#1"}},
            "Limit": max(1, len(items) - 1),
            "ConsistentRead": True,
        }
        calls: list[tuple[str, dict[str, Any]]] = [
            ("get_item", {"TableName": name, "Key": keys[0], "ConsistentRead": True}),
            ("get_item", {"TableName": name, "Key": {"pk": {"S": "NOTE#none"}, "sk": {"S": "NOTE"}}}),
            ("query", {"TableName": name, **query}),
            ("scan", {"TableName": name, "Limit": 5, "ConsistentRead": True}),
            ("put_item", put),
            ("transact_write_items", {"TransactItems": [{"Put": put}]}),
            ("query", {"TableName": name, **query, "Limit": 0}),
        ]
        for method, parameters in calls:
            assert await outcome(direct, method, **parameters) == await outcome(sdk, method, **parameters)
        wanted = {name: {"Keys": keys, "ConsistentRead": True}}
        found = [await outcome(one, "batch_get_item", RequestItems=wanted) for one in (direct, sdk)]
        of_direct, of_sdk = (sorted(one["Responses"][name], key=lambda item: item["sk"]["S"]) for one in found)
        assert of_direct == of_sdk
        await direct.client.batch_write_item(RequestItems={name: [{"DeleteRequest": {"Key": key}} for key in keys]})
        assert (await outcome(sdk, "scan", TableName=name, ConsistentRead=True))["Count"] == 0

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        direct, sdk = runner.run(stack.enter_async_context(both(engine, table_name)))

        @given(some.lists(ITEM, min_size=1, max_size=4), some.binary(min_size=1))
        @settings(max_examples=examples(20), phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        def check(items: list[dict[str, Any]], old: bytes) -> None:
            runner.run(held(direct, sdk, items, old))

        try:
            check()
        finally:
            runner.run(stack.aclose())


@pytest.mark.every_engine
async def test_identical_concurrent_reads_are_made_once(table: Table, engine: RunningEngine) -> None:
    """Two hundred at once ask for a page, and as many for a record: two reads; consistent ones are made one by one."""
    people = [Profile(user=f"member-{place}", name="Ada", joined_at=utc_now()) for place in range(5)]
    await table.write_many(PROFILE.put(one) for one in people)
    await caught_up(engine.url, "plain reads show what was written")
    page, place = PROFILE.on("gsi1", shard=people[0].shard), PROFILE.at(user="member-1")
    with metered() as spent:
        pages = await asyncio.gather(*(table.query(page, limit=10) for _ in range(200)))
        found = await asyncio.gather(*(table.get(place) for _ in range(200)))
    assert {one.records for one in pages} == {pages[0].records}
    assert set(found) == {people[1]}
    assert spent.calls == 2
    with metered() as spent:
        await asyncio.gather(*(table.get(place, consistent=True) for _ in range(5)))
    assert spent.calls == 5


async def test_a_request_may_read_so_much_and_no_more(one_table: Table) -> None:
    """However it reads, and however many reads it begins at once; each is paid for before it is sent."""
    place = PROFILE.at(user="ada")
    with request_budget(300.0, calls=100, read_units=HELD_UNITS + 2.5, client="ada") as budget:
        for _ in range(3):
            await one_table.get(place, consistent=True)
        with pytest.raises(TooCostly):
            await one_table.get(place, consistent=True)
    assert budget.spent.calls == 3
    with request_budget(300.0, calls=100, read_units=HELD_UNITS + 2.5, client="ada") as budget:
        for _ in range(6):
            await one_table.get(place)  # half a unit; other requests may wait for it too
        with pytest.raises(TooCostly):
            await one_table.get(place)
    assert budget.spent.calls == 6
    with request_budget(300.0, calls=5, read_units=1000.0, client="ada") as budget:
        reads = (one_table.get(place, consistent=True) for _ in range(20))
        outcomes = await asyncio.gather(*reads, return_exceptions=True)
    assert (budget.spent.calls, sum(isinstance(outcome, TooCostly) for outcome in outcomes)) == (5, 15)
    with request_budget(300.0, calls=500, read_units=HELD_UNITS + 9.0, client="ada") as budget:
        reads = (one_table.get(place, consistent=True) for _ in range(200))
        outcomes = await asyncio.gather(*reads, return_exceptions=True)
    assert budget.spent.read_units <= HELD_UNITS + 9.0


async def test_shared_work_is_refused_when_nobody_who_waits_for_it_can_pay(one_table: Table) -> None:
    """A request that may read no more is refused what it adds, before it is begun; with another it gets the answer."""

    async def unit(user: str) -> Profile | None:
        return await one_table.get(PROFILE.at(user=user))

    reads = ReadCache().each("profiles", unit)
    go_on, read_once = asyncio.Event(), asyncio.Event()

    async def twice(user: str) -> Profile | None:
        await one_table.get(PROFILE.at(user=user), consistent=True)
        read_once.set()
        await go_on.wait()
        return await one_table.get(PROFILE.at(user=user), consistent=True)

    costly = ReadCache().each("profiles", twice)

    async def ask(reads: Reads[str, Profile], calls: int, *users: str) -> list[Profile | None]:
        with request_budget(300.0, calls=calls, read_units=1000.0, client="ada"):
            return await reads.load_many(users)

    with pytest.raises(TooCostly):
        await ask(reads, 3, "a", "b", "c", "d")
    assert await ask(reads, 4, "a", "b", "c", "d") == [None] * 4
    poor, rich = (asyncio.create_task(ask(costly, calls, "f")) for calls in (1, 10))
    await read_once.wait()
    go_on.set()
    assert [await poor, await rich] == [[None], [None]]
    with pytest.raises(TooCostly):
        await ask(costly, 1, "e")


async def test_writers_read_their_own_writes_among_many_readers(one_table: Table) -> None:
    """Writers among a crowd of readers of the same record: each finds what it has just written, or newer."""
    place = PROFILE.at(user="ada")
    start = utc_now()

    async def write(number: int) -> None:
        await one_table.write(PROFILE.put(Profile(user="ada", name=str(number), joined_at=start)))

    async def read() -> int:
        found = await one_table.get(place)
        assert found is not None
        return int(found.name)

    async def crowd(done: asyncio.Event) -> None:
        while not done.is_set():
            await read()

    await write(0)
    done = asyncio.Event()
    readers = [asyncio.create_task(crowd(done)) for _ in range(5)]
    for number in range(1, 25):
        await write(number)
        assert await read() == number
    done.set()
    await asyncio.gather(*readers)


@pytest.mark.every_engine
async def test_the_direct_client_is_the_default(table: Table) -> None:
    """On an engine of one's own nothing is out of the ordinary."""
    assert isinstance(table.client.client, DirectClient)


async def test_a_query_is_told_to_come_back_when_too_many_calls_wait(one_client: Client) -> None:
    """503 with Retry-After; a mutation is refused as UNAVAILABLE. Both count as overload, and the queue is empty."""
    one_client.keep_what_it_read()
    ada = one_client.member("ada")
    editor = one_client.member("eve", Role.EDITOR)
    for member in (ada, editor):
        await member.ask("{ viewer { id } }")
    queue = one_client.services.table.client._queue
    queue.most_waiting = 0
    busy = [await queue.take_turn(Callers(SERVICE)) for _ in range(CALLS_AT_ONCE)]
    response = await ada.http.post("/graphql", json={"query": "{ viewer { id } board { votes } }"})
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert response.json()["errors"][0]["extensions"]["code"] == "OVERLOADED"
    add = 'mutation { addContender(input: { name: "a" }) { ... on Refused { code retryAfterSeconds } } }'
    assert await editor.ask(add) == {"code": "UNAVAILABLE", "retryAfterSeconds": 1.0}
    assert await editor.counted(Outcome.OVERLOADED) == 2
    for caller in busy:
        queue.end_turn(caller)
    assert (await ada.http.post("/graphql", json={"query": "{ board { votes } }"})).status_code == 200
