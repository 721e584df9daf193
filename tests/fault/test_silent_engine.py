"""An engine that accepts connections and requests and answers none: the service answers all the same."""

import asyncio
from collections import Counter
from contextlib import ExitStack
from functools import partial

import httpx
import psutil
import pytest

from datastore.dynamo import Table
from datastore.journal.webhooks import read_webhooks
from tests.command import on_table
from tests.engines import RunningEngine
from tests.fault.proxy import Proxy
from tests.service import start_service
from tests.waiting import until

QUERY = {"query": "{ boards(first: 1) { nodes { slug } } }"}
REQUESTS = 400
MAX_IN_FLIGHT = 64
GROWTH = 40_000_000
"""Bytes by which the service may grow under its first load; 400 pending requests and their answers need less."""


async def _outcome(http: httpx.AsyncClient) -> str:
    answer = await http.post("/graphql", json=QUERY)
    if answer.status_code != 200:
        return str(answer.status_code)
    body = answer.json()
    return str(body["errors"][0]["extensions"]["code"]) if "errors" in body else "OK"


@pytest.mark.soak
async def test_requests_to_a_silent_engine_are_answered(default_engine: RunningEngine, one_table: Table) -> None:
    """At their deadline, or refused at once; memory stays flat, readiness says so, and the service recovers."""
    async with Proxy(default_engine.url) as proxy:
        variables = on_table(
            proxy.url, one_table.name, RINGSIDE_REQUEST_TIMEOUT="1", RINGSIDE_MAX_IN_FLIGHT=str(MAX_IN_FLIGHT)
        )
        with ExitStack() as stack:
            service = await start_service(variables, stack)
            process = psutil.Process(service.process.pid)
            async with httpx.AsyncClient(base_url=service.url, timeout=60) as http:
                assert await _outcome(http) == "OK"
                before = process.memory_info().rss
                async with proxy.silent():
                    outcomes = Counter(await asyncio.gather(*(_outcome(http) for _ in range(REQUESTS))))
                    assert (await http.get("/readyz")).status_code == 503
                    assert (await http.get("/livez")).status_code == 200
                assert outcomes.keys() <= {"UNAVAILABLE", "503"}
                assert outcomes["UNAVAILABLE"] >= MAX_IN_FLIGHT // 2  # the share of one address
                assert process.memory_info().rss - before < GROWTH
                assert await _outcome(http) == "OK"


ADD_WEBHOOK = """mutation { addWebhook(input: { url: "https://8.8.8.8/", kinds: ["event.scored"] }) {
  ... on WebhookAdded { webhook { id } } } }"""


async def _is_held(table: Table) -> bool:
    return [webhook.holder is not None for webhook in await read_webhooks(table)] == [True]


@pytest.mark.soak
async def test_a_service_that_stops_does_not_wait_for_a_silent_engine(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """It ends within the 30 seconds that the guide asks for, with a webhook's lease and figures to report."""
    async with Proxy(default_engine.url) as proxy:
        variables = {
            "RINGSIDE_DYNAMODB_URL": proxy.url,
            "RINGSIDE_TABLE": one_table.name,
            "RINGSIDE_SECRETS": "a secret that is long enough to be one in tests",
        }
        with ExitStack() as stack:
            service = await start_service(variables, stack)
            token = await asyncio.to_thread(service.token, "root", "--role", "admin")
            headers = {"authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=60) as http:
                added = await http.post("/graphql", json={"query": ADD_WEBHOOK})
            assert added.json()["data"]["addWebhook"]["webhook"]["id"]
            await until(partial(_is_held, one_table), "the service sends to the webhook")
            async with proxy.silent():
                assert await asyncio.to_thread(service.stop, timeout=30) == 0
