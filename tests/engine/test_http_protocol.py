"""Uvicorn's HTTP with our savings answers as uvicorn's own, byte for byte."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.execution.answers import Answer
from server.http.protocol import WHOLE, Lean
from server.http.request import negotiated
from server.http.response import answered

ID = b"0123456789abcdef"
BODY = "é" * 40_000


class App:
    """Answers with what it was sent, in one piece where that can be; counts how often it could."""

    def __init__(self) -> None:
        self.whole = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        message = await receive()
        if scope["path"] == "/slow":
            await asyncio.sleep(0.05)
        size = len(message.get("body", b""))
        reply = answered(Answer({"size": size, "text": BODY if size else ""}), negotiated(b"*/*"), None)
        whole = scope.get("extensions", {}).get(WHOLE)
        if whole is not None and reply.hand_over(whole, ID):
            self.whole += 1
        else:
            await reply.send(send, (b"x-request-id", ID))


@asynccontextmanager
async def serving(protocol: type[HttpToolsProtocol], **settings: object) -> AsyncIterator[tuple[App, int]]:
    app = App()
    config = uvicorn.Config(
        app,
        port=0,
        http=protocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        **settings,  # type: ignore[arg-type]
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server._serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield app, server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await running


async def heard(port: int, words: bytes) -> bytes:
    """Everything that comes back until the other side closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(words)
    found = await reader.read()
    writer.close()
    return re.sub(rb"date: [^\r]+", b"date: now", found)


def request(path: str = "/", body: bytes = b"", version: str = "1.1", method: str = "POST", *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "host: x", f"content-length: {len(body)}", *more, "", ""]
    return "\r\n".join(lines).encode() + body


LAST = request("/", b"", "1.1", "POST", "connection: close")
SAID = {
    "one that closes": LAST,
    "two on a connection": request(body=b"abc") + LAST,
    "pipelined behind a slow one": request("/slow", b"abc") + request("/slow") + request(body=b"abc") + LAST,
    "an old version": request(version="1.0"),
    "an old version that would go on": request("/", b"", "1.0", "POST", "connection: keep-alive"),
    "the head alone": request(method="HEAD") + LAST,
    "something else": b"HELLO\r\n\r\n",
    "a body that is waited for": request("/", b"abc", "1.1", "POST", "expect: 100-continue") + LAST,
}


@pytest.mark.parametrize("words", SAID.values(), ids=SAID.keys())
async def test_what_goes_over_the_wire_is_the_same(words: bytes) -> None:
    """Heads, bodies, order, and when the connection ends."""
    async with serving(HttpToolsProtocol) as (_, plain), serving(Lean) as (app, lean):
        assert await heard(lean, words) == await heard(plain, words)
        assert app.whole or words.startswith(b"HE")


async def test_a_connection_that_is_quiet_is_closed() -> None:
    """As after uvicorn's own time; one that asks again is not."""
    async with serving(Lean, timeout_keep_alive=0.2) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(6):
            writer.write(request())
            await reader.readuntil(b'""}}')
            await asyncio.sleep(0.08)
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()


async def test_who_leaves_before_the_answer_hurts_nobody() -> None:
    """The answer goes nowhere, and the next one is asked as before."""
    async with serving(Lean) as (_, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("/slow", b"abc"))
        await writer.drain()
        writer.close()
        await asyncio.sleep(0.1)
        assert b'"size":0' in await heard(port, LAST)


async def test_who_does_not_read_is_waited_for() -> None:
    """A slow reader gets everything, in order, and does not fill the memory meanwhile."""
    async with serving(Lean) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        for _ in range(100):
            writer.write(request(body=b"abc"))
        writer.write(LAST)
        await asyncio.sleep(0.2)
        assert (await reader.read()).count(b'"size":3') == 100
        writer.close()
