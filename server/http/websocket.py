"""WebSockets: the graphql-transport-ws protocol.

A socket passes the same gate as a request: who is asking (header, cookie or `connection_init`), trusted documents,
limits, deadlines. Besides, its origin must be ours or an allowed one, its operations are bounded in number, and it is
closed with a reason: by the protocol's codes for a client's faults, with 1001 when the service closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson
import structlog
from graphql import OperationType
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from resolvers.context import Context
from resolvers.viewer import Viewer
from server.auth.tokens import KeysUnavailable, Unauthenticated
from server.compiler import encode_json
from server.execution.answers import Answer, refused
from server.execution.documents import Faulty
from server.http.pipeline import Pipeline
from server.http.request import BadRequest, GraphQLRequest
from server.http.sse import until

PROTOCOL = "graphql-transport-ws"
INIT_SECONDS = 10.0
MOST_OPERATIONS = 32
LONGEST_ID = 256

_log = structlog.get_logger("ringside.sockets")


class _Closed(Exception):
    """The client broke the protocol: the socket is closed with this code and reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Sockets:
    """The WebSocket endpoint of /graphql."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._gate = pipeline

    async def endpoint(self, websocket: WebSocket) -> None:
        if not self._welcome(websocket):
            await websocket.close(4403, "Forbidden: pages of this origin may not connect")
            return
        if PROTOCOL not in websocket.scope.get("subprotocols", ()):
            await websocket.accept()
            await websocket.close(4406, f"Subprotocol not acceptable: use {PROTOCOL}")
            return
        await websocket.accept(subprotocol=PROTOCOL)
        await _Connection(self._gate, websocket).serve()

    def _welcome(self, websocket: WebSocket) -> bool:
        """Programs send no origin; a page's must be our own or allowed, since cookies travel with its socket."""
        origin = websocket.headers.get("origin")
        if origin is None or origin in self._gate.settings.cors_origins:
            return True
        return urlsplit(origin).netloc == websocket.headers.get("host")


class _Connection:
    """One socket: its viewer once it is initialised, and its running operations."""

    def __init__(self, pipeline: Pipeline, websocket: WebSocket) -> None:
        self._gate = pipeline
        self._socket = websocket
        self._viewer: Viewer | None = None
        self._running: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        closing = asyncio.ensure_future(self._gate.closing.wait())
        talking = asyncio.ensure_future(self._talk())
        try:
            await asyncio.wait({closing, talking}, return_when=asyncio.FIRST_COMPLETED)
            if not talking.done():
                await self._close(1001, "Going away: the service closes; connect again")
            else:
                talking.result()
        except _Closed as closed:
            await self._close(closed.code, closed.reason)
        except WebSocketDisconnect:
            pass
        finally:
            tasks = [closing, talking, *self._running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _close(self, code: int, reason: str) -> None:
        if self._socket.application_state is not WebSocketState.DISCONNECTED:
            await self._socket.close(code, reason)

    async def _talk(self) -> None:
        try:
            async with asyncio.timeout(INIT_SECONDS):
                await self._initialise(await self._receive())
        except TimeoutError:
            raise _Closed(4408, "Connection initialisation timeout") from None
        while True:
            message = await self._receive()
            match message.get("type"):
                case "subscribe":
                    await self._subscribe(message)
                case "complete":
                    await self._stop(str(message.get("id")))
                case "ping":
                    await self._send({"type": "pong"})
                case "pong":
                    pass
                case "connection_init":
                    raise _Closed(4429, "Too many initialisation requests")
                case _:
                    raise _Closed(4400, "Unknown message type")

    async def _receive(self) -> dict[str, Any]:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1000))
        text = message.get("text")
        if text is None:
            raise _Closed(4400, "Messages are texts")
        if len(text) > self._gate.settings.max_body_bytes:
            raise _Closed(4400, "The message is too large")
        try:
            parsed = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise _Closed(4400, "The message is not JSON") from None
        if not isinstance(parsed, dict):
            raise _Closed(4400, "A message is an object")
        return parsed

    async def _send(self, message: Mapping[str, Any]) -> None:
        await self._socket.send_text(encode_json(message).decode())

    async def _initialise(self, message: Mapping[str, Any]) -> None:
        if message.get("type") != "connection_init":
            raise _Closed(4401, "Unauthorized: send connection_init first")
        payload = message.get("payload")
        if payload is not None and not isinstance(payload, dict):
            raise _Closed(4400, "The payload of connection_init is an object")
        try:
            identified = await self._gate.identification.viewer(
                self._socket.scope["headers"], secure=self._socket.url.scheme == "wss", params=payload
            )
        except Unauthenticated as unknown:
            raise _Closed(4403, f"Forbidden: {unknown}"[:120]) from None
        except KeysUnavailable:
            raise _Closed(1013, "Try again later: tokens cannot be checked right now") from None
        self._viewer = identified.viewer
        await self._send({"type": "connection_ack"})

    async def _subscribe(self, message: Mapping[str, Any]) -> None:
        id_ = message.get("id")
        if not isinstance(id_, str) or not 0 < len(id_) <= LONGEST_ID:
            raise _Closed(4400, f"The id of a subscribe message is a text of 1 to {LONGEST_ID} characters")
        if id_ in self._running:
            raise _Closed(4409, f"Subscriber for {id_[:60]} already exists")
        if len(self._running) >= MOST_OPERATIONS:
            raise _Closed(4429, f"Too many operations: at most {MOST_OPERATIONS} at once on a socket")
        task = asyncio.create_task(self._operation(id_, message.get("payload")))
        self._running[id_] = task
        task.add_done_callback(lambda done: self._ended(id_, done))

    def _ended(self, id_: str, task: asyncio.Task[None]) -> None:
        if self._running.get(id_) is task:
            del self._running[id_]
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, WebSocketDisconnect):
            _log.error("an operation of a socket failed", exc_info=error)

    async def _stop(self, id_: str) -> None:
        task = self._running.pop(id_, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _operation(self, id_: str, payload: Any) -> None:
        assert self._viewer is not None  # noqa: S101 - _initialise came first
        try:
            asked = GraphQLRequest.of(payload)
            operation = self._gate.operation(asked, self._viewer)
        except BadRequest as bad:
            await self._send({"id": id_, "type": "error", "payload": [{"message": bad.message}]})
            return
        except Faulty as faulty:
            await self._send({"id": id_, "type": "error", "payload": refused(*faulty.errors).errors})
            return
        ctx = Context(
            self._gate.services,
            self._viewer,
            self._socket.client.host if self._socket.client else "",
            explain=asked.plan and self._gate.explains(self._viewer),
        )
        if operation.kind is not OperationType.SUBSCRIPTION:
            await self._next(id_, await self._gate.answer(operation, asked, ctx))
        else:
            found = await self._gate.events(operation, asked, ctx)
            if isinstance(found, Answer):
                await self._send({"id": id_, "type": "error", "payload": found.errors})
                return
            if not await self._events(id_, found):
                return
        await self._send({"id": id_, "type": "complete"})

    async def _events(self, id_: str, answers: AsyncIterator[Answer]) -> bool:
        """Whether they ended well: an answer that never started is the protocol's `error`, and the last word."""
        async for answer in until(self._gate.closing, answers):
            if answer is not None and not answer.started:
                await self._send({"id": id_, "type": "error", "payload": answer.errors})
                return False
            if answer is not None:
                await self._next(id_, answer)
        return True

    async def _next(self, id_: str, answer: Answer) -> None:
        await self._send({"id": id_, "type": "next", "payload": answer.body()})
