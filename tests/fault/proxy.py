"""A bad day between a client and a real engine.

    async with Proxy(engine.url, seed=7, share=0.2) as proxy:        a fifth of all requests meets some fault
        client(proxy.url)
        proxy.share = 0                                              the weather clears up
        proxy.expect(Fault.RESET_AFTER, "TransactWriteItems")        the next such request meets this fault
        async with proxy.gone(): ...                                 nobody is there to connect to
        proxy.requests["Query"], proxy.faults[Fault.SHORT]           what was asked, and what went wrong

With `hold`, transactions conflict as DynamoDB's do, which no engine here shows: one that is under way holds its items
for so many seconds, and whatever else wants to write them is refused meanwhile.
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

# They belong to one connection, or are made anew.
OWN_HEADERS: Final = {"host", "content-length", "connection", "transfer-encoding", "keep-alive", "accept-encoding"}
# Nobody's data are at stake.
SPARED: Final = {"CreateTable", "DeleteTable", "DescribeTable", "DescribeTimeToLive", "ListTables", "UpdateTimeToLive"}
RESET: Final = struct.pack("ii", 1, 0)


class Proxy:
    """Carries requests to an engine, and now and then does not, or not quite."""

    def __init__(
        self,
        engine: str,
        *,
        seed: int = 0,
        share: float = 0.0,
        kinds: Collection[Fault] = tuple(Fault),
        slowness: float = 0.2,
        hold: float | None = None,
        key: Sequence[str] = ("pk", "sk"),
        record: bool = False,
    ) -> None:
        self.share = share
        self.kinds = tuple(kinds)
        self.slowness = slowness
        self.hold = hold
        self.requests = Counter[str]()
        self.faults = Counter[Fault]()
        self.conflicts = 0
        self.recorded: list[tuple[str, Body]] = []
        self._record = record
        self._key = key
        self._engine = engine
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
        )
        self._random = Random(seed)
        self._expected = deque[tuple[Fault, str | None]]()
        self._in_flight = set[str]()
        self._web = web.Server(self._serve)
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind(("127.0.0.1", 0))
        self._door: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where a client finds the engine, as it believes."""
        return f"http://127.0.0.1:{self._place.getsockname()[1]}"

    def expect(self, fault: Fault, operation: str | None = None) -> None:
        """Let the next request, or the next of this operation, meet the fault. Several are met in their order."""
        self._expected.append((fault, operation))

    def forget(self) -> None:
        """Count from zero."""
        self.requests.clear()
        self.faults.clear()
        self.conflicts = 0
        self.recorded.clear()

    @asynccontextmanager
    async def gone(self) -> AsyncIterator[None]:
        """Cut all connections, and refuse new ones."""
        self._close()
        try:
            yield
        finally:
            await self._open()

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()
        await self._web.shutdown(timeout=0.1)
        await self._session.close()
        self._place.close()

    async def _open(self) -> None:
        """Let clients in. The port is the same each time: a socket that never listens keeps it."""
        host, port = self._place.getsockname()
        self._door = await asyncio.get_running_loop().create_server(self._web, host, port, reuse_address=True)

    def _close(self) -> None:
        """Leave nobody connected."""
        if self._door:
            self._door.close()
        for connection in self._web.connections:
            if connection.transport:
                connection.transport.abort()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.read()
        operation = request.headers.get("X-Amz-Target", "").rpartition(".")[2]
        body = orjson.loads(raw)
        self.requests[operation] += 1
        if self._record:
            self.recorded.append((operation, body))
        fault = self._fault_for(operation, body)
        if fault:
            self.faults[fault] += 1
        headers = {name: value for name, value in request.headers.items() if name.lower() not in OWN_HEADERS}
        try:
            answer = await self._answer(fault, operation, body, raw, headers)
        except aiohttp.ClientError:  # the engine itself is gone, and so are we
            answer = None
        if answer is None:
            return _reset(request)
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)

    def _fault_for(self, operation: str, body: Body) -> Fault | None:
        for place, (fault, wanted) in enumerate(self._expected):
            if wanted in (None, operation) and faults.fits(fault, operation, body):
                del self._expected[place]
                return fault
        if operation in SPARED or self._random.random() >= self.share:
            return None
        fitting = [kind for kind in self.kinds if faults.fits(kind, operation, body)]
        return self._random.choice(fitting) if fitting else None

    async def _answer(
        self, fault: Fault | None, operation: str, body: Body, raw: bytes, headers: dict[str, str]
    ) -> Answer | None:
        """Return what the client gets to see; nothing is a reset."""
        if fault and (instead := faults.INSTEAD.get(fault)):
            return instead(operation, body, self._random)
        if fault is Fault.RESET_BEFORE:
            return None
        if fault is Fault.SHORT:
            done, left = faults.shortened(operation, body, self._random)
            return faults.with_the_rest(operation, await self._ask(orjson.dumps(done), headers), left)
        if fault is Fault.SLOW:
            await asyncio.sleep(self._random.uniform(0, self.slowness))
        answer = await self._ask_in_turn(operation, body, raw, headers)
        if fault is Fault.RESET_AFTER:
            return None
        return faults.failed() if fault is Fault.FAILED_AFTER else answer

    async def _ask_in_turn(self, operation: str, body: Body, raw: bytes, headers: dict[str, str]) -> Answer:
        """Ask the engine, unless a transaction under way holds an item that is wanted."""
        if self.hold is None:
            return await self._ask(raw, headers)
        wanted = faults.items(operation, body, self._key)
        taken = [item in self._in_flight for item in wanted]
        if any(taken):
            self.conflicts += 1
            return faults.in_the_way(operation, taken)
        if operation != "TransactWriteItems":
            return await self._ask(raw, headers)
        self._in_flight.update(wanted)
        try:
            answer, _ = await asyncio.gather(self._ask(raw, headers), asyncio.sleep(self.hold))
        finally:
            self._in_flight.difference_update(wanted)
        return answer

    async def _ask(self, raw: bytes, headers: dict[str, str]) -> Answer:
        async with self._session.post(self._engine, data=raw, headers=headers) as response:
            kept = {name: value for name, value in response.headers.items() if name.lower() not in OWN_HEADERS}
            return Answer(response.status, await response.read(), kept)


def _reset(request: web.BaseRequest) -> web.Response:
    """End the connection with RST rather than FIN, as a crash would."""
    if transport := request.transport:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        transport.abort()
    return web.Response()
