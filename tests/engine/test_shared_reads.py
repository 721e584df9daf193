"""Identical requests at the same time: the service in its own process, and its reads counted at the engine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import aiohttp
import pytest

from server.engine import run_engine_async
from tests.fault.monitoring_proxy import MonitoringProxy
from tests.service import Service, running_service

CLIENTS = 100
SECRET = "a secret for a service with many clients"
LEADERBOARD = '{ leaderboard(board: "main", first: 100) { totalCount nodes { rank contender { name } } } }'
PAGE = """{ comments(product: "ringside-tee", languages: ["en"], ratings: [4, 5]) {
  nodes { body author { name } } pageInfo { hasNextPage } } }"""
TOTAL = '{ comments(product: "ringside-tee") { totalCount nodes { body author { name } } } }'
EVENT = """query ($event: ID!) { event(id: $event) {
  name matches { name pickCounts } predictions { nodes { rank user { name } } } } }"""
STANDINGS = '{ standings(season: "2026", first: 20) { totalCount nodes { rank points user { name } } } }'
SCORED_EVENTS = "{ events(state: SCORED) { nodes { id } } }"


@pytest.fixture
async def monitored(demo_data: Callable[[], str]) -> AsyncIterator[tuple[MonitoringProxy, Service]]:
    """The service with its demo data, and the proxy before its engine."""
    async with run_engine_async(Path(demo_data())) as embedded, MonitoringProxy(embedded.url, max_delay=0) as engine:
        variables = {
            "RINGSIDE_DYNAMODB_URL": engine.url,
            "RINGSIDE_SECRETS": SECRET,
            "RINGSIDE_MAX_IN_FLIGHT": f"{4 * CLIENTS}",
            "RINGSIDE_REQUEST_TIMEOUT": "60",
        }
        manager = running_service(variables, ["--demo"])
        service = await asyncio.to_thread(manager.__enter__)
        try:
            await wait_until_listening(service)
            yield engine, service
        finally:
            await asyncio.to_thread(manager.__exit__, None, None, None)


async def wait_until_listening(service: Service) -> None:
    """The service prints its address shortly before it listens."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(120):
        while True:
            try:
                async with session.get(f"{service.url}/livez") as response:
                    assert response.status == 200
                    return
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)


async def scored_event(service: Service) -> str:
    """The id of the demo's scored event."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}/graphql", json={"query": SCORED_EVENTS}) as response,
    ):
        event_id: str = (await response.json())["data"]["events"]["nodes"][0]["id"]
        return event_id


async def ask_concurrently(service: Service, query: str, variables: Mapping[str, str], times: int = 3) -> None:
    """Each client asks this many times without a pause; all get the same answer."""
    answers: list[bytes] = []
    request = {"query": query, "variables": variables}

    async def client(session: aiohttp.ClientSession) -> None:
        for _ in range(times):
            async with session.post(f"{service.url}/graphql", json=request) as response:
                assert response.status == 200
                answers.append(await response.read())

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(client(session) for _ in range(CLIENTS)))
    assert len(answers) == CLIENTS * times
    assert len(set(answers)) == 1
    assert b"errors" not in answers[0]


async def test_identical_reads_are_made_once_at_a_time(monitored: tuple[MonitoringProxy, Service]) -> None:
    """A hundred clients ask for one page, three times each: no two identical reads are in flight together."""
    engine, service = monitored
    variables = {"event": await scored_event(service)}
    engine.max_delay = 0.3  # so long that a machine which takes seconds for this still makes few reads
    for query in (LEADERBOARD, PAGE, TOTAL, EVENT, STANDINGS):
        engine.reset_counts()
        await ask_concurrently(service, query, variables if query is EVENT else {})
        assert engine.max_identical_reads == 1, query
        assert 0 < engine.reads < CLIENTS, query  # each of them asks three times
