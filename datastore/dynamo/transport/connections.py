"""Connections to one engine, kept open and used again: HTTP/1.1, one request at a time on each.

Why not aiohttp, which the SDK uses: of 308 µs that a signed query of 20 items costs with it, 183 are its own; with
uvloop's transport and httptools' parser, both here for uvicorn anyway, the same query costs 125 µs.

- At most `most` connections; who comes later waits in line, as long as the deadline of the request allows.
- A connection on which anything went wrong is never used again: cancelled, timed out, cut, said something unasked.
- One that was idle for `IDLE_SECONDS` is not trusted: the other side may be about to close it.
- What goes wrong is an OSError or a TimeoutError, which `errors.named` calls EngineUnavailable.
  Nothing is repeated here.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple, cast

import httptools

from datastore.dynamo.transport.timeouts import timeout_at

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 10.0
IDLE_SECONDS = 12.0
_CHECKSUM = b"x-amz-crc32"


class Answered(NamedTuple):
    """What came back for one request."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass(frozen=True, slots=True)
class Origin:
    """Where to connect to; `tls` is None for plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


class Connections:
    """The connections to one origin."""

    def __init__(self, origin: Origin, most: int) -> None:
        self._origin = origin
        self._room = asyncio.Semaphore(most)
        self._idle: deque[_Connection] = deque()
        self._now = asyncio.get_running_loop().time

    async def ask(self, request: bytes) -> Answered:
        """The answer to a request: its head and its body, as they are sent."""
        async with self._room:
            connection = self._kept() or await self._opened()
            try:
                answered = await connection.ask(request)
            except BaseException:
                connection.drop()
                raise
            self._keep(connection)
        _refuse_damage(answered)
        return answered

    def close(self) -> None:
        while self._idle:
            self._idle.pop().drop()

    def _kept(self) -> _Connection | None:
        """The one used last, so that those that are not needed grow old and leave."""
        while self._idle:
            connection = self._idle.pop()
            if connection.open and self._now() - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.drop()
        return None

    async def _opened(self) -> _Connection:
        origin = self._origin
        async with asyncio.timeout(CONNECT_SECONDS):
            _, connection = await asyncio.get_running_loop().create_connection(
                _Connection,
                origin.host,
                origin.port,
                ssl=origin.tls,
                server_hostname=origin.host if origin.tls else None,
            )
        return connection

    def _keep(self, connection: _Connection) -> None:
        if not connection.open:
            connection.drop()
            return
        now = connection.idle_since = self._now()
        self._idle.append(connection)
        while now - self._idle[0].idle_since >= IDLE_SECONDS:
            self._idle.popleft().drop()


def _refuse_damage(answered: Answered) -> None:
    """DynamoDB sends a checksum of the body with every answer, and the SDK looks at it too."""
    for name, value in answered.headers:
        if name.lower() == _CHECKSUM and value.isdigit() and zlib.crc32(answered.body) != int(value):
            message = "the answer was damaged on its way: its checksum differs"
            raise ConnectionError(message)


class _Connection(asyncio.Protocol):
    """One connection. `open` says that another request may be sent on it."""

    def __init__(self) -> None:
        self.open = False
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._awaited: asyncio.Future[Answered] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []

    async def ask(self, request: bytes) -> Answered:
        transport = self._transport
        if transport is None or not self.open:
            message = "the engine closed the connection"
            raise ConnectionError(message)
        loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._body = [], []
        self._awaited = loop.create_future()
        try:
            with timeout_at(loop.time() + ANSWER_SECONDS):
                transport.write(request)
                return await self._awaited
        finally:
            self._awaited = None

    def drop(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: Exception) -> None:
        self.open = False
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_exception(error)

    # ── what the transport says ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are not of asyncio's class
        self.open = True

    def data_received(self, data: bytes) -> None:
        if self._awaited is None or self._awaited.done():
            self.drop()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"the engine does not speak HTTP ({error})"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionError(f"the connection was lost ({exc or 'closed by the engine'})"))

    # ── what the parser says ──

    def on_message_begin(self) -> None:
        if self._awaited is None or self._awaited.done():
            self.open = False  # more than was asked for: it would be taken for the answer to the next request

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_body(self, part: bytes) -> None:
        self._body.append(part)

    def on_message_complete(self) -> None:
        parser = self._parser
        self.open = self.open and parser.should_keep_alive()
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(Answered(parser.get_status_code(), self._headers, body))
