"""Limits per network address: over all processes, whatever the client claims about itself."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.dynamo import Rate, Table
from datastore.dynamo.writes import Update
from datastore.refusals import RateLimited
from datastore.values.seal import Seal
from resolvers.requests.address_limits import AddressLimits, allowed_hits, seconds_to_wait
from resolvers.requests.context import Context, Kind, Services, Viewer
from resolvers.requests.policy import Policy
from resolvers.values.network_addresses import network
from tests.client import serving
from tests.command import on_table
from tests.conftest import SECRET, settings_for
from tests.engines import RunningEngine
from tests.queries import CAST_VOTE, DRAW_MATCHUP
from tests.service import start_service
from tests.voting import add_contenders
from tests.waiting import LONGEST

VARIABLES = {"token": "none", "verdict": "LEFT"}
FEW = {"RINGSIDE_VOTES_PER_ADDRESS": "40/day", "RINGSIDE_VOTES_PER_VISITOR": "1000/minute"}


def code(answer: httpx.Response) -> str:
    payload: dict[str, Any] = next(iter(answer.json()["data"].values()))
    return str(payload["code"])


@asynccontextmanager
async def services_on(engine: RunningEngine, table: Table, *variables: dict[str, str]) -> AsyncIterator[list[str]]:
    """Processes of the service on one table, each with these variables; their addresses."""
    common = on_table(engine.url, table.name, RINGSIDE_REQUEST_TIMEOUT="60")
    with ExitStack() as stack:
        starting = (start_service({**common, **more}, stack) for more in variables)
        yield [service.url for service in await asyncio.gather(*starting)]


async def vote(http: httpx.AsyncClient, url: str, forwarded: str = "") -> str:
    """The code of a vote with a token that nobody gave."""
    headers = {"x-forwarded-for": forwarded} if forwarded else {}
    json = {"query": CAST_VOTE, "variables": VARIABLES}
    return code(await http.post(f"{url}/graphql", json=json, headers=headers))


async def test_processes_share_the_limit_of_an_address(one_table: Table, default_engine: RunningEngine) -> None:
    """Two processes admit no more than the limit together, and no less than it without what both may hold back.

    Claiming other addresses changes nothing, not even from loopback.
    """
    async with services_on(default_engine, one_table, FEW, FEW) as urls, httpx.AsyncClient(timeout=LONGEST) as http:
        codes = Counter[str]()
        for turn in range(12):
            votes = (vote(http, urls[place % 2], f"10.0.{turn}.{place}") for place in range(8))
            codes.update(await asyncio.gather(*votes))
        assert set(codes) == {"TOKEN_UNKNOWN", "RATE_LIMITED"}
        assert 40 - 2 * 10 <= codes["TOKEN_UNKNOWN"] <= 40


async def test_a_trusted_proxy_says_whose_request_it_is(one_table: Table, default_engine: RunningEngine) -> None:
    """The right-most address that is not a proxy's counts; what the client wrote to the left of it does not."""
    trusting = {**FEW, "RINGSIDE_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8", "RINGSIDE_VOTES_PER_ADDRESS": "2/day"}
    async with services_on(default_engine, one_table, trusting) as (url,), httpx.AsyncClient(timeout=LONGEST) as http:
        first = [await vote(http, url, f"198.51.100.{place}, 203.0.113.7, 10.1.2.3") for place in range(3)]
        assert first == ["TOKEN_UNKNOWN", "TOKEN_UNKNOWN", "RATE_LIMITED"]
        assert await vote(http, url, "203.0.113.7, 203.0.113.8") == "TOKEN_UNKNOWN"
        six = [await vote(http, url, f"2001:db8::{place}") for place in range(3)]
        assert six == ["TOKEN_UNKNOWN", "TOKEN_UNKNOWN", "RATE_LIMITED"]
        # A service at `--host ::` sees proxies of an IPv4 network so.
        mapped = [await vote(http, url, f"203.0.113.{place}, ::ffff:10.1.2.3") for place in range(20, 23)]
        assert mapped == ["TOKEN_UNKNOWN"] * 3


async def test_new_visitors_of_an_address_have_a_limit(one_table: Table, default_engine: RunningEngine) -> None:
    """Looking costs nothing; visitors who have voted before go on, and members are not counted."""
    settings = settings_for(default_engine, one_table.name, new_visitors_per_address="3/day")
    async with serving(settings) as client:
        await add_contenders(client, "a", "b")
        for _ in range(5):
            await client.visitor().ask("{ board { slug } }")
        early = [client.visitor() for _ in range(3)]
        for visitor in early:
            ballot = await visitor.ask(DRAW_MATCHUP)
            assert (await visitor.ask(DRAW_MATCHUP))["voter"] == ballot["voter"]
            await visitor.ask(CAST_VOTE, token=ballot["token"], verdict="LEFT")
        late = client.visitor()
        await late.ask("{ __typename }")  # a cookie alone does not make a known visitor
        assert await late.code(DRAW_MATCHUP) == "RATE_LIMITED"
        await client.member("ada").ask(DRAW_MATCHUP)
    async with serving(settings) as client:  # another process: it has counted nobody
        for visitor in early:
            known = client.visitor()
            known.http.cookies = visitor.http.cookies
            assert (await known.ask(DRAW_MATCHUP))["progress"] == {"seen": 0, "remaining": 1}
        assert await client.visitor().code(DRAW_MATCHUP) == "RATE_LIMITED"


async def test_requests_of_a_new_visitor_at_once_are_admitted_together(
    one_table: Table, default_engine: RunningEngine
) -> None:
    """They count as one visitor; where the limit is used up, all of them are refused."""
    settings = settings_for(default_engine, one_table.name, new_visitors_per_address="3/day")
    async with serving(settings) as client:
        await add_contenders(client, "a", "b")
        visitors = [client.visitor() for _ in range(8)]
        for visitor in visitors:
            await visitor.ask("{ __typename }")  # so that all requests have the same cookie
        draws = (visitor.http.post("/graphql", json={"query": DRAW_MATCHUP}) for visitor in visitors for _ in range(3))
        answers = [answer.json()["data"]["drawMatchup"].get("code") for answer in await asyncio.gather(*draws)]
        outcomes = [set(answers[place : place + 3]) for place in range(0, 24, 3)]
        assert sorted(outcomes, key=str) == [{"RATE_LIMITED"}] * 5 + [{None}] * 3
    used = [item async for item in one_table.scan_items(consistent=True) if item["sk"]["S"].startswith("USED#")]
    assert ["ttl" in item for item in used] == [True]


class CountingTable(Table):
    """A table that counts the updates that answer with a record, which reservations alone are here."""

    reservations = 0

    async def write_back(self, write: Update, entity: Any) -> Any:
        self.reservations += 1
        return await super().write_back(write, entity)


class Process:
    """The address limits of one process, and the hits that they admitted."""

    def __init__(self, table: Table, policy: Policy, clock: Any) -> None:
        self.table = CountingTable(table.client, table.address)
        self.services = Services(self.table, Seal([SECRET]), policy, clock=clock)
        self.limits = AddressLimits(self.services)
        self.admitted = self.refused = 0
        self.waits = list[float]()

    async def vote(self, address: str = "192.0.2.1") -> None:
        viewer = Viewer(id="visitor-a", kind=Kind.VISITOR)
        try:
            await self.limits.admit_vote(Context(self.services, viewer, address))
        except RateLimited as refused:
            self.refused += 1
            self.waits.append(refused.retry_after or 0.0)
        else:
            self.admitted += 1


async def test_the_limit_holds_over_periods_and_processes(one_table: Table) -> None:
    """Three processes through two periods: at most the limit at once, and again as the first period's hits age."""
    now = datetime(2026, 1, 1, 10, 30, tzinfo=UTC)
    processes = [Process(one_table, Policy(votes_per_address="60/hour"), lambda: now) for _ in range(3)]

    for process in processes:
        process.limits.interval = 0.001

    async def flood() -> int:
        before = sum(process.admitted for process in processes)
        for _ in range(12):
            await asyncio.gather(*(process.vote() for process in processes for _ in range(5)))
            await asyncio.sleep(0.01)
        return sum(process.admitted for process in processes) - before

    def expect_retry() -> None:
        for process in processes:  # as if the time until the next hit is admitted had passed
            for share in process.limits._reserved.values():
                share.refused_until = float("-inf")

    first = await flood()
    assert 60 - 3 * 15 <= first <= 60
    assert await flood() == 0
    now += timedelta(minutes=30)
    expect_retry()
    assert await flood() <= 60 - first
    now += timedelta(minutes=45)
    expect_retry()
    assert 0 < await flood() <= 45
    await asyncio.gather(*(process.vote("198.51.100.1") for process in processes))
    assert sum(process.admitted for process in processes) > first


async def test_an_address_costs_a_write_a_second_at_most(one_table: Table) -> None:
    """Whether its requests are admitted or refused."""
    process = Process(one_table, Policy(votes_per_address="200/day"), lambda: datetime(2026, 1, 1, 12, tzinfo=UTC))
    began = asyncio.get_running_loop().time()
    for _ in range(20):
        await asyncio.gather(*(process.vote() for _ in range(40)))
    seconds = asyncio.get_running_loop().time() - began
    assert (process.admitted, process.refused) == (200, 600)
    assert min(process.waits) >= 1.0
    assert process.table.reservations <= seconds + 2


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
    ],
)
def test_an_address_is_counted_as_its_network(address: str, counted: str) -> None:
    """An IPv6 customer has 2^64 addresses."""
    assert network(address) == counted


@given(st.integers(1, 50), st.integers(0, 60), st.integers(0, 50), st.floats(0, 59.9))
def test_the_time_to_wait_is_when_a_hit_is_allowed(limit: int, hits: int, previous: int, elapsed: float) -> None:
    """Not earlier, and at most a period ahead."""
    rate, previous = Rate(limit, 60), min(previous, limit)
    wait = seconds_to_wait(rate, hits, previous, elapsed)
    if hits < allowed_hits(rate, previous, elapsed):
        assert wait <= 1e-6
    elif hits < limit:
        assert hits < allowed_hits(rate, previous, elapsed + wait + 1e-6)
        assert hits >= allowed_hits(rate, previous, elapsed + wait - 1e-6) or wait < 1e-5
    else:
        assert 60 - elapsed <= wait <= 60
