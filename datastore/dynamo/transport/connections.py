"""Connections to one engine, kept open and used again, and the order in which calls are sent on them.

**Connections** speak HTTP/1.1, one request at a time on each. Why not aiohttp, which the SDK uses: of 308 µs that a
signed query of 20 items costs with it, 183 are its own; with uvloop's transport and httptools' parser, both here for
uvicorn anyway, the same query costs 125 µs.

- There are as many connections as requests under way, whose number the queue bounds.
- A connection is never used again after anything unexpected: a cancellation, a timeout, an unrequested byte.
- One that was idle for `idle_seconds` is dropped: the engine may be about to close it.
- Failures are OSErrors and TimeoutErrors. Nothing is repeated here.

**The order** of calls: clients take turns, and within a client its requests. In the same order large answers are made
(server/http/pipeline.py). However many calls a client has begun, it is guaranteed:

- At most `most` calls are under way, of one request at most `most_of_request`.
- Whenever a call ends, the next one is that of the client who has waited longest for its turn. So a client's first call
  waits for one call of each other client at most, besides one that is under way.
- Work that several requests wait for stands in the queue of each of them, and is sent at the first of their turns.
- Only so many calls wait as memory allows, of one client and of all: others get QueueFull. The service's own calls,
  which belong to no request, take turns like a client's, but are never refused.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import zlib
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from typing import NamedTuple, cast

import httptools

# ── call queue ──

QueueFull = asyncio.QueueFull


class Caller(NamedTuple):
    """For whom a call is made: a client, and one of its requests; for the service itself, no request."""

    client: Hashable
    request: Hashable | None


SERVICE = Caller("", None)


class Callers:
    """Those for whom a piece of work is done. Others may join while its calls wait for their turn."""

    __slots__ = ("all", "entries")

    def __init__(self, first: Caller) -> None:
        self.all = [first]
        self.entries: list[_Entry] = []
        """The work's calls that wait."""

    def add(self, caller: Caller) -> None:
        if caller not in self.all:
            self.all.append(caller)
            for entry in self.entries:
                entry.queue.stand_in(entry, caller)


class _Entry(asyncio.Future[Caller]):
    """A call that waits; its result is the caller whose turn it takes."""

    queue: CallQueue


class CallQueue:
    """Work that takes turns: calls to one engine, large answers, documents to be checked."""

    def __init__(
        self,
        most: int,
        *,
        most_of_request: int,
        most_waiting: int = sys.maxsize,
        most_waiting_of_client: int = sys.maxsize,
    ) -> None:
        self._most = most
        self._most_of_request = most_of_request
        self.most_waiting = most_waiting
        self._most_waiting_of_client = most_waiting_of_client
        self._under_way = 0
        self._of_request: Counter[Hashable] = Counter()
        """How many calls of each request are under way."""
        self._waiting: dict[Hashable, dict[Hashable, dict[_Entry, None]]] = {}
        """By client and request, those whose turn comes next first."""
        self._of_client: Counter[Hashable] = Counter()
        """How many calls of each client wait."""
        self._entries = 0

    async def take_turn(self, callers: Callers) -> Caller:
        """Wait for a turn of one of the callers, which `end_turn` ends."""
        for caller in callers.all:
            if self._under_way < self._most and self._has_room(caller.request):
                self._begin(caller)
                return caller
        entry = self._enter(callers.all)
        callers.entries.append(entry)
        try:
            return await entry
        except asyncio.CancelledError:
            if entry.done() and not entry.cancelled():  # its turn came at the moment when it was cancelled
                self.end_turn(entry.result())
            raise
        finally:
            callers.entries.remove(entry)
            self._entries -= 1
            for caller in callers.all:
                self._remove(entry, caller)

    def end_turn(self, caller: Caller) -> None:
        self._under_way -= 1
        if caller.request is not None:
            self._of_request[caller.request] -= 1
            if not self._of_request[caller.request]:
                del self._of_request[caller.request]
        while self._under_way < self._most and (waiting := self._next()) is not None:
            caller, entry = waiting
            self._begin(caller)
            entry.set_result(caller)
            self._remove(entry, caller)

    def stand_in(self, entry: _Entry, caller: Caller) -> None:
        """Let a call that waits be sent at a turn of this caller too."""
        if not entry.done():
            self._waiting.setdefault(caller.client, {}).setdefault(caller.request, {})[entry] = None
            self._of_client[caller.client] += 1

    def _begin(self, caller: Caller) -> None:
        self._under_way += 1
        if caller.request is not None:
            self._of_request[caller.request] += 1

    def _has_room(self, request: Hashable | None) -> bool:
        return request is None or self._of_request[request] < self._most_of_request

    def _enter(self, callers: Sequence[Caller]) -> _Entry:
        if not any(self._admits(caller) for caller in callers):
            raise QueueFull
        entry = _Entry()
        entry.queue = self
        self._entries += 1
        for caller in callers:
            self.stand_in(entry, caller)
        return entry

    def _admits(self, caller: Caller) -> bool:
        return caller.request is None or (
            self._entries < self.most_waiting and self._of_client[caller.client] < self._most_waiting_of_client
        )

    def _remove(self, entry: _Entry, caller: Caller) -> None:
        requests = self._waiting.get(caller.client, {})
        entries = requests.get(caller.request, {})
        if entry not in entries:
            return
        del entries[entry]
        self._of_client[caller.client] -= 1
        if not entries:
            del requests[caller.request]
        if not requests:
            del self._waiting[caller.client]
            del self._of_client[caller.client]

    def _next(self) -> tuple[Caller, _Entry] | None:
        """The call whose turn is next. Its client and its request go to the end of their rows."""
        for client, requests in self._waiting.items():
            for request, entries in requests.items():
                if not self._has_room(request):
                    continue
                entry = next((entry for entry in entries if not entry.done()), None)
                if entry is None:
                    continue
                requests[request] = requests.pop(request)
                self._waiting[client] = self._waiting.pop(client)
                return Caller(client, request), entry
        return None


# ── connections ──

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 10.0
_CHECKSUM = b"x-amz-crc32"


class Response(NamedTuple):
    """The response to one request."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Connections:
    """The connections to one origin; `tls` is None for plain HTTP."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.answer_seconds = ANSWER_SECONDS
        self.idle_seconds = 12.0
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
            async with asyncio.timeout(self.answer_seconds):
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
            if connection.open and self._now() - connection.idle_since < self.idle_seconds:
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
        while now - self._idle[0].idle_since >= self.idle_seconds:
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
