"""The foundation on bad days: faults of every kind between the service and its table, and an engine that is gone."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from datastore.dynamo import (
    ConditionFailed,
    DeadlineExceeded,
    EngineUnavailable,
    Rejected,
    Table,
    TransactionConflict,
    deadline,
    metered,
)
from datastore.dynamo.writes import absent, where
from datastore.people.profiles import PROFILE, Profile
from resolvers.requests.context import utc_now
from server.engine.table import UnusableTable, validate_table
from server.telemetry import Outcome
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import EnginePair, RunningEngine
from tests.fault.faults import Fault
from tests.lagging import LaggingEngine
from tests.lagging.tables import LaggingTable, lagging_table
from tests.waiting import until, until_refused

UPDATE = """
mutation ($name: String, $key: String) {
  updateProfile(input: {name: $name, idempotencyKey: $key}) {
    ... on ProfileUpdated { user { name } }
    ... on Refused { code retryAfterSeconds }
  }
}
"""


@pytest.fixture
async def lagged(engine_pair: EnginePair, table_name: str) -> AsyncIterator[LaggingTable]:
    async with lagging_table(engine_pair, table_name, seed=11) as one:
        yield one


@pytest.fixture
def proxy(lagged: LaggingTable) -> LaggingEngine:
    return lagged.engine


@pytest.fixture
def shaky(lagged: LaggingTable) -> Table:
    """A table behind the proxy."""
    return lagged.table


@pytest.fixture
async def visitor(shaky: Table, proxy: LaggingEngine) -> AsyncIterator[Client]:
    engine = RunningEngine("proxy", proxy.url)
    async with serving(settings_for(engine, shaky.name, request_timeout=1.5)) as one:
        yield one


def profile(user: str, name: str = "Ada") -> Profile:
    return Profile(user=user, name=name, joined_at=utc_now())


async def test_two_hundred_writes_through_every_fault_are_all_there(shaky: Table, proxy: LaggingEngine) -> None:
    """Every acknowledged write is found; batches are followed up to the last item."""
    proxy.fault_rate = 0.25
    people = [profile(f"member-{place}") for place in range(100)]
    await asyncio.gather(*(shaky.write(PROFILE.put(one)) for one in people))
    await shaky.write_many(PROFILE.put(profile(f"batch-{place}")) for place in range(100))
    keys = [PROFILE.at(user=f"{kind}-{place}") for kind in ("member", "batch") for place in range(100)]
    found = await shaky.get_many(keys, consistent=True)
    assert [one.user for one in found if one] == [key.pk.removeprefix("USER#") for key in keys]
    assert sum(proxy.faults.values()) > 20


async def test_a_conflict_together_with_a_failed_condition_is_retried(shaky: Table, proxy: LaggingEngine) -> None:
    """The condition may have been read mid-change; alone, a failed condition is final and shows the item."""
    proxy.inject(Fault.MIXED_CONFLICT, "TransactWriteItems")
    await shaky.transact(PROFILE.put(profile("a"), when=absent()), PROFILE.put(profile("b"), when=absent()))
    with pytest.raises(ConditionFailed) as failed:
        await shaky.transact(PROFILE.put(profile("c"), when=absent()), PROFILE.put(profile("b", "B"), when=absent()))
    assert failed.value.at(1)
    assert not failed.value.at(0)
    assert PROFILE.read(failed.value.failures[1] or {}).name == "Ada"
    assert await shaky.get(PROFILE.at(user="c"), consistent=True) is None


async def test_a_lost_answer_makes_the_next_failed_condition_doubtful(shaky: Table, proxy: LaggingEngine) -> None:
    """The caller can then check whether the item is its own."""
    proxy.inject(Fault.RESET_AFTER, "PutItem")
    with pytest.raises(ConditionFailed) as failed:
        await shaky.write(PROFILE.put(profile("a"), when=absent()))
    assert failed.value.doubtful
    with pytest.raises(ConditionFailed) as plain:
        await shaky.write(PROFILE.put(profile("a"), when=where(name="Bob")))
    assert not plain.value.doubtful


async def test_calls_end_with_the_deadline_of_their_request(shaky: Table, proxy: LaggingEngine) -> None:
    """However long the engine is silent or busy; what it was is told."""
    loop = asyncio.get_running_loop()

    async def end_before_the_thirty_seconds_of_a_call_without() -> bool:
        began = loop.time()
        async with proxy.disconnected():
            with deadline(0.3), pytest.raises(DeadlineExceeded):
                await shaky.get(PROFILE.at(user="a"))
        proxy.fault_rate, proxy.kinds = 1.0, (Fault.CONFLICT,)
        await until_refused(TransactionConflict, lambda: shaky.transact(*(PROFILE.put(profile(user)) for user in "ab")))
        return loop.time() - began < 20

    await until(end_before_the_thirty_seconds_of_a_call_without, "calls end with their deadline")


async def test_an_unreachable_engine_is_unavailable_until_it_returns(visitor: Client, proxy: LaggingEngine) -> None:
    """UNAVAILABLE in queries and mutations, readiness and metrics say so, and all is well once it is back."""
    ada = visitor.member("ada")
    # By then the reads of the service's start have ended, which open connections of their own.
    await until(partial(_is_answered, ada), "the service answers")
    async with proxy.disconnected():
        assert await ada.code("{ boards(first: 1) { nodes { slug } } }") == "UNAVAILABLE"
        counted = await ada.counted(Outcome.UNAVAILABLE)
        assert await ada.code(UPDATE, name="Ada") == "UNAVAILABLE"
        assert await ada.counted(Outcome.UNAVAILABLE) == counted + 1  # though a refusal is no error
        assert (await ada.http.get("/readyz")).status_code == 503
    await until(partial(_is_answered, ada), "the engine is back")

    async def is_renamed() -> bool:
        return bool((await ada.ask(UPDATE, name="Ada")).get("user") == {"name": "Ada"})

    await until(is_renamed, "changes are made again")


async def test_failed_health_checks_count_though_no_other_request_comes(visitor: Client, proxy: LaggingEngine) -> None:
    """An orchestrator sends an unready service none, and without requests the alert of the table would never ring."""
    await until(partial(_is_answered, visitor), "the service answers")
    async with proxy.disconnected():
        counted = await visitor.counted(Outcome.UNAVAILABLE)
        assert (await visitor.http.get("/readyz")).status_code == 503
        assert await visitor.counted(Outcome.UNAVAILABLE) == counted + 1

    async def is_ready() -> bool:
        counted = await visitor.counted(Outcome.UNAVAILABLE)
        if (await visitor.http.get("/readyz")).status_code != 200:
            return False
        assert await visitor.counted(Outcome.UNAVAILABLE) == counted
        return True

    await until(is_ready, "the engine is back")


async def _is_answered(client: Client) -> bool:
    return "errors" not in await client.answer("{ viewer { id } boards(first: 1) { nodes { slug } } }")


async def test_a_repeated_key_is_carried_out_once_whatever_answer_was_lost(shaky: Table, proxy: LaggingEngine) -> None:
    """The answer to the write is lost; the service's own repeat finds the receipt."""
    async with serving(settings_for(RunningEngine("proxy", proxy.url), shaky.name)) as patient:
        ada = patient.member("ada")
        await ada.ask(UPDATE, name="Ada")
        for fault in (Fault.RESET_AFTER, Fault.FAILED_AFTER, Fault.RESET_BEFORE, Fault.CONFLICT):
            proxy.inject(fault, "TransactWriteItems")
            for _ in range(2):
                answer = await ada.ask(UPDATE, name=str(fault), key=str(fault))
                assert answer["user"] == {"name": str(fault)}


async def test_capacity_is_added_up_per_request(shaky: Table) -> None:
    """Calls and units of everything inside, also for an outer meter."""
    with metered() as outer:
        with metered() as inner:
            await shaky.write(PROFILE.put(profile("a")))
            await shaky.get(PROFILE.at(user="a"), consistent=True)
        await shaky.get(PROFILE.at(user="a"))
    assert (inner.calls, outer.calls) == (2, 3)
    assert inner.write_units >= 2
    assert (inner.read_units, outer.read_units) == (1.0, 1.5)


async def test_an_unknown_engine_error_is_not_retried_forever(shaky: Table) -> None:
    """A request that the engine refuses is our mistake: once is enough."""
    with metered() as spent, pytest.raises(Rejected):
        await shaky.query(PROFILE.on("gsi1", shard=1), limit=0)
    assert spent.calls <= 1
    assert not issubclass(Rejected, EngineUnavailable)


async def test_an_engine_without_transactions_is_refused_with_the_reason(shaky: Table, proxy: LaggingEngine) -> None:
    """Votes, predictions and counts would not be exact on it."""
    proxy.error, proxy.refusing = "UnknownOperationException", {"TransactWriteItems"}
    with pytest.raises(UnusableTable, match=r"no transactions.*UnknownOperation"):
        await validate_table(shaky)
