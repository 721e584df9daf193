"""Connections to one engine, kept open and used again: HTTP/1.1, one request at a time on each.

Why not aiohttp, which the SDK uses: of 308 µs that a signed query of 20 items costs with it, 183 are its own; with
uvloop's transport and httptools' parser, both here for uvicorn anyway, the same query costs 125 µs.

- As many connections as requests are under way, which those that send them bound.
- A connection is never used again after anything unexpected: a cancellation, a timeout, an unrequested byte.
- One that was idle for `IDLE_SECONDS` is dropped: the engine may be about to close it.
- Failures are OSErrors and TimeoutErrors. Nothing is repeated here.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections import deque
from typing import NamedTuple, cast

import httptools

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 10.0
IDLE_SECONDS = 12.0
_CHECKSUM = b"x-amz-crc32"


class Response(NamedTuple):
    """The response to one request."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Connections:
    """The connections to one origin; `tls` is None for plain HTTP."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._idle: deque[_Connection] = deque()
        self._closed = False
        self._now = asyncio.get_running_loop().time

    async def send(self, request: bytes) -> Response:
        """Send a request, head and body, and wait for its response."""
        connection = self._take_idle() or await self._connect()
        try:
            response = await connection.send(request)
        except BaseException:
            connection.drop()
            raise
        self._put_back(connection)
        _verify_checksum(response)
        return response

    def close(self) -> None:
        """Close the idle connections, and the others at the end of their request."""
        self._closed = True
        while self._idle:
            self._idle.pop().drop()

    def _take_idle(self) -> _Connection | None:
        """The one used last, so that surplus ones grow old and are dropped."""
        while self._idle:
            connection = self._idle.pop()
            if connection.open and self._now() - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.drop()
        return None

    async def _connect(self) -> _Connection:
        name = self._host if self._tls else None
        async with asyncio.timeout(CONNECT_SECONDS):
            _, connection = await asyncio.get_running_loop().create_connection(
                _Connection, self._host, self._port, ssl=self._tls, server_hostname=name
            )
        return connection

    def _put_back(self, connection: _Connection) -> None:
        if self._closed or not connection.open:
            connection.drop()
            return
        now = connection.idle_since = self._now()
        self._idle.append(connection)
        while now - self._idle[0].idle_since >= IDLE_SECONDS:
            self._idle.popleft().drop()


def _verify_checksum(response: Response) -> None:
    """DynamoDB sends a checksum with every body, which the SDK checks too."""
    for name, value in response.headers:
        if name.lower() == _CHECKSUM and value.isdigit() and zlib.crc32(response.body) != int(value):
            raise ConnectionError("the response was damaged on its way: its checksum differs")


class _Connection(asyncio.Protocol):
    """One connection. `open` says that another request may be sent on it."""

    def __init__(self) -> None:
        self.open = False
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Response] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []

    async def send(self, request: bytes) -> Response:
        transport = self._transport
        if transport is None or not self.open:
            raise ConnectionError("the engine closed the connection")
        loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._body = [], []
        self._waiter = loop.create_future()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                transport.write(request)
                return await self._waiter
        finally:
            self._waiter = None

    def drop(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: Exception) -> None:
        self.open = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    # ── called by the transport ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are not of asyncio's class
        self.open = True

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            self.drop()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"the engine does not speak HTTP ({error})"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionError(f"the connection was lost ({exc or 'closed by the engine'})"))

    # ── called by the parser ──

    def on_message_begin(self) -> None:
        if self._waiter is None or self._waiter.done():
            self.open = False  # it would be taken for the response to the next request

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_body(self, part: bytes) -> None:
        self._body.append(part)

    def on_message_complete(self) -> None:
        parser = self._parser
        self.open = self.open and parser.should_keep_alive()
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(Response(parser.get_status_code(), self._headers, body))
