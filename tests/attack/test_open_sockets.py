"""Sockets and streams: how many there may be, how much they may do, and for how long."""

import asyncio
import json
import re
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from datastore.dynamo import Table
from datastore.values.ids import first_id
from resolvers.live import topics as topics_module
from resolvers.requests.context import Role, Services
from server.auth.identification import CHANGED, Credentials, Identification, Identified
from server.auth.tokens import mint
from server.settings import Settings
from server.telemetry import Metrics
from tests.attack import raw_http
from tests.attack.serving import Served, serving_on_a_socket
from tests.conftest import SECRET, settings_for
from tests.engines import RunningEngine
from tests.intercepted import Send, intercepted
from tests.npm import FOLDER, node_with
from tests.queries import ADD_CONTENDER, POST_COMMENT
from tests.service import Service, running_service
from tests.waiting import LONGEST, until
from tests.websockets import PROTOCOL, closing, receive, send

WATCH = 'subscription { commentPosted(product: "p") { id } }'
READ = "{ boards { nodes { slug } } }"
LIFETIMES = (8, 60, 200)
"""Of tokens, in seconds, one after the other: a busy machine may open nothing before the first ends."""
HANDSHAKE = (
    "connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", f"sec-websocket-protocol: {PROTOCOL}",
)  # fmt: skip


@pytest.fixture
def strict(default_engine: RunningEngine, one_table: Table) -> Settings:
    """Settings with low limits."""
    return settings_for(
        default_engine,
        one_table.name,
        max_in_flight=2,
        max_streams=4,
        streams_per_address=2,
        max_subscriptions=5,
        subscriptions_per_address=3,
        operations_per_socket=8,
    )


@pytest.fixture
async def served(strict: Settings) -> AsyncIterator[Served]:
    async with serving_on_a_socket(strict) as served:
        yield served


@asynccontextmanager
async def socket_of(url: str, token: str | None = None, **how: Any) -> AsyncIterator[ClientConnection]:
    """An acknowledged socket."""
    async with connect(url.replace("http", "ws") + "/graphql", subprotocols=[PROTOCOL], **how) as connection:
        await send(connection, {"type": "connection_init", "payload": {"Authorization": token} if token else {}})
        assert (await receive(connection))["type"] == "connection_ack"
        yield connection


def ask(number: int, query: str) -> dict[str, Any]:
    return {"id": str(number), "type": "subscribe", "payload": {"query": query}}


def bearer(settings: Settings, seconds: float = 3600) -> str:
    return "Bearer " + mint(settings, "ada", roles=[Role.ADMIN], lifetime=timedelta(seconds=seconds))


async def counted(served: Served, outcome: str) -> float:
    """How many requests have ended so, as the service's metrics tell it."""
    async with httpx.AsyncClient(base_url=served.url, timeout=60) as http:
        lines = (await http.get("/metrics")).text.splitlines()
    ended = [line for line in lines if re.match(rf'ringside_requests_total.*outcome="{outcome}"', line)]
    return sum(float(line.split()[-1]) for line in ended)


async def test_operations_of_sockets_count_as_requests_in_flight(served: Served) -> None:
    """At the limit they are refused with OVERLOADED, as HTTP requests are with 503; afterwards they are answered."""
    async with socket_of(served.url) as first, socket_of(served.url) as second:
        for number in (100, 101):  # checked at its first use and compiled at its second, one document after the other
            await send(first, ask(number, READ))
            assert [(await receive(first))["type"] for _ in range(2)] == ["next", "complete"]
        for connection in (first, second):
            await send(connection, *(ask(number, READ) for number in range(8)))
        codes: list[str] = []
        for connection in (first, second):
            ended: set[str] = set()
            while len(ended) < 8:
                message = await receive(connection)
                if message["type"] != "next":
                    ended.add(message["id"])
                if message["type"] == "error":
                    codes.append(message["payload"][0]["extensions"]["code"])
        assert set(codes) == {"OVERLOADED"}
        assert len(codes) <= 14
        await send(first, ask(9, READ))
        assert (await receive(first))["type"] == "next"


async def test_operations_that_wait_for_a_new_document_are_counted_when_they_run(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share its check, but do not run all at once after it."""
    count, numbers = Metrics.count_in_flight, list[int]()

    def record(metrics: Metrics, change: int) -> None:
        count(metrics, change)
        numbers.append(metrics.in_flight)

    monkeypatch.setattr(Metrics, "count_in_flight", record)
    async with socket_of(served.url) as connection:
        await send(connection, *(ask(number, READ + " # new") for number in range(8)))
        ended: set[str] = set()
        while len(ended) < 8:
            message = await receive(connection)
            if message["type"] != "next":
                ended.add(message["id"])
    assert max(numbers) <= 2


async def test_a_mutation_that_is_asked_for_as_a_stream_needs_no_place(served: Served, strict: Settings) -> None:
    """It is carried out, so its answer must come, however many streams are open; it ends at once."""
    headers = {"accept": "text/event-stream", "authorization": bearer(strict)}
    add = {"query": ADD_CONTENDER, "variables": {"input": {"name": "Ann"}}}
    async with socket_of(served.url), socket_of(served.url), httpx.AsyncClient(base_url=served.url, timeout=60) as http:
        answer = await http.post("/graphql", json=add, headers=headers)
    assert answer.status_code == 200
    assert '"contender":' in answer.text


async def test_a_repeated_id_is_told_in_few_bytes(served: Served) -> None:
    """A reason for closing has 123 bytes at most, and an id may have more."""
    async with socket_of(served.url) as connection:
        again = {**ask(0, WATCH), "id": "日本" * 60}
        await send(connection, again, again)
        assert (await closing(connection)).code == 4409


async def test_sockets_and_streams_of_an_address_are_bounded(served: Served) -> None:
    """Of both kinds together; a place that becomes free can be taken."""
    async with AsyncExitStack() as stack, httpx.AsyncClient(base_url=served.url, timeout=60) as http:
        headers = {"accept": "text/event-stream"}
        request = http.build_request("POST", "/graphql", json={"query": WATCH}, headers=headers)
        first = await stack.enter_async_context(socket_of(served.url))
        stream = await http.send(request, stream=True)
        assert stream.status_code == 200
        with pytest.raises(InvalidStatus) as refused:
            await stack.enter_async_context(socket_of(served.url))
        assert refused.value.response.status_code == 503
        second = await http.post("/graphql", json={"query": WATCH}, headers=headers)
        assert (second.status_code, second.headers["retry-after"]) == (503, "1")
        await first.close()
        await stack.enter_async_context(socket_of(served.url))
        await stream.aclose()


async def test_refused_sockets_streams_and_subscriptions_are_counted_as_overloaded(served: Served) -> None:
    """Otherwise nobody is alerted while clients are told to come back: the alert looks at this metric."""
    async with AsyncExitStack() as stack, httpx.AsyncClient(base_url=served.url, timeout=60) as http:
        connection = await stack.enter_async_context(socket_of(served.url))
        await send(connection, *(ask(number, WATCH) for number in range(4)))
        assert (await receive(connection))["type"] == "error"
        assert await counted(served, "overloaded") == 1
        await stack.enter_async_context(socket_of(served.url))
        with pytest.raises(InvalidStatus):
            await stack.enter_async_context(socket_of(served.url))
        assert await counted(served, "overloaded") == 2
        stream = await http.post("/graphql", json={"query": WATCH}, headers={"accept": "text/event-stream"})
        assert (stream.status_code, await counted(served, "overloaded")) == (503, 3)


async def test_refused_sockets_are_no_errors(tmp_path: Path) -> None:
    """A stranger could fill the log with them, at the level that wakes people; nor are those who have gone.

    One warning a minute names the limit.
    """
    variables = {"RINGSIDE_DATA": str(tmp_path), "RINGSIDE_LOG": "info,json", "RINGSIDE_STREAMS_PER_ADDRESS": "2"}
    with running_service(variables) as own:
        async with AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(socket_of(own.url))
            for _ in range(20):
                with pytest.raises(InvalidStatus) as refused:
                    await stack.enter_async_context(socket_of(own.url))
                assert refused.value.response.status_code == 503
        for _ in range(100):
            async with raw_http.connect(own.url) as (_, writer):
                writer.write(raw_http.head("GET", "/graphql", *HANDSHAKE))
                await writer.drain()
        assert (await raw_http.exchange(own.url, [raw_http.post()])).statuses == [200]
        assert [line for line in own.lines if '"level":"error"' in line] == []
        told = [line for line in own.lines if '"limit":"sockets and streams","total":2,"of_address":2' in line]
        assert 0 < len(told) < 5


async def test_requests_of_an_address_are_bounded(default_engine: RunningEngine, one_table: Table) -> None:
    """To half of those in flight; the rest gets 503 and is told when to retry, and others are answered meanwhile."""
    settings = settings_for(default_engine, one_table.name, max_in_flight=40)
    async with serving_on_a_socket(settings) as served, AsyncExitStack() as stack:
        introspect = [raw_http.post(body=json.dumps({"query": f"{{ __schema {{ types {{ name }} }} }} # {n}"}).encode())
                      for n in range(60)]  # fmt: skip
        connections = [await stack.enter_async_context(raw_http.connect(served.url)) for _ in introspect]
        other = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
        async with httpx.AsyncClient(transport=other, base_url=served.url, timeout=120) as http:
            for _ in range(2):  # its document is known then, and not forgotten for those that come once
                assert (await http.post("/graphql", json={"query": READ})).status_code == 200
            for (_, writer), request in zip(connections, introspect, strict=True):
                writer.write(request)
            assert (await http.post("/graphql", json={"query": READ})).status_code == 200
        heads = [await reader.readuntil(b"\r\n\r\n") for reader, _ in connections]
        refused = [head for head in heads if b" 503 " in head]
        assert all(b"retry-after: 1\r\n" in head for head in refused)
        assert sum(b" 200 " in head for head in heads) == 60 - len(refused)
        assert 10 <= len(refused) <= 40  # a busy machine reads some of them when others were answered


async def test_open_subscriptions_of_an_address_are_bounded(served: Served) -> None:
    """The rest is refused with OVERLOADED, until one has ended."""
    async with socket_of(served.url) as connection:
        await send(connection, *(ask(number, WATCH) for number in range(4)))
        refused = await receive(connection)
        assert (refused["type"], refused["payload"][0]["extensions"]["code"]) == ("error", "OVERLOADED")
        assert refused["payload"][0]["extensions"]["retryAfterSeconds"] > 0
        await send(connection, {"id": "0", "type": "complete"}, ask(5, WATCH), ask(6, "{ __typename }"))
        assert [(await receive(connection))["type"] for _ in range(2)] == ["next", "complete"]


async def test_one_address_cannot_take_all_live_topics(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of products that nobody has heard of, without signing in; a reader elsewhere still gets the comments."""
    monkeypatch.setattr(topics_module, "MOST_TOPICS", 3)
    monkeypatch.setattr(topics_module, "TOPICS_PER_ADDRESS", 2)
    async with socket_of(served.url) as greedy, socket_of(served.url, local_addr=("127.0.0.2", 0)) as reader:
        await send(greedy, *(ask(number, WATCH.replace('"p"', f'"invented-{number}"')) for number in range(3)))
        refused = await receive(greedy)
        extensions = refused["payload"][0]["extensions"]
        assert (refused["type"], refused["id"], extensions["code"]) == ("error", "2", "OVERLOADED")
        assert extensions["retryAfterSeconds"]
        await send(reader, ask(0, WATCH), ask(1, "{ __typename }"))
        assert [(await receive(reader))["type"] for _ in range(2)] == ["next", "complete"]
        await send(greedy, {"id": "0", "type": "complete"}, ask(3, WATCH), ask(4, "{ __typename }"))
        assert [(await receive(greedy))["type"] for _ in range(2)] == ["next", "complete"]
    assert await counted(served, "overloaded") == 1


async def test_a_subscription_that_fails_tells_its_client(served: Served) -> None:
    """Otherwise a page waits for what never comes, and does not know that it should ask again."""
    long_ago = datetime(2000, 1, 1, tzinfo=UTC)

    async def call(_: str, send_call: Send) -> Any:
        if first_id(long_ago - timedelta(seconds=2)) in str(send_call.keywords):  # type: ignore[attr-defined]  # of a partial
            message = "a record that nobody expected"
            raise ValueError(message)
        return await send_call()

    table = served.server.lifespan.state["services"].table
    with intercepted(table, ("query",), call):
        async with socket_of(served.url) as connection:
            await send(connection, ask(7, WATCH.replace('"p"', f'"p", after: "{long_ago.isoformat()}"')))
            async with asyncio.timeout(LONGEST):
                failed = await receive(connection)
    [error] = failed["payload"]
    assert (failed["type"], failed["id"], error["extensions"]["code"]) == ("error", "7", "INTERNAL")
    assert "nobody expected" not in error["message"]
    assert await counted(served, "failed") == 1


async def test_faults_are_counted_as_failed_wherever_they_happen(served: Served, strict: Settings) -> None:
    """In what comes before an operation, or in a field of an event: the alert for faults looks at this metric."""

    async def call(_: str, _send: Send) -> Any:
        message = "a record that nobody expected"
        raise ValueError(message)

    token, code = bearer(strict), "INTERNAL"
    post = {"query": POST_COMMENT, "variables": {"input": {"product": "p", "language": "en", "body": "Good."}}}
    watch = WATCH.replace('"p"', f'"p", after: "{datetime.now(UTC).isoformat()}"').replace("id", "author { name }")
    services = served.server.lifespan.state["services"]
    failing = partial(intercepted, services.table, ("batch_get_item",), call)
    http = httpx.AsyncClient(base_url=served.url, timeout=60, headers={"authorization": token})
    async with http, socket_of(served.url, token) as connection:
        with failing():
            await send(connection, ask(1, READ))
            assert (await receive(connection))["payload"][0]["extensions"]["code"] == code
            assert (await http.post("/graphql", json=post)).status_code == 500
        assert (await http.post("/graphql", json=post)).status_code == 200
    services.profiles.forget_all()
    async with socket_of(served.url, token) as connection:
        with failing():
            await send(connection, ask(2, watch))
            assert (await receive(connection))["payload"]["errors"][0]["extensions"]["code"] == code
    assert await counted(served, "failed") == 3


async def test_what_is_nested_deeply_is_answered_as_over_http(served: Served) -> None:
    """What nobody asked for may be of any depth that the reader of JSON takes."""
    asked = f'{{"query": "{READ}", "variables": {{"unused": {"[" * 1000}{"]" * 1000}}}}}'
    json = {"content-type": "application/json"}
    async with httpx.AsyncClient(base_url=served.url, timeout=60) as http, socket_of(served.url) as connection:
        over_http = (await http.post("/graphql", content=asked, headers=json)).json()
        await send(connection, f'{{"id": "1", "type": "subscribe", "payload": {asked}}}')
        assert (await receive(connection))["payload"] == over_http


async def test_operations_of_a_socket_are_bounded(served: Served) -> None:
    """A client that sends more breaks the protocol."""
    async with socket_of(served.url) as connection:
        await send(connection, *(ask(number, READ) for number in range(30)))
        assert (await closing(connection)).code == 4429


async def test_a_socket_that_sends_too_large_a_message_is_closed_with_the_code_for_it(
    served: Served, strict: Settings
) -> None:
    """As the guide lists it among the codes."""
    async with socket_of(served.url) as connection:
        await connection.send("x" * (strict.max_body_bytes + 1))
        assert (await closing(connection)).code == 1009


async def test_a_socket_ends_with_its_token(served: Served, strict: Settings) -> None:
    """With 4403, although a subscription is open: the client connects again with a new token."""
    for seconds in LIFETIMES:
        with suppress(ConnectionClosed):
            async with socket_of(served.url, bearer(strict, seconds)) as connection:
                await send(connection, ask(1, WATCH))
                closed = await closing(connection)
                break
    assert (closed.code, closed.reason) == (4403, "Forbidden: token expired")


async def test_a_stream_ends_with_its_token(served: Served, strict: Settings) -> None:
    """The last event is an error, and then it is complete."""
    async with httpx.AsyncClient(base_url=served.url, timeout=LONGEST) as http:
        for seconds in LIFETIMES:
            headers = {"accept": "text/event-stream", "authorization": bearer(strict, seconds)}
            response = await http.post("/graphql", json={"query": WATCH}, headers=headers)
            if response.status_code == 200:
                break
    [event] = [line for line in response.text.splitlines() if line.startswith("data: ")]
    [error] = json.loads(event.removeprefix("data: "))["errors"]
    assert error["extensions"]["code"] == "NOT_SIGNED_IN"
    assert "token expired" in error["message"]
    assert response.text.endswith("event: complete\ndata:\n\n")


@pytest.mark.usefixtures("quick_checks")
async def test_a_token_is_checked_again_while_a_socket_is_open(strict: Settings) -> None:
    """A secret or a role that was withdrawn ends it; a visitor's socket has nothing that could end.

    A session that has come to last longer keeps it open.
    """
    headers = [(b"authorization", bearer(strict).encode())]
    nobody_is_erased = SimpleNamespace(find_many=AsyncMock(return_value=[]))
    services = Services(nobody_is_erased, strict.seal())  # type: ignore[arg-type]  # no table
    before = Identification(strict, services)
    identified = await before.identify(headers, secure=False)
    rotated = Settings(dynamodb_url=strict.dynamodb_url, secrets=(f"{SECRET}, but another",))
    withdrawn = _credentials(Identification(rotated, services), identified, headers)
    assert "not signed by a key known here" in await withdrawn.lapse()
    fewer = identified._replace(viewer=replace(identified.viewer, roles=frozenset()))
    assert await _credentials(before, fewer, headers).lapse() == CHANGED
    visitor = _credentials(before, await before.identify([], secure=False), [])
    for lasting in (visitor, _credentials(before, identified, headers)):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(lasting.lapse(), 0.5)
    checks: list[float] = []

    async def identify() -> Identified:
        checks.append(time.time())
        return identified

    soon = identified._replace(expires_at=time.time() + 0.3)
    renewed = asyncio.create_task(Credentials(soon, identify).lapse())
    await until(lambda: renewed.done() or len(checks) > 5, "a session that is used is checked after its old end, too")
    assert renewed.cancel()  # what has ended cannot be cancelled


def _credentials(
    identification: Identification, identified: Identified, headers: list[tuple[bytes, bytes]]
) -> Credentials:
    return Credentials(identified, partial(identification.identify, headers, secure=False))


async def test_a_graphql_ws_client_connects_again_with_a_new_token(served: Served, strict: Settings) -> None:
    """The usual client of browsers, whose `connectionParams` bring a fresh token."""
    node = node_with("graphql-ws")
    address = served.url.replace("http", "ws") + "/graphql"
    for seconds in LIFETIMES:
        tokens = [bearer(strict, lifetime).removeprefix("Bearer ") for lifetime in (seconds, 3600)]
        command = [node, "reconnect.mjs", address, *tokens]
        client = await asyncio.to_thread(
            subprocess.run, command, cwd=FOLDER, capture_output=True, text=True, timeout=LONGEST, check=True
        )
        events = [json.loads(line) for line in client.stdout.splitlines()]
        if events[0] == {"event": "connected"}:
            break
    assert events == [
        {"event": "connected"},
        {"event": "closed", "code": 4403, "reason": "Forbidden: token expired"},
        {"event": "connected"},
    ]


async def test_an_aborted_socket_fills_no_log(service: Service) -> None:
    """It used to be a traceback for each operation under way."""
    lines = len(service.lines)
    for _ in range(3):
        async with connect(service.url.replace("http", "ws") + "/graphql", subprotocols=[PROTOCOL]) as connection:
            await send(connection, {"type": "connection_init"}, *(ask(number, READ) for number in range(30)))
            await receive(connection)
            connection.transport.abort()
    async with httpx.AsyncClient(base_url=service.url, timeout=60) as http:
        for _ in range(5):
            await http.post("/graphql", json={"query": READ})
    assert [line for line in service.lines[lines:] if "Traceback" in line or '"level":"error"' in line] == []
