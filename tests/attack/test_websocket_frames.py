"""Hostile and broken WebSockets: the service closes them with a reason, and goes on."""

import asyncio
import json
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, example, given, settings
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from server.http.protocol import PIECE, ServerConfig, SocketProtocol
from server.settings import Settings
from tests.attack import raw_http
from tests.attack.raw_http import Exchange, connect, exchange, post
from tests.attack.websocket_frames import CONTINUATION, HANDSHAKE, PING, TEXT, conversations, frame, message
from tests.examples import examples
from tests.service import Service
from tests.waiting import turns
from tests.websockets import open_socket, receive

INIT = message({"type": "connection_init"})


async def converse(url: str, pieces: Sequence[bytes], quiet: float) -> Exchange:
    """Opens a socket, then sends the pieces: what a client sends with its handshake is lost."""
    async with connect(url) as (reader, writer):
        writer.write(HANDSHAKE)
        received = await reader.readuntil(b"\r\n\r\n")
        assert received.startswith(b"HTTP/1.1 101 ")
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0)
        try:
            while True:
                async with asyncio.timeout(quiet):
                    piece = await reader.read(65_536)
                if not piece:
                    return Exchange(received, closed=True)
                received += piece
        except TimeoutError:
            return Exchange(received, closed=False)
        except ConnectionError:
            return Exchange(received, closed=True)


@given(pieces=conversations())
@example(pieces=[INIT, frame(b"\xb0")])
@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
def test_no_frames_bring_the_service_down(service: Service, pieces: Sequence[bytes]) -> None:
    """Whatever comes, the log has no errors and the next request is answered."""
    lines = len(service.lines)
    asyncio.run(converse(service.url, pieces, quiet=0.02))
    failed = [line for line in service.lines[lines:] if "Traceback" in line or '"level":"error"' in line]
    assert not failed, failed[0][:2000]


async def test_floods_of_frames_cost_little_memory(service: Service) -> None:
    """Pings that are not read, endless fragments, a message larger than the limit, announced or not."""
    before = raw_http.resident_bytes(service.process.pid)
    floods = [
        [INIT, *[frame(b"x" * 125, PING) * 100] * 300],
        [INIT, frame(b"", TEXT, first_bits=0), *[frame(b"", CONTINUATION, first_bits=0) * 500] * 100],
        [INIT, frame(b"", TEXT, first_bits=0), *[frame(b"x" * 60_000, CONTINUATION, first_bits=0)] * 60],
        [INIT, frame(b"x", more=2**62), *[b"x" * 60_000] * 60],
        [INIT, *[message({"type": "ping"}) * 100] * 100],
    ]
    await asyncio.gather(*(converse(service.url, flood, quiet=1.0) for flood in floods))
    assert raw_http.resident_bytes(service.process.pid) - before < 60_000_000
    assert (await exchange(service.url, [post()])).statuses == [200]


async def test_open_sockets_hold_nothing_of_what_they_have_sent(service: Service) -> None:
    """A megabyte in which one character is an emoji takes four in memory, for each socket as long as it is open."""
    large = "\U0001f600" + "a" * 1_000_000
    before = raw_http.resident_bytes(service.process.pid)
    async with AsyncExitStack() as stack:
        for _ in range(40):
            opened = await stack.enter_async_context(open_socket(service))
            await opened.send(json.dumps({"type": "connection_init", "payload": {"x": large}}, ensure_ascii=False))
            assert (await receive(opened))["type"] == "connection_ack"
            await opened.send(json.dumps({"type": "pong", "payload": {"x": large}}, ensure_ascii=False))
            payload = {"query": 'subscription { commentPosted(product: "p") { id } }', "variables": {"x": large}}
            await opened.send(json.dumps({"id": "1", "type": "subscribe", "payload": payload}, ensure_ascii=False))
            refused = await receive(opened)
            assert refused["payload"][0]["extensions"] == {"code": "BAD_USER_INPUT"}
        assert raw_http.resident_bytes(service.process.pid) - before < 100_000_000


async def test_a_client_that_sends_pings_and_reads_no_pongs_is_disconnected(service: Service) -> None:
    """What it does not read is kept for it: as much memory as it cares to send, until the keepalive gives up."""
    address, pings = urlsplit(service.url), frame(b"x" * 125, PING) * 300_000
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        await loop.sock_connect(client, (address.hostname, address.port))
        await loop.sock_sendall(client, HANDSHAKE)
        assert (await loop.sock_recv(client, 1000)).startswith(b"HTTP/1.1 101 ")
        with pytest.raises(ConnectionError):
            await loop.sock_sendall(client, pings)  # 39 MB


class _Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        pass


async def test_answers_do_not_make_a_socket_take_more_frames_apart() -> None:
    """Each answer that is sent looks whether something waits to be taken apart: it is one piece in an iteration."""

    async def accept(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await asyncio.Event().wait()

    config = ServerConfig(accept, Settings())
    config.load()
    protocol, transport = SocketProtocol(config, ServerState(), {}), _Transport()
    protocol.connection_made(transport)
    protocol.data_received(HANDSHAKE)
    await turns()
    pings = frame(b"", PING) * 10_000
    protocol.data_received(pings)
    for _ in range(20):
        await protocol.send({"type": "websocket.send", "text": "an answer"})
    transport.written.clear()
    await asyncio.sleep(0)
    pongs = len(b"".join(transport.written)) // 2
    assert 0 < pongs <= 1 + PIECE // 6
