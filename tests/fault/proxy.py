"""A proxy that injects faults between a client and a real engine.

    async with Proxy(engine.url, seed=7, fault_rate=0.2) as proxy:   a fifth of all requests meets some fault
        client(proxy.url)
        proxy.fault_rate = 0                                         no more faults
        proxy.inject(Fault.RESET_AFTER, "TransactWriteItems")        the next request of this operation meets this fault
        async with proxy.disconnected(): ...                         all connections are refused
        async with proxy.silent(): ...                               requests are accepted, and answered after the block
        proxy.requests["Query"], proxy.faults[Fault.SHORT]           how many requests, and how many faults

With `conflict_seconds`, transactions conflict as DynamoDB's do, which none of the engines here emulates: a transaction
locks its items for so many seconds, and other writes of these items are refused meanwhile.
"""

import asyncio
import socket
import struct
from collections import Counter, deque
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Final, Self

import aiohttp
import orjson
from aiohttp import web

from tests.fault import faults
from tests.fault.faults import Answer, Body, Fault

# Headers of one connection, or that are computed anew.
OWN_HEADERS: Final = {"host", "content-length", "connection", "transfer-encoding", "keep-alive", "accept-encoding"}
# Operations on no data.
EXEMPT: Final = {"CreateTable", "DeleteTable", "DescribeTable", "DescribeTimeToLive", "ListTables", "UpdateTimeToLive"}
RESET: Final = struct.pack("ii", 1, 0)


class Proxy:
    """Forwards requests to an engine, some of them with a fault."""

    def __init__(
        self,
        engine: str,
        *,
        seed: int = 0,
        fault_rate: float = 0.0,
        kinds: Collection[Fault] = tuple(Fault),
        max_delay: float = 0.2,
        conflict_seconds: float | None = None,
        key: Sequence[str] = ("pk", "sk"),
        record: bool = False,
        address: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self.fault_rate = fault_rate
        self.kinds = tuple(kinds)
        self.max_delay = max_delay
        self.conflict_seconds = conflict_seconds
        self.requests = Counter[str]()
        self.faults = Counter[Fault]()
        self.conflicts = 0
        self.recorded: list[tuple[str, Body]] = []
        self.error: str | None = None
        """With this the engine refuses each call: of these operations, if there are any, and of all otherwise."""
        self.refusing: Collection[str] = ()
        self._record = record
        self._key = key
        self._engine = engine
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
        )
        self._random = Random(seed)
        self._injected = deque[tuple[Fault, str | None]]()
        self._locked = set[str]()
        self._web = web.Server(self._serve)
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(address)
        self._server: asyncio.Server | None = None
        self._answering = asyncio.Event()
        self._answering.set()

    @property
    def url(self) -> str:
        """The address for clients."""
        return "http://{}:{}".format(*self._reserved.getsockname())

    def inject(self, fault: Fault, operation: str | None = None) -> None:
        """Let the next request, or the next one of this operation, meet the fault. Several are used in their order."""
        self._injected.append((fault, operation))

    def clear_injected(self) -> None:
        """Cancel the injected faults that no request has met yet."""
        self._injected.clear()

    def reset_counts(self) -> None:
        self.requests.clear()
        self.faults.clear()
        self.conflicts = 0
        self.recorded.clear()

    @asynccontextmanager
    async def disconnected(self) -> AsyncIterator[None]:
        """Cut all connections, and refuse new ones."""
        self._close()
        try:
            yield
        finally:
            await self._open()

    @asynccontextmanager
    async def silent(self) -> AsyncIterator[None]:
        """Accept connections and requests, and answer none."""
        self._answering.clear()
        try:
            yield
        finally:
            self._answering.set()

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()
        await self._web.shutdown(timeout=0.1)
        await self._session.close()
        self._reserved.close()

    async def _open(self) -> None:
        """Accept connections. The port is always the same: a socket that never listens reserves it."""
        host, port = self._reserved.getsockname()
        self._server = await asyncio.get_running_loop().create_server(self._web, host, port, reuse_address=True)

    def _close(self) -> None:
        """Cut all connections."""
        if self._server:
            self._server.close()
        for connection in self._web.connections:
            if connection.transport:
                connection.transport.abort()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.read()
        operation = request.headers.get("X-Amz-Target", "").rpartition(".")[2]
        body = orjson.loads(raw)
        self.requests[operation] += 1
        await self._answering.wait()
        if self._record:
            self.recorded.append((operation, body))
        if self.error is not None and (not self.refusing or operation in self.refusing):
            return _response(faults.refused(self.error, "This engine refuses the call."))
        fault = self._fault_for(operation, body)
        if fault:
            self.faults[fault] += 1
        headers = {name: value for name, value in request.headers.items() if name.lower() not in OWN_HEADERS}
        try:
            answered = await self._answer(fault, operation, body, raw, headers)
        except aiohttp.ClientError:  # the engine itself does not answer
            answered = None
        return _reset(request) if answered is None else _response(answered)

    def _fault_for(self, operation: str, body: Body) -> Fault | None:
        for index, (fault, wanted) in enumerate(self._injected):
            if wanted in (None, operation) and faults.fits(fault, operation, body):
                del self._injected[index]
                return fault
        if operation in EXEMPT or self._random.random() >= self.fault_rate:
            return None
        possible = [kind for kind in self.kinds if faults.fits(kind, operation, body)]
        return self._random.choice(possible) if possible else None

    async def _answer(
        self, fault: Fault | None, operation: str, body: Body, raw: bytes, headers: dict[str, str]
    ) -> Answer | None:
        """Return the answer for the client, or None to reset the connection."""
        if fault and (answer_instead := faults.INSTEAD.get(fault)):
            return answer_instead(operation, body, self._random)
        if fault is Fault.RESET_BEFORE:
            return None
        if fault is Fault.SHORT:
            done, rest = faults.split_request(operation, body, self._random)
            return faults.with_unprocessed(operation, await self._forward(orjson.dumps(done), headers), rest)
        if fault is Fault.SLOW:
            await asyncio.sleep(self._random.uniform(0, self.max_delay))
        answer = await self._forward_unless_locked(operation, body, raw, headers)
        if fault is Fault.RESET_AFTER:
            return None
        return faults.failed() if fault is Fault.FAILED_AFTER else answer

    async def _forward_unless_locked(self, operation: str, body: Body, raw: bytes, headers: dict[str, str]) -> Answer:
        """Forward a request unless a transaction in flight has locked one of its items."""
        if self.conflict_seconds is None:
            return await self._forward(raw, headers)
        items = faults.items(operation, body, self._key)
        locked = [item in self._locked for item in items]
        if any(locked):
            self.conflicts += 1
            return faults.conflict(operation, locked)
        if operation != "TransactWriteItems":
            return await self._forward(raw, headers)
        self._locked.update(items)
        try:
            answer, _ = await asyncio.gather(self._forward(raw, headers), asyncio.sleep(self.conflict_seconds))
        finally:
            self._locked.difference_update(items)
        return answer

    async def _forward(self, raw: bytes, headers: dict[str, str]) -> Answer:
        async with self._session.post(self._engine, data=raw, headers=headers) as response:
            passed_on = {name: value for name, value in response.headers.items() if name.lower() not in OWN_HEADERS}
            return Answer(response.status, await response.read(), passed_on)


def _response(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, body=answer.body, headers=answer.headers)


def _reset(request: web.BaseRequest) -> web.Response:
    """Close the connection with RST instead of FIN, as after a crash."""
    if transport := request.transport:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        transport.abort()
    return web.Response()
