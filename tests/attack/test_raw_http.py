"""Hostile and broken HTTP: too much, too slow, malformed. The service answers or closes, and goes on."""

import asyncio
import http.client
import inspect
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, closing, suppress
from itertools import chain, repeat
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import uvloop
from graphql import get_introspection_query
from hypothesis import HealthCheck, given, settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from datastore.dynamo import Table
from server.http.protocol import (
    LISTENERS,
    MAX_HEADERS,
    MAX_PIPELINED,
    MOST_UNREAD,
    LimitedProtocol,
    ServerConfig,
    listeners,
    raise_file_limit,
)
from server.settings import Settings
from tests.attack import raw_http
from tests.attack.raw_http import CHUNKED, LIVEZ, QUERY, connect, exchange, head, post
from tests.attack.serving import Served, serving_on_a_socket
from tests.attack.websocket_frames import CONTINUATION, HANDSHAKE, TEXT, frame, message
from tests.client import serving
from tests.comments import post as post_comment
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.examples import examples
from tests.service import Service, running_service
from tests.waiting import LONGEST, until
from tests.websockets import PROTOCOL

ENDLESS: Sequence[bytes] = (CHUNKED, *[b"10000\r\n" + b" " * 65_536 + b"\r\n"] * 40)
LARGE = b"x" * 140_000
"""More than twice the limit: what a read brings after the headers' end is counted from the next one on."""


@pytest.fixture
def limited(default_engine: RunningEngine, one_table: Table) -> Settings:
    limits = {"header_timeout": 300, "body_timeout": 300, "max_connections": 20, "max_body_bytes": 10_000}
    return settings_for(default_engine, one_table.name, idle_timeout=0.3, **limits)


@pytest.fixture
async def small(limited: Settings) -> AsyncIterator[Served]:
    """A service that waits for requests, and keeps few connections and no idle ones."""
    async with serving_on_a_socket(limited) as served:
        yield served


@pytest.fixture
async def impatient(limited: Settings) -> AsyncIterator[Served]:
    """A service that waits for nobody. In two seconds a client of a busy machine has begun its request."""
    timeouts = {"header_timeout": 2.0, "body_timeout": 0.3, "idle_timeout": 3.0}
    async with serving_on_a_socket(limited.model_copy(update=timeouts)) as served:
        yield served


def test_uvicorn_still_has_what_the_protocol_overrides() -> None:
    """Another version of uvicorn may call other methods; then the limits would vanish without a word."""
    added = {"on_chunk_header"}  # which the parser calls if it is there
    overridden = {name for name in vars(LimitedProtocol) if callable(getattr(HttpToolsProtocol, name, None))}
    assert overridden >= {
        "connection_made", "connection_lost", "data_received", "on_message_begin", "on_headers_complete",
        "on_body", "on_message_complete", "on_response_complete", "send_400_response", "handle_websocket_upgrade",
        "_should_upgrade", "_unsupported_upgrade_warning",
    }  # fmt: skip
    hooks = {name for name in vars(LimitedProtocol) if name.startswith("on_")} - added
    assert hooks <= set(dir(HttpToolsProtocol))
    made = inspect.getsource(HttpToolsProtocol)
    for name in ("self.connections", "self.pipeline", "self.cycle", "self.parser", "self.headers", "self.loop"):
        assert f"{name}" in made
    cycle = inspect.getsource(RequestResponseCycle)
    for name in ("disconnected", "message_event", "response_started", "response_complete", "keep_alive"):
        assert f"self.{name}" in cycle
    sockets = inspect.getsource(WebSocketsSansIOProtocol)
    for name in ("close_sent", "handshake_initiated", "queue.empty()", "read_paused", "transport.resume_reading()"):
        assert f"self.{name}" in sockets
    assert "self.handle_ping()" in sockets
    assert ServerConfig.__mro__[1].__module__ == "uvicorn.config"


@pytest.mark.parametrize(
    "sent",
    [
        head("GET", "/livez", b"x: " + LARGE),
        head("GET", "/" + "a" * 100_000),
        head("GET", "/livez", *["a: b"] * (MAX_HEADERS + 1)),
        head("GET", "/livez", *["a: b"] * 100_000),
        CHUNKED + b"1a;" + LARGE + b"\r\n" + QUERY + b"\r\n0\r\n\r\n",
        CHUNKED + b"1a\r\n" + QUERY + b"\r\n0\r\nx: " + LARGE + b"\r\n\r\n",
    ],
    ids=["one header", "the request line", "some hundred headers", "many headers", "a chunk's extension", "a trailer"],
)
@pytest.mark.parametrize("size", [1000, 10_000_000])
async def test_headers_beyond_the_limit_are_refused(service: Service, sent: bytes, size: int) -> None:
    """With 431, and the connection is closed, however many pieces the bytes come in."""
    pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
    answered = await exchange(service.url, pieces, answers=None)
    assert (answered.statuses, answered.closed) == ([431], True)


async def test_headers_up_to_the_limit_are_accepted(service: Service) -> None:
    """Also twice on a connection, with a body in small chunks after them."""
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in QUERY)
    sent = CHUNKED.replace(b"\r\n\r\n", b"\r\nx: " + b"x" * 60_000 + b"\r\n\r\n") + chunks + b"0\r\n\r\n"
    assert (await exchange(service.url, [sent + sent], answers=2)).statuses == [200, 200]


@pytest.mark.soak
async def test_an_endless_header_costs_little_memory(tmp_path: Path) -> None:
    """127 MB of headers took 415 MB of memory; now they are not read."""
    with running_service({"RINGSIDE_DATA": str(tmp_path)}) as own:
        before = raw_http.resident_bytes(own.process.pid)
        flood = (b"GET /livez HTTP/1.1\r\nhost: x\r\nx: ", *[b"x" * 1_000_000] * 60)
        answers = await asyncio.gather(*(exchange(own.url, flood, answers=None) for _ in range(4)))
        assert all(answer.closed for answer in answers)
        assert raw_http.resident_bytes(own.process.pid) - before < 30_000_000
        assert (await exchange(own.url, [LIVEZ])).statuses == [200]


async def test_a_body_beyond_the_limit_is_refused_before_it_ends(service: Service) -> None:
    """Also if nothing announces its size: what comes after the limit is not kept."""
    answered = await exchange(service.url, ENDLESS)
    assert answered.statuses == [413]


@pytest.mark.parametrize("size", [2_000_000, 40_000_000])
def test_a_client_that_sends_too_much_before_it_reads_gets_the_refusal(service: Service, size: int) -> None:
    """As most do, and can go on with another request. Closing the connection would take the refusal from them."""
    with closing(http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=LONGEST)) as connection:
        for body, status in ((b" " * size, 413), (QUERY, 200)):
            connection.request("POST", "/graphql", body, {"content-type": "application/json"})
            with connection.getresponse() as response:
                assert (response.status, bool(response.read())) == (status, True)


async def test_bodies_that_do_not_end_take_little_memory(default_engine: RunningEngine, one_table: Table) -> None:
    """Five hundred connections of one client held 500 MB for half a minute, of which a container may have no more.

    What is small is answered meanwhile, and everything that another client asks for.
    """
    unended, other_address = post(body=b" " * 2**20)[:-1], httpx.AsyncHTTPTransport(local_address="127.0.0.2")
    large = {"query": "{ __typename }" + " " * 500_000}
    async with serving_on_a_socket(settings_for(default_engine, one_table.name, body_timeout=LONGEST)) as served:
        async with AsyncExitStack() as stack:
            answers = []
            for _ in range(20):
                reader, writer = await stack.enter_async_context(connect(served.url))
                writer.write(unended)
                answers.append(asyncio.create_task(reader.readuntil(b"\r\n\r\n")))
            answered, _ = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
            refusal = answered.pop().result()
            assert refusal.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1" in refusal
            assert (await exchange(served.url, [post()])).statuses == [200]
            async with httpx.AsyncClient(transport=other_address, base_url=served.url, timeout=60) as http:
                assert (await http.post("/graphql", json=large)).status_code == 200
            for answer in answers:
                answer.cancel()
        async with httpx.AsyncClient(base_url=served.url, timeout=60) as http:

            async def is_answered() -> bool:
                return (await http.post("/graphql", json=large)).status_code == 200

            await until(is_answered, "what the others left has been dropped")


async def test_trailers_do_not_become_headers(service: Service) -> None:
    """A proxy has checked the headers, and not these."""
    sent = CHUNKED + b"1a\r\n" + QUERY + b"\r\n0\r\nAuthorization: Bearer forged\r\n\r\n"
    assert (await exchange(service.url, [sent])).statuses == [200]


STOPPED = {
    "nothing": (b"", []),
    "line breaks": (b"\r\n" * 20, []),
    "half a header": (b"GET /livez HTTP/1.1\r\nho", [408]),
    "half a body": (post()[:-5], [408]),
    "too much": (b"".join(ENDLESS), [413]),
    "no chunk": (CHUNKED + b"1a\r\n", [408]),
    "no more": (LIVEZ, [200]),
    "a line break more": (LIVEZ + b"\r\n", [200]),
    "half of another": (LIVEZ + b"GET /li", [200, 408]),
}


async def test_a_client_that_stops_is_not_waited_for(impatient: Served) -> None:
    """It is told so, if it has begun a request, and the connection is closed."""
    answers = await asyncio.gather(*(exchange(impatient.url, [sent], answers=None) for sent, _ in STOPPED.values()))
    answered = {name: answer.statuses for name, answer in zip(STOPPED, answers, strict=True)}
    assert answered == {name: statuses for name, (_, statuses) in STOPPED.items()}
    await until(lambda: not impatient.server.server_state.connections, "all connections are closed")
    assert not impatient.config.waiting


async def test_a_client_that_never_stops_sending_is_cut_off(impatient: Served) -> None:
    """Its body is refused once it is too large, and then dropped for no longer than a body may take."""
    async with asyncio.timeout(LONGEST):
        answered = await exchange(impatient.url, chain([CHUNKED], repeat(ENDLESS[1])), answers=None)
    assert (answered.statuses, answered.closed) == ([413], True)


async def test_a_byte_now_and_then_does_not_keep_a_connection(impatient: Served) -> None:
    """The deadline is for all of the headers, and for all of the body."""
    for sent in (b"GET /livez HTTP/1.1\r\n" + b"x" * 1000, post()[:-15] + b" " * 10):
        start = sent.rindex(b"\r\n")
        pieces = [sent[: start + 2], *(sent[at : at + 1] for at in range(start + 2, len(sent)))]
        answered = await exchange(impatient.url, pieces, pause=0.05, answers=None)
        assert (answered.statuses, answered.closed) == ([408], True)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such option")
@pytest.mark.soak
async def test_a_client_that_accepts_nothing_is_disconnected(tmp_path: Path) -> None:
    """It asks for more than fits into buffers, and does not read: its answers end."""
    introspect = json.dumps({"query": get_introspection_query()}).encode()
    requests = 200
    with running_service({"RINGSIDE_DATA": str(tmp_path), "RINGSIDE_BODY_TIMEOUT": "0.5"}) as own:
        async with connect(own.url, limit=1000) as (reader, writer):
            writer.write(post(body=introspect) * requests)
            await asyncio.sleep(4)
            received = 0
            with suppress(ConnectionError):
                while received < requests and (piece := await reader.read(1_000_000)):
                    received += piece.count(b"HTTP/1.1 200 ")
            assert 0 < received < requests
        assert (await exchange(own.url, [post()])).statuses == [200]


async def test_a_message_that_does_not_end_ends_its_socket(impatient: Served) -> None:
    """A megabyte was kept for as long as the client answered pings."""
    async with connect(impatient.url) as (reader, writer):
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(message({"type": "connection_init"}) + frame(b"x", TEXT, first_bits=0))
        async with asyncio.timeout(LONGEST):
            await reader.read()


async def test_a_message_of_very_many_frames_ends_its_socket(default_engine: RunningEngine, one_table: Table) -> None:
    """Each byte that comes in a frame of its own takes fifty more in memory. The time for a message is not over yet."""
    patient = settings_for(default_engine, one_table.name, body_timeout=300)
    async with serving_on_a_socket(patient) as served, connect(served.url) as (reader, writer):
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(message({"type": "connection_init"}) + frame(b"x", TEXT, first_bits=0))
        writer.write(frame(b"x", CONTINUATION, first_bits=0) * 1_100)
        async with asyncio.timeout(LONGEST):
            with suppress(ConnectionError):
                await reader.read()


async def test_a_socket_is_not_opened_behind_a_request_that_is_not_answered(small: Served) -> None:
    """The connection stayed among those that wait, and the answer could have gone into the socket."""
    answered = await exchange(small.url, [LIVEZ + HANDSHAKE], answers=None)
    assert (101 in answered.statuses, answered.closed) == (False, True)
    await until(lambda: not small.server.server_state.connections, "the connection is closed")
    assert not small.config.waiting


async def test_zeros_before_a_content_length_are_no_fault(service: Service) -> None:
    """Python reads no number of more than 4,300 digits."""
    zeros = post().replace(b"content-length: ", b"content-length: " + b"0" * 4400)
    assert (await exchange(service.url, [zeros])).statuses == [200]


async def test_answers_that_nobody_reads_take_little_memory(default_engine: RunningEngine, one_table: Table) -> None:
    """The connections with the most to read are closed; others are answered."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as client:
        for _ in range(40):
            await post_comment(client.member("ada"), product="long", body="x" * 10_000)
    query = '{ comments(product: "long", first: 100) { nodes { %s } } }' % " ".join(f"b{n}: body" for n in range(38))
    async with serving_on_a_socket(settings) as served, AsyncExitStack() as stack:
        for _ in range(6):
            _, writer = await stack.enter_async_context(connect(served.url))
            writer.write(post(body=json.dumps({"query": query}).encode()))
        connections = served.server.server_state.connections

        def unread() -> int:
            return sum(one.transport.get_write_buffer_size() for one in connections)

        await until(lambda: len(connections) < 6 and unread(), "a connection was closed")
        assert (await exchange(served.url, [post()])).statuses == [200]
        assert unread() <= MOST_UNREAD


async def test_idle_connections_make_room_for_requests(small: Served) -> None:
    """At the limit the one that has waited longest is closed; clients that ask are answered."""
    async with AsyncExitStack() as stack:
        for _ in range(3):
            idle = [await stack.enter_async_context(connect(small.url)) for _ in range(30)]
            assert (await exchange(small.url, [post()])).statuses == [200]
        assert len(small.server.server_state.connections) <= 21
        assert await idle[0][0].read() == b""


async def test_closed_sockets_make_room_for_requests(default_engine: RunningEngine, one_table: Table) -> None:
    """Their clients do not answer the closing, for which they have ten seconds: nobody else was served meanwhile."""
    settings = settings_for(default_engine, one_table.name, max_connections=16)
    async with serving_on_a_socket(settings) as served:
        async with AsyncExitStack() as stack:
            for _ in range(16):
                reader, writer = await stack.enter_async_context(connect(served.url))
                writer.write(HANDSHAKE.replace(PROTOCOL.encode(), b"another"))
                await reader.readuntil(PROTOCOL.encode())  # which the reason for the closing names
            assert len(served.config.waiting) == len(served.server.server_state.connections) == 16
            assert (await exchange(served.url, [post()])).statuses == [200]
        await until(lambda: not served.config.waiting, "those that are gone are forgotten")


@pytest.mark.soak
async def test_eleven_hundred_idle_sockets_stop_nobody(tmp_path: Path) -> None:
    """They used up the descriptors of the process."""
    raise_file_limit()  # this process has as many sockets, and the usual limit is 1,024
    with running_service({"RINGSIDE_DATA": str(tmp_path), "RINGSIDE_MAX_CONNECTIONS": "200"}) as own:
        async with AsyncExitStack() as stack:
            await asyncio.gather(*(stack.enter_async_context(connect(own.url)) for _ in range(1100)))
            answers = await asyncio.gather(*(exchange(own.url, [post()]) for _ in range(20)))
            assert [answer.statuses for answer in answers] == [[200]] * 20


def test_connections_stay_below_the_limit_of_open_files() -> None:
    """The soft limit is raised to the hard one first."""
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 1000));"
        "from server.http.protocol import *; from server.settings import Settings; raise_file_limit();"
        "print(most_connections(Settings(secrets=('x' * 40,))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "872\n"


def test_many_clients_that_come_at_once_are_accepted_in_a_few_turns_of_the_event_loop() -> None:
    """With one socket libuv accepts one of them in a turn, and under load a turn takes tenths of a second."""
    clients = 64

    async def turns_until_accepted() -> int:
        loop, accepted, turns = asyncio.get_running_loop(), list[asyncio.BaseTransport](), 0

        class Accepted(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                accepted.append(transport)

        async with AsyncExitStack() as stack:
            listening = stack.enter_context(socket.socket())
            listening.bind(("127.0.0.1", 0))
            listening.listen(clients)
            for each in listeners(listening):
                server = await loop.create_server(Accepted, sock=stack.enter_context(each))
                stack.callback(server.close)
            for _ in range(clients):
                client = stack.enter_context(socket.socket())
                client.connect(listening.getsockname())
            while len(accepted) < clients:
                await asyncio.sleep(0)
                turns += 1
            for transport in accepted:
                transport.close()
        return turns

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(turns_until_accepted()) <= clients // LISTENERS + 4


async def test_a_full_service_refuses_clearly(small: Served) -> None:
    """If all connections have requests in progress, a new one gets 503 and is closed."""
    watch = b'{"query":"subscription { commentPosted(product: 1) { id } }"}'
    stream = post("accept: text/event-stream", body=watch)
    async with AsyncExitStack() as stack:
        for status in [b" 200 "] * 10 + [b" 503 "]:  # streams take up half of the 20 connections
            reader, writer = await stack.enter_async_context(connect(small.url))
            writer.write(stream)
            assert status in await reader.readline()
        small.config.most_connections = 10
        connections = small.server.server_state.connections
        await until(lambda: len(connections) == 10, "the refused one, which was idle, is closed")
        refused = await exchange(small.url, [], answers=None)
        assert (refused.statuses, refused.closed) == ([503], True)
        assert b"retry-after: 1" in refused.received
    await until(lambda: not connections, "all of them are closed")
    assert (await exchange(small.url, [post()])).statuses == [200]


UPGRADES = {
    "without a body": (head("POST", "/graphql", "connection: upgrade", "upgrade: websocket"), [415]),
    "with a body": (post("connection: upgrade", "upgrade: websocket"), [400]),
    "of HTTP/2": (head("GET", "/livez", "connection: upgrade", "upgrade: h2c"), [200]),
    "without a key": (head("GET", "/graphql", "connection: upgrade", "upgrade: websocket"), [400]),
    "with many headers": (head("GET", "/graphql", "connection: upgrade", "upgrade: websocket", *["a: b"] * 150), [400]),
}


async def test_a_wrong_request_to_upgrade_is_answered(small: Served) -> None:
    """And closed: such a connection used to stay, silent."""
    for name, (sent, statuses) in UPGRADES.items():
        answered = await exchange(small.url, [sent], answers=None)
        assert (name, answered.statuses, answered.closed) == (name, statuses, True)
    await until(lambda: not small.server.server_state.connections, "all connections are closed")


async def test_requests_in_advance_are_answered_in_order(service: Service) -> None:
    """Nine at once. After them a connection that sent more is closed, so that its client sends the rest again."""
    answered = await exchange(service.url, [post() + LIVEZ * MAX_PIPELINED], answers=9)
    assert (answered.statuses, answered.closed) == ([200] * 9, False)
    for sent in ([(post() + LIVEZ) * 50], [LIVEZ * 20_000], [post()] * 400):
        answered = await exchange(service.url, sent, answers=None)
        assert answered.closed
        assert set(answered.statuses) <= {200}
    answered = await exchange(service.url, [(post() + LIVEZ) * 5], answers=None)
    assert (answered.statuses, answered.closed) == ([200] * 9, True)
    assert answered.received.count(b"connection: close") == 1


async def test_a_client_that_goes_while_it_is_answered_is_no_error(tmp_path: Path) -> None:
    """Fifty connections pipeline and are reset: the log had a traceback for each, at the level that wakes people."""
    introspect = post(body=b'{"query":"{ __schema { types { name fields { name description } } } }"}')
    with running_service({"RINGSIDE_DATA": str(tmp_path), "RINGSIDE_LOG": "info,json"}) as own:
        for _ in range(4):
            async with AsyncExitStack() as stack:
                for _ in range(50):
                    _, writer = await stack.enter_async_context(connect(own.url))
                    writer.write(introspect * 9)
                await asyncio.sleep(0.1)

        async def is_answered() -> bool:
            return (await exchange(own.url, [post()])).statuses == [200]

        await until(is_answered, "what the connections have left is worked off, and others are answered")
        assert [line for line in own.lines if '"level":"error"' in line] == []


@given(stream=raw_http.streams())
@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
def test_no_bytes_bring_the_service_down(service: Service, stream: Sequence[bytes]) -> None:
    """Whatever comes, whole or in pieces: no status of 500 and above but 503, and the next request is answered."""
    answered = asyncio.run(exchange(service.url, stream, answers=0, quiet=0.02))
    assert [status for status in answered.statuses if status >= 500 and status != 503] == []


async def test_the_service_is_unharmed(service: Service) -> None:
    """After all of the above: no traceback in its log, no request without an answer, modest memory."""
    async with httpx.AsyncClient(base_url=service.url, timeout=60) as http:
        assert (await http.post("/graphql", json={"query": "{ __typename }"})).status_code == 200
    assert [line for line in service.lines if "Traceback" in line] == []
    assert raw_http.resident_bytes(service.process.pid) < 400_000_000
