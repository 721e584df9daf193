"""What DynamoDB answers when it is busy or refuses the credentials: waited for, and told in one line."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from uuid import uuid4

import orjson
import pytest

from datastore.dynamo import (
    CredentialsRefused,
    DeadlineExceeded,
    Table,
    Throttled,
    TransactionConflict,
    deadline,
    open_table,
)
from datastore.dynamo.declaration import create, definition, differences, removes_expired_items
from datastore.people.profiles import PROFILE, Profile
from resolvers.requests.context import utc_now
from tests.client import serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.fault import faults
from tests.fault.faults import Answer, Body, Fault
from tests.fault.proxy import Proxy
from tests.waiting import until, until_refused

MOST_REQUESTS = 25
"""Of a call that pauses for up to 20 ms, then twice as long each time: in a second there would be hundreds without."""

ENDED = (Throttled, DeadlineExceeded)
"""The latter if the deadline ended the wait for an answer, on a busy machine."""

EXPIRED = (
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "AccessDenied",
    "IDPCommunicationError",
    "InvalidIdentityToken",
    "InvalidSignatureException",
    "RequestExpired",
    "UnrecognizedClientException",
)


class BusyEngine(Proxy):
    """An engine that carries out the first entry of a batch, and nothing of a batch with one entry."""

    async def _answer(
        self, fault: Fault | None, operation: str, body: Body, raw: bytes, headers: dict[str, str]
    ) -> Answer | None:
        if operation not in faults.BATCHES:
            return await super()._answer(fault, operation, body, raw, headers)
        ((table, wanted),) = body["RequestItems"].items()
        entries = wanted["Keys"] if operation == "BatchGetItem" else wanted
        if len(entries) == 1:
            answer = {"Responses": {}, faults.BATCHES[operation]: body["RequestItems"]}
            return Answer(200, orjson.dumps(answer))
        first, rest = ({"Keys": part} if "Keys" in wanted else part for part in (entries[:1], entries[1:]))
        done = orjson.dumps({"RequestItems": {table: first}})
        return faults.with_unprocessed(operation, await self._forward(done, headers), {table: rest})


@pytest.fixture
async def busy(default_engine: RunningEngine, one_table: Table) -> AsyncIterator[tuple[BusyEngine, Table]]:
    async with BusyEngine(default_engine.url) as proxy, open_table(one_table.name, url=proxy.url) as table:
        yield proxy, table


@pytest.fixture
async def picky(default_engine: RunningEngine) -> AsyncIterator[Proxy]:
    async with Proxy(default_engine.url) as proxy:
        yield proxy


# ── a new table ──


class LateEngine(Proxy):
    """An engine that, as DynamoDB, may not know a table yet that it has just created."""

    async def _answer(
        self, fault: Fault | None, operation: str, body: Body, raw: bytes, headers: dict[str, str]
    ) -> Answer | None:
        if operation == "DescribeTable" and self.requests[operation] == 1:
            return faults.refused("ResourceNotFoundException", "Requested resource not found: Table: new not found")
        return await super()._answer(fault, operation, body, raw, headers)


async def test_a_table_that_is_not_known_at_once_is_created_with_its_time_to_live(
    default_engine: RunningEngine,
) -> None:
    """Else the command would fail, and leave a table that keeps what has expired."""
    async with LateEngine(default_engine.url) as proxy, open_table(f"new-{uuid4().hex}", url=proxy.url) as table:
        assert await create(table)
        assert await removes_expired_items(table)
        assert not await create(table)


# ── partially processed batches ──


async def is_asked_again(proxy: Proxy, operation: str, call: Callable[[], Awaitable[object]]) -> bool:
    """Whether a call of a second asks more than once, which it does unless the machine is busy; never too often."""
    proxy.requests.clear()
    with deadline(1), pytest.raises(ENDED):
        await call()
    assert proxy.requests[operation] <= MOST_REQUESTS
    return proxy.requests[operation] > 1


async def test_pauses_grow_while_a_batch_is_read_in_parts(busy: tuple[BusyEngine, Table]) -> None:
    """Each answer has one key of a hundred: partial progress is no reason to ask again at once."""
    proxy, table = busy
    keys = [PROFILE.at(user=f"user-{number}") for number in range(100)]
    await until(partial(is_asked_again, proxy, "BatchGetItem", lambda: table.get_many(keys)), "there is time to")


async def test_pauses_grow_while_a_batch_is_written_in_parts(busy: tuple[BusyEngine, Table]) -> None:
    """One item of each answer is written; what was written stays."""
    proxy, table = busy
    profiles = [Profile(f"user-{number}", "Ada", utc_now()) for number in range(25)]
    write = partial(is_asked_again, proxy, "BatchWriteItem", lambda: table.write_many(map(PROFILE.put, profiles)))
    await until(write, "there is time to")
    assert await table.get(PROFILE.at(user="user-0"), consistent=True) == profiles[0]


# ── credentials, replicas ──


@pytest.mark.parametrize("error", EXPIRED)
async def test_credentials_that_are_being_replaced_are_waited_for(
    picky: Proxy, default_engine: RunningEngine, one_table: Table, error: str
) -> None:
    """A refused call is repeated, and succeeds with the new credentials; nothing is answered INTERNAL."""
    del default_engine
    async with open_table(one_table.name, url=picky.url) as table:
        picky.error = error

        async def is_refused_repeatedly() -> bool:
            picky.requests.clear()
            with deadline(1), pytest.raises(DeadlineExceeded) as late:
                await table.get(PROFILE.at(user="ada"))
            told = f"credentials are refused ({error})" in f"{late.value}"
            return told and isinstance(late.value.__cause__, CredentialsRefused) and picky.requests["GetItem"] > 1

        await until(is_refused_repeatedly, "a second is enough for two refusals")
        picky.error = None
        assert await table.get(PROFILE.at(user="ada")) is None


@pytest.mark.usefixtures("nothing_logged_yet")
async def test_refused_credentials_are_unavailable_with_one_line_of_log(
    picky: Proxy, one_table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    """However many requests fail, and without a stack trace; readiness says so too."""
    settings = settings_for(RunningEngine("proxy", picky.url), one_table.name, request_timeout=1)
    async with serving(settings) as visitor:

        def lines() -> list[logging.LogRecord]:
            return [record for record in caplog.records if EXPIRED[0] in record.getMessage()]

        async def is_told_after_three() -> bool:
            for _ in range(3):
                assert await visitor.code("{ boards(first: 1) { nodes { slug } } }") == "UNAVAILABLE"
            return bool(lines())

        async def is_unready() -> bool:
            unready = await visitor.http.get("/readyz")
            reason = f"the credentials are refused ({EXPIRED[0]})"
            return unready.status_code == 503 and reason in unready.json()["reason"]

        picky.error = EXPIRED[0]
        with caplog.at_level(logging.INFO):
            await until(is_told_after_three, "a second is enough for a refusal")
        await until(is_unready, "readiness says so too")
        picky.error = None
    (line,) = lines()
    assert line.exc_info is None
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.usefixtures("nothing_logged_yet")
async def test_a_service_whose_writes_are_throttled_stays_ready(picky: Proxy, one_table: Table) -> None:
    """Throttling passes, and fewer processes would make it worse: only an embedded engine is asked to write."""
    settings = settings_for(RunningEngine("proxy", picky.url), one_table.name, request_timeout=1)
    async with serving(settings) as visitor:
        picky.error, picky.refusing = "ThrottlingException", faults.WRITES
        write = PROFILE.put(Profile("ada", "Ada", utc_now()))
        await until_refused(Throttled, lambda: visitor.services.table.write(write))

        async def is_ready() -> bool:
            return (await visitor.http.get("/readyz")).status_code == 200

        await until(is_ready, "a read is answered within two seconds")
        picky.error = None


async def test_a_conflict_between_replicas_is_a_conflict(picky: Proxy, one_table: Table) -> None:
    """It passes: the call is repeated until its deadline."""
    async with open_table(one_table.name, url=picky.url) as table:
        picky.error = "ReplicatedWriteConflictException"
        write = PROFILE.put(Profile("ada", "Ada", utc_now()))

        async def is_repeated() -> bool:
            picky.requests.clear()
            await until_refused(TransactionConflict, lambda: table.write(write))
            return picky.requests["PutItem"] > 1

        await until(is_repeated, "there is time for two calls")


def test_a_global_table_with_strong_consistency_is_refused() -> None:
    """DynamoDB has no transactions there, and says so only when one is tried."""
    described = {**definition("ringside"), "MultiRegionConsistency": "STRONG"}
    assert differences(described) == [
        "it is a global table with multi-Region strong consistency, which has no transactions"
    ]
    assert differences({**described, "MultiRegionConsistency": "EVENTUAL"}) == []
