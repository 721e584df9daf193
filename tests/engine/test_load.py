"""Many who want the same at once: the service in its own process, asked over HTTP, its reads seen at the engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import aiohttp
import pytest

from datastore.dynamo import Table
from tests.engines import Running
from tests.fault.monitored import Watched
from tests.service import Service, running_service

CROWD = 200
SECRET = "a secret for a service that many ask"
LEADERBOARD = '{ leaderboard(board: "main", first: 100) { totalCount nodes { rank contender { name } } } }'
PAGE = """{ comments(product: "ringside-tee", languages: ["en"], ratings: [4, 5]) {
  nodes { body author { name } } pageInfo { hasNextPage } } }"""
TOTAL = '{ comments(product: "ringside-tee") { totalCount nodes { body author { name } } } }'
EVENT = """query ($event: ID!) { event(id: $event) {
  name matches { name pickCounts } predictions { nodes { rank user { name } } } } }"""
STANDINGS = '{ standings(season: "2026", first: 20) { totalCount nodes { rank points user { name } } } }'
SCORED = "{ events(state: SCORED) { nodes { id } } }"


@pytest.fixture
async def watched(one_table: Table, default_engine: Running) -> AsyncIterator[tuple[Watched, Service]]:
    """The service with its demo data, and the engine as it sees it."""
    async with Watched(default_engine.url, slowness=0) as engine:
        variables = {
            "RINGSIDE_DYNAMODB_URL": engine.url,
            "RINGSIDE_TABLE": one_table.name,
            "RINGSIDE_SECRETS": SECRET,
        }
        manager = running_service(variables, ["--demo"])
        service = await asyncio.to_thread(manager.__enter__)
        try:
            await listening(service)
            yield engine, service
        finally:
            await asyncio.to_thread(manager.__exit__, None, None, None)


async def listening(service: Service) -> None:
    """It says that it has started a moment before it listens."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(20):
        while True:
            try:
                async with session.get(f"{service.url}/livez") as response:
                    assert response.status == 200
                    return
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)


async def scored(service: Service) -> str:
    """The id of the event that was scored."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}/graphql", json={"query": SCORED}) as response,
    ):
        id_: str = (await response.json())["data"]["events"]["nodes"][0]["id"]
        return id_


async def crowd(service: Service, query: str, variables: Mapping[str, str], times: int = 3) -> None:
    """Everybody asks, and again as soon as they are answered; all of them get the same."""
    answers: list[bytes] = []
    asked = {"query": query, "variables": variables}

    async def one(session: aiohttp.ClientSession) -> None:
        for _ in range(times):
            async with session.post(f"{service.url}/graphql", json=asked) as response:
                assert response.status == 200
                answers.append(await response.read())

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(one(session) for _ in range(CROWD)))
    assert len(answers) == CROWD * times
    assert len(set(answers)) == 1
    assert b"errors" not in answers[0]


async def test_a_crowd_makes_one_read_of_a_kind_at_a_time(watched: tuple[Watched, Service]) -> None:
    """Two hundred clients ask for one leaderboard, or one page, three times each: no two reads of the same at once."""
    engine, service = watched
    variables = {"event": await scored(service)}
    engine.slowness = 0.02
    for query in (LEADERBOARD, PAGE, TOTAL, EVENT, STANDINGS):
        engine.forget()
        await crowd(service, query, variables if query is EVENT else {})
        assert engine.most_of_a_key == 1, query
        assert 0 < engine.reads < CROWD / 2, query
