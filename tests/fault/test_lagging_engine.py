"""The engine that behaves like DynamoDB: it lags, it fills up, and it says so as DynamoDB does."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from datastore.dynamo import ConditionFailed, DynamoError, Table, chunks, deadline, open_table
from datastore.dynamo.declaration import create
from datastore.dynamo.writes import absent
from datastore.people.profiles import PROFILE, Profile
from resolvers.requests.context import utc_now
from tests.engines import running_engine
from tests.lagging import Lag, LaggingEngine, Limits
from tests.lagging.replica import ItemName
from tests.lagging.tables import lagging


def member(number: int) -> Profile:
    return Profile(user=f"member-{number}", name="Ada", joined_at=utc_now())


async def everyone(table: Table) -> list[str]:
    """The members that the index shows."""
    shown = []
    for shard in range(16):
        partition = PROFILE.on("gsi1", shard=shard)
        shown += [record.user async for record in table.iterate(partition)]
    return sorted(shown)


async def test_an_index_is_behind_and_catches_up(tmp_path: Path) -> None:
    """An acknowledged write is read consistently at once, and from the index only after its lag."""
    async with lagging(tmp_path, lag=Lag(mean=1e6, longest=1e6, stale=0.0)) as (engine, table):
        await asyncio.gather(*(table.write(PROFILE.put(member(number))) for number in range(20)))
        assert await table.get(PROFILE.at(user="member-7"), consistent=True) is not None
        assert await everyone(table) == []
        await engine.catch_up()
        assert len(await everyone(table)) == 20


async def test_a_stale_read_is_an_older_state_and_a_consistent_one_is_not(tmp_path: Path) -> None:
    """With every plain read stale, a new item is missing until the follower has seen it."""
    async with lagging(tmp_path, lag=Lag(mean=1e6, longest=1e6, stale=1.0)) as (engine, table):
        await table.write(PROFILE.put(member(1)))
        assert await table.get(PROFILE.at(user="member-1")) is None
        assert await table.get(PROFILE.at(user="member-1"), consistent=True) is not None
        await engine.catch_up()
        assert await table.get(PROFILE.at(user="member-1")) is not None


def test_lags_are_the_same_for_the_same_seed() -> None:
    """A failing run can be repeated from its seed."""
    lag, item = Lag(), ItemName("t", "p", "s")
    assert [lag.seconds(7, item, number) for number in range(9)] == [
        lag.seconds(7, item, number) for number in range(9)
    ]
    assert lag.seconds(7, item, 1) != lag.seconds(8, item, 1)


async def test_a_check_of_an_item_that_does_not_exist_costs_two_units(tmp_path: Path) -> None:
    """As every part of a transaction does, be it for nothing."""
    async with lagging(tmp_path) as (engine, table):
        nobody = PROFILE.at(user="nobody")
        await table.transact(PROFILE.put(member(1)), PROFILE.check(nobody, absent()))
        assert sum(units for (key, _), units in engine.ledger.writes.items() if key.value == nobody.pk) == 2


async def test_a_full_partition_throttles_single_writes_transactions_and_batches(tmp_path: Path) -> None:
    """Each in its own way; whatever was acknowledged is there, and nothing else."""
    async with lagging(tmp_path, lag=Lag(mean=0.0), limits=Limits(10, 30)) as (engine, table):
        same = member(1)
        with deadline(0.6), pytest.raises(DynamoError):
            await asyncio.gather(*(table.write(PROFILE.put(same)) for _ in range(60)))
        with deadline(0.6), pytest.raises(DynamoError):
            await asyncio.gather(*(table.transact(PROFILE.put(same), PROFILE.put(member(2))) for _ in range(60)))
        with pytest.raises(ConditionFailed):
            await table.write(PROFILE.put(same, when=absent()))
        await table.write_many(PROFILE.put(member(number)) for number in range(50))
        assert engine.throttled > 0
        await engine.catch_up()
        assert len(await everyone(table)) == 50


async def test_what_is_left_of_a_batch_costs_nothing(tmp_path: Path) -> None:
    """Only what was carried out is in the ledger; time stands still."""
    async with lagging(tmp_path, lag=Lag(mean=0.0), limits=Limits(1, 1000)) as (engine, table):
        engine.now = lambda: 0.0
        full = member(1)
        free = next(other for other in map(member, range(2, 99)) if other.shard != full.shard)
        await table.write(PROFILE.put(full))
        requests = [{"PutRequest": {"Item": PROFILE.item(one)}} for one in (full, free)]
        answer = await table.client.batch_write_item(RequestItems={table.name: requests})
        assert answer["UnprocessedItems"] == {table.name: requests[:1]}
        units = {key.value: spent for (key, _), spent in engine.ledger.writes.items() if not key.index_name}
        assert units == {PROFILE.item_key(one).pk: 1.0 for one in (full, free)}


async def test_writes_that_feed_a_full_index_key_are_throttled(tmp_path: Path) -> None:
    """Each index key takes as many writes as it has units, however many table keys there are; time stands still."""
    async with lagging(tmp_path, lag=Lag(mean=0.0), limits=Limits(4, 1000)) as (engine, table):
        engine.now = lambda: 0.0
        refused = list[BaseException]()
        for some in chunks(range(400), 8):  # so few at once that none waits for a connection longer than it may
            puts = (PROFILE.put(member(number)).parameters() for number in some)
            once = (table._write_once("put_item", TableName=table.name, **put) for put in puts)
            written = await asyncio.gather(*once, return_exceptions=True)
            refused += [error for error in written if isinstance(error, BaseException)]
        assert engine.throttled == len(refused) > 0
        assert all("ProvisionedThroughputExceeded" in str(error) for error in refused)
        units = {key: spent for (key, _), spent in engine.ledger.writes.items()}
        shards = {key: spent for key, spent in units.items() if key.index_name == "gsi1"}
        assert set(shards.values()) == {4.0}
        assert {spent for key, spent in units.items() if not key.index_name} == {1.0}
        assert sum(shards.values()) == 400 - len(refused)


async def test_writes_of_one_item_at_the_same_moment_are_followed_to_the_last(tmp_path: Path) -> None:
    """A put and a delete that cross: once caught up, the index shows exactly what the table has."""
    async with lagging(tmp_path, lag=Lag(mean=0.0)) as (engine, table):
        for _ in range(3):
            await asyncio.gather(
                *(table.write(PROFILE.put(member(number))) for number in range(40)),
                *(table.write(PROFILE.delete(PROFILE.at(user=f"member-{number}"))) for number in range(40)),
            )
        await engine.catch_up()
        stored = await table.get_many([PROFILE.at(user=f"member-{number}") for number in range(40)], consistent=True)
        assert await everyone(table) == sorted(profile.user for profile in stored if profile)


async def test_a_table_that_exists_already_is_followed_from_its_present_state(tmp_path: Path) -> None:
    """Items written without the proxy show in its indexes."""
    async with AsyncExitStack() as stack:
        for name in ("leader", "follower"):
            (tmp_path / name).mkdir()
        leader = stack.enter_context(running_engine("dynoxide", tmp_path / "leader"))
        follower = stack.enter_context(running_engine("dynoxide", tmp_path / "follower"))
        direct = await stack.enter_async_context(open_table("ringside", url=leader.url))
        await create(direct)
        await direct.write_many(PROFILE.put(member(number)) for number in range(30))
        engine = await stack.enter_async_context(LaggingEngine(leader.url, follower.url, lag=Lag(mean=0.0)))
        table = await stack.enter_async_context(open_table("ringside", url=engine.url))
        assert len(await everyone(table)) == 30
