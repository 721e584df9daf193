"""Many operations at once: each starts, and new documents are checked, one at a time. Others are answered between."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from datastore.comments.records import COMMENT, Comment
from datastore.dynamo import Table
from datastore.values.ids import Ids
from server.compiler import CompiledOperation, PreparedOperation
from server.execution.answers import Answer, run
from server.execution.documents import Documents, Operation
from server.http import pipeline
from server.http.pipeline import Pipeline, RequestTurns
from tests.attack import raw_http
from tests.attack.serving import Served, serving_on_a_socket
from tests.attack.websocket_frames import HANDSHAKE, PING, frame, message
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.waiting import until
from tests.websockets import PROTOCOL, receive, send

NEW = [f'query New{number} {{ contender(id: "1") {{ name }} }}' for number in range(24)]
KNOWN = "{ contenders(first: 100) { nodes { id name } } }"
MISSED = 'subscription { commentPosted(product: "p", after: "2026-01-01T00:00:00Z") { id author { name } } }'
AT = datetime(2026, 1, 2, tzinfo=UTC)
DEAR = 'query Dear { comments(product: "p", first: 100) { nodes { body author { name } title rating } } }'


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
async def iterations() -> AsyncIterator[Iterations]:
    iterations = Iterations()
    counting = asyncio.create_task(iterations.count())
    yield iterations
    counting.cancel()


def note(iterations: Iterations, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    """Counts each call of this method as blocking the loop."""
    original = getattr(owner, name)

    def noted(*arguments: Any, **named: Any) -> Any:
        iterations.blocked.append(iterations.number)
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, noted)


@pytest.fixture
async def served(default_engine: RunningEngine, one_table: Table) -> AsyncIterator[Served]:
    async with serving_on_a_socket(settings_for(default_engine, one_table.name, max_in_flight=60)) as served:
        yield served


async def _burst(url: str, queries: Sequence[str]) -> list[str]:
    """Sends all queries over one socket, in one piece; the types of what comes back."""
    async with connect(url.replace("http", "ws") + "/graphql", subprotocols=[PROTOCOL]) as connection:
        await send(connection, {"type": "connection_init"})
        assert (await receive(connection))["type"] == "connection_ack"
        asked = [{"id": str(n), "type": "subscribe", "payload": {"query": query}} for n, query in enumerate(queries)]
        connection.transport.pause_reading()
        await send(connection, *asked)
        connection.transport.resume_reading()
        ended: list[str] = []
        while len(ended) < len(queries):
            message = await receive(connection)
            if message["type"] in ("complete", "error"):
                ended.append(json.dumps(message.get("payload", message["type"])))
        return ended


async def test_a_burst_of_new_documents_lets_others_go_between(
    served: Served, iterations: Iterations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty-four documents of one socket used to be checked in one iteration of the loop: up to a second."""
    note(iterations, monkeypatch, Documents, "check")
    note(iterations, monkeypatch, CompiledOperation, "_compile")
    for _ in range(3):
        ended = await _burst(served.url, NEW)
        answered = [end for end in ended if end == '"complete"']
        assert len(answered) >= 15
        assert all("OVERLOADED" in end for end in ended if end != '"complete"')
    assert len(iterations.blocked) >= 2 * 15
    assert len(set(iterations.blocked)) == len(iterations.blocked)


async def test_a_burst_of_known_documents_lets_others_go_between(
    served: Served, iterations: Iterations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty-four operations of one socket used to run in one iteration of the loop, if none of them had to wait."""
    turns: RequestTurns = served.server.lifespan.state["pipeline"].request_turns
    turns.longest_slice = 0.0  # whatever they cost, there is time for one; a slice that has begun keeps its length
    for _ in range(3):
        await _burst(served.url, [KNOWN])
    note(iterations, monkeypatch, Pipeline, "execute")
    assert await _burst(served.url, [KNOWN] * 24) == ['"complete"'] * 24
    assert len(iterations.blocked) == 24
    assert len(set(iterations.blocked)) == 24


async def test_what_streams_have_missed_lets_others_go_between(
    served: Served, one_table: Table, iterations: Iterations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's hundred streams of all that was ever posted had readers wait thirty times as long."""
    posted = [Comment("p", Ids().next(AT + timedelta(seconds=second)), "en", 5, "Good", "ada") for second in range(9)]
    await one_table.write_many(map(COMMENT.put, posted))
    served.server.lifespan.state["pipeline"].request_turns.longest_slice = 0.0
    note(iterations, monkeypatch, PreparedOperation, "execute_event")
    async with connect(served.url.replace("http", "ws") + "/graphql", subprotocols=[PROTOCOL]) as connection:
        await send(connection, {"type": "connection_init"})
        asked = [{"id": str(n), "type": "subscribe", "payload": {"query": MISSED}} for n in range(8)]
        await send(connection, *asked)
        told = Counter[str]()
        while told["next"] < 8 * 9:
            told[(await receive(connection))["type"]] += 1
    assert told == {"connection_ack": 1, "next": 8 * 9}
    assert len(set(iterations.blocked)) == len(iterations.blocked) == 8 * 9


async def test_known_documents_are_answered_while_new_ones_are_refused(served: Served) -> None:
    """Half of what may be in flight may wait to be checked; the other half is for what is known."""
    known = {"query": "{ boards { nodes { slug } } }"}
    async with httpx.AsyncClient(base_url=served.url, timeout=120) as http, AsyncExitStack() as stack:
        assert (await http.post("/graphql", json=known)).status_code == 200
        connections = [
            await stack.enter_async_context(httpx.AsyncClient(base_url=served.url, timeout=120)) for _ in range(40)
        ]
        new = [client.post("/graphql", json={"query": NEW[0].replace("New0", f"Other{n}")})
               for n, client in enumerate(connections)]  # fmt: skip
        answers = asyncio.gather(*new)
        while not answers.done():
            assert (await http.post("/graphql", json=known)).status_code in (200, 503)
        assert {answer.status_code for answer in await answers} <= {200, 503}
        assert (await http.post("/graphql", json=known)).status_code == 200


async def test_a_few_of_the_dearest_answers_are_made_at_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait for their turn, of whichever operation, and what costs little is answered meanwhile."""
    made, most, may_go_on = 0, 0, asyncio.Event()

    async def noted(operation: Operation, *arguments: Any, **named: Any) -> Answer:
        nonlocal made, most
        if operation.name is None:
            return await run(operation, *arguments, **named)
        made += 1
        most = max(most, made)
        await may_go_on.wait()
        try:
            return await run(operation, *arguments, **named)
        finally:
            made -= 1

    monkeypatch.setattr(pipeline, "run", noted)
    burst = asyncio.create_task(_burst(served.url, [DEAR.replace("Dear", f"Dear{n}") for n in range(24)]))
    async with httpx.AsyncClient(base_url=served.url, timeout=120) as http:
        while made < pipeline.DEAR_AT_ONCE:
            assert not burst.done()
            await asyncio.sleep(0)
        answer = await http.post("/graphql", json={"query": "{ boards { nodes { slug } } }"})
        assert answer.status_code == 200
        may_go_on.set()
        assert await burst == ['"complete"'] * 24
    assert most == pipeline.DEAR_AT_ONCE


@pytest.mark.parametrize(
    ("ping", "pings", "pong", "most"),
    [(message({"type": "ping"}), 9_000, len(b'{"type":"pong"}') + 2, 1_000), (frame(b"x", PING), 36_000, 3, 144_000)],
    ids=["messages", "frames"],
)
async def test_a_flood_of_pings_lets_others_go_between(
    served: Served, ping: bytes, pings: int, pong: int, most: int
) -> None:
    """A quarter of a megabyte of them was answered at once, for each of eight sockets, before anybody else was.

    Now there is time for one message in an iteration of the event loop, and for some kilobytes of frames; all are
    answered in the end.
    """
    turns: RequestTurns = served.server.lifespan.state["pipeline"].request_turns
    served.server.config.ws_ping_interval = None  # these sockets answer none, for which they would be closed after 40 s
    received = iterations = 0

    async def count_iterations() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)

    async def count_bytes(reader: asyncio.StreamReader) -> None:
        nonlocal received
        while piece := await reader.read(2**20):
            received += len(piece)

    # From before the sockets' first messages: a slice that has begun with one keeps its length.
    usual, turns.longest_slice = turns.longest_slice, 0.0
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(raw_http.connect(served.url)) for _ in range(8)]
        for reader, writer in sockets:
            writer.write(HANDSHAKE)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(message({"type": "connection_init"}))
            await reader.readuntil(b'"connection_ack"}')
        counting = [asyncio.create_task(count_bytes(reader)) for reader, _ in sockets]
        for _, writer in sockets:
            writer.write(ping * pings)
        iterating = asyncio.create_task(count_iterations())
        other_reader, other_writer = await stack.enter_async_context(raw_http.connect(served.url))
        other_writer.write(raw_http.LIVEZ)
        assert b" 200 " in await other_reader.readline()
        iterating.cancel()
        assert received < (most + iterations) * pong  # a busy machine takes many iterations for a connection
        turns.longest_slice = usual
        await until(lambda: received >= 8 * pings * pong, "all pings are answered")
        for task in counting:
            task.cancel()
