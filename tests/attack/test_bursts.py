"""Many new documents at once: each is checked in a turn of its own, and others are answered between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest
from websockets.asyncio.client import connect

from datastore.dynamo import Table
from server.compiler import CompiledOperation
from server.execution.documents import Documents
from tests.attack.serving import Served, serving_on_a_socket
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.websockets import PROTOCOL, receive, send

NEW = [f'query New{number} {{ contender(id: "1") {{ name }} }}' for number in range(24)]


class Iterations:
    """Counts the iterations of the event loop, and those in which something blocked it."""

    def __init__(self) -> None:
        self.number = 0
        self.blocked: list[int] = []

    async def count(self) -> None:
        while True:
            self.number += 1
            await asyncio.sleep(0)


@pytest.fixture
async def iterations(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Iterations]:
    iterations = Iterations()
    for owner, name in ((Documents, "_check"), (CompiledOperation, "_compile")):
        original = getattr(owner, name)

        def noted(*arguments, original=original, **named):
            iterations.blocked.append(iterations.number)
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, noted)
    counting = asyncio.create_task(iterations.count())
    yield iterations
    counting.cancel()


@pytest.fixture
async def served(default_engine: RunningEngine, one_table: Table) -> AsyncIterator[Served]:
    async with serving_on_a_socket(settings_for(default_engine, one_table.name, max_in_flight=30)) as served:
        yield served


async def _burst(url: str) -> list[str]:
    """Sends all documents over one socket, in one piece; the types of what comes back."""
    async with connect(url.replace("http", "ws") + "/graphql", subprotocols=[PROTOCOL]) as connection:  # type: ignore[list-item]
        await send(connection, {"type": "connection_init"})
        assert (await receive(connection))["type"] == "connection_ack"
        asked = [{"id": str(n), "type": "subscribe", "payload": {"query": query}} for n, query in enumerate(NEW)]
        connection.transport.pause_reading()
        await send(connection, *asked)
        connection.transport.resume_reading()
        ended: list[str] = []
        while len(ended) < len(NEW):
            message = await receive(connection)
            if message["type"] in ("complete", "error"):
                ended.append(json.dumps(message.get("payload", message["type"])))
        return ended


async def test_a_burst_of_new_documents_lets_others_go_between(served: Served, iterations: Iterations) -> None:
    """Twenty-four documents of one socket used to be checked in one iteration of the loop: up to a second."""
    for _ in range(3):
        ended = await _burst(served.url)
        answered = [end for end in ended if end == '"complete"']
        assert len(answered) >= 15
        assert all("OVERLOADED" in end for end in ended if end != '"complete"')
    assert len(iterations.blocked) >= 2 * 15
    assert len(set(iterations.blocked)) == len(iterations.blocked)


async def test_known_documents_are_answered_while_new_ones_are_refused(served: Served) -> None:
    """Half of what may be in flight may wait to be checked; the other half is for what is known."""
    known = {"query": "{ boards { nodes { slug } } }"}
    async with httpx.AsyncClient(base_url=served.url, timeout=30) as http, AsyncExitStack() as stack:
        assert (await http.post("/graphql", json=known)).status_code == 200
        connections = [await stack.enter_async_context(httpx.AsyncClient(base_url=served.url)) for _ in range(40)]
        new = [client.post("/graphql", json={"query": NEW[0].replace("New0", f"Other{n}")})
               for n, client in enumerate(connections)]  # fmt: skip
        answers = asyncio.gather(*new)
        while not answers.done():
            assert (await http.post("/graphql", json=known)).status_code in (200, 503)
        assert {answer.status_code for answer in await answers} <= {200, 503}
        assert (await http.post("/graphql", json=known)).status_code == 200
