"""WebSockets: the graphql-transport-ws protocol.

A socket goes through the same pipeline as a request: identification (header, cookie or `connection_init`), trusted
documents, limits, deadlines. In addition its origin must be the service's own or an allowed one, and the number of its
operations is bounded. It is closed with a reason: by the protocol's codes for errors of the client, with 1001 when the
service shuts down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson
import structlog
from graphql import OperationType
from starlette.exceptions import HTTPException
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from resolvers.context import Context
from resolvers.viewer import Viewer
from server.auth.errors import KeysUnavailable, Unauthenticated
from server.compiler import encode_json
from server.execution.answers import Answer
from server.execution.documents import InvalidOperation, Operation
from server.http.pipeline import Pipeline
from server.http.request import parse_request
from server.http.sse import until_closing

PROTOCOL = "graphql-transport-ws"
INIT_SECONDS = 10.0
MAX_OPERATIONS = 32
MAX_ID_LENGTH = 256

_log = structlog.get_logger("ringside.sockets")


class _ProtocolError(Exception):
    """The client broke the protocol: the socket is closed with this code and reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


async def serve_socket(websocket: WebSocket) -> None:
    """The WebSocket endpoint of /graphql. Its pipeline is in the state of the lifespan."""
    pipeline: Pipeline = websocket.scope["state"]["pipeline"]
    if not _is_allowed_origin(websocket, pipeline.settings.cors_origins):
        await websocket.close(4403, "Forbidden: pages of this origin may not connect")
    elif PROTOCOL not in websocket.scope.get("subprotocols", ()):
        await websocket.accept()
        await websocket.close(4406, f"Subprotocol not acceptable: use {PROTOCOL}")
    else:
        await websocket.accept(subprotocol=PROTOCOL)
        await _Connection(pipeline, websocket).serve()


def _is_allowed_origin(websocket: WebSocket, allowed: Collection[str]) -> bool:
    """Programs send no origin; a page's must be our own or allowed, because the socket carries the page's cookies."""
    origin = websocket.headers.get("origin")
    return origin is None or origin in allowed or urlsplit(origin).netloc == websocket.headers.get("host")


class _Connection:
    """One socket: its viewer once it is initialised, and its running operations."""

    def __init__(self, pipeline: Pipeline, websocket: WebSocket) -> None:
        self._pipeline = pipeline
        self._socket = websocket
        self._viewer: Viewer | None = None
        self._running: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        closing = asyncio.ensure_future(self._pipeline.closing.wait())
        reading = asyncio.ensure_future(self._read_messages())
        try:
            await asyncio.wait({closing, reading}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await self._close(1001, "Going away: the service closes; connect again")
            else:
                reading.result()
        except _ProtocolError as error:
            await self._close(error.code, error.reason)
        except WebSocketDisconnect:
            pass
        finally:
            tasks = [closing, reading, *self._running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _close(self, code: int, reason: str) -> None:
        if self._socket.application_state is not WebSocketState.DISCONNECTED:
            await self._socket.close(code, reason)

    async def _read_messages(self) -> None:
        try:
            async with asyncio.timeout(INIT_SECONDS):
                await self._initialise(await self._receive())
        except TimeoutError:
            raise _ProtocolError(4408, "Connection initialisation timeout") from None
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
                    raise _ProtocolError(4429, "Too many initialisation requests")
                case _:
                    raise _ProtocolError(4400, "Unknown message type")

    async def _receive(self) -> dict[str, Any]:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1000))
        text = message.get("text")
        if text is None:
            raise _ProtocolError(4400, "Messages are texts")
        if len(text) > self._pipeline.settings.max_body_bytes:
            raise _ProtocolError(4400, "The message is too large")
        try:
            parsed = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise _ProtocolError(4400, "The message is not JSON") from None
        if not isinstance(parsed, dict):
            raise _ProtocolError(4400, "A message is an object")
        return parsed

    async def _send(self, message: Mapping[str, Any]) -> None:
        await self._socket.send_text(encode_json(message).decode())

    async def _initialise(self, message: Mapping[str, Any]) -> None:
        if message.get("type") != "connection_init":
            raise _ProtocolError(4401, "Unauthorized: send connection_init first")
        payload = message.get("payload")
        if payload is not None and not isinstance(payload, dict):
            raise _ProtocolError(4400, "The payload of connection_init is an object")
        try:
            identified = await self._pipeline.identification.identify(
                self._socket.scope["headers"], secure=self._socket.url.scheme == "wss", params=payload
            )
        except Unauthenticated as error:
            raise _ProtocolError(4403, f"Forbidden: {error.detail}"[:120]) from None
        except KeysUnavailable:
            raise _ProtocolError(1013, "Try again later: tokens cannot be checked right now") from None
        self._viewer = identified.viewer
        await self._send({"type": "connection_ack"})

    async def _subscribe(self, message: Mapping[str, Any]) -> None:
        id_ = message.get("id")
        if not isinstance(id_, str) or not 0 < len(id_) <= MAX_ID_LENGTH:
            raise _ProtocolError(4400, f"The id of a subscribe message is a text of 1 to {MAX_ID_LENGTH} characters")
        if id_ in self._running:
            raise _ProtocolError(4409, f"Subscriber for {id_[:60]} already exists")
        if len(self._running) >= MAX_OPERATIONS:
            raise _ProtocolError(4429, f"Too many operations: at most {MAX_OPERATIONS} at once on a socket")
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
        introspection = self._pipeline.may_introspect(self._viewer)
        try:
            request = parse_request(payload)
            operation = self._pipeline.documents.operation(request, introspection=introspection)
        except HTTPException as error:
            await self._send({"id": id_, "type": "error", "payload": [{"message": error.detail}]})
            return
        except InvalidOperation as invalid:
            await self._send({"id": id_, "type": "error", "payload": Answer.not_executed(*invalid.errors).errors})
            return
        ctx = Context(
            self._pipeline.services,
            self._viewer,
            self._socket.client.host if self._socket.client else "",
            explain=request.wants_plan and self._pipeline.may_see_plans(self._viewer),
        )
        if operation.kind is not OperationType.SUBSCRIPTION:
            answer = await self._pipeline.execute(operation, request.variables, ctx, suggestions=introspection)
            await self._send_next(id_, answer)
        elif not await self._send_events(id_, operation, request.variables, ctx, suggestions=introspection):
            return
        await self._send({"id": id_, "type": "complete"})

    async def _send_events(
        self, id_: str, operation: Operation, variables: Mapping[str, Any], ctx: Context, *, suggestions: bool
    ) -> bool:
        """Whether it ended well: an answer that was not executed becomes the protocol's `error`, which ends it."""
        answers = await self._pipeline.subscribe(operation, variables, ctx, suggestions=suggestions)
        if isinstance(answers, Answer):
            await self._send({"id": id_, "type": "error", "payload": answers.errors})
            return False
        async for answer in until_closing(self._pipeline.closing, answers):
            if answer is not None and not answer.executed:
                await self._send({"id": id_, "type": "error", "payload": answer.errors})
                return False
            if answer is not None:
                await self._send_next(id_, answer)
        return True

    async def _send_next(self, id_: str, answer: Answer) -> None:
        await self._send({"id": id_, "type": "next", "payload": answer.body()})
