"""WebSockets: the graphql-transport-ws protocol.

A socket goes through the same pipeline as a request: identification (header, cookie or `connection_init`), trusted
documents, limits, deadlines. In addition its origin must be the service's own or an allowed one; the numbers of
sockets, of their operations and of subscriptions are bounded. It is closed with a reason: by the protocol's codes for
errors of the client, with 4403 when its token ends, with 1001 when the service stops. A graphql-ws client connects
again after 4403, with the token that it has by then; after 4401 it would not.

A service that stops reads no more messages. It answers the queries and mutations under way, and ends subscriptions
without `complete`, so that clients subscribe again elsewhere.
"""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import orjson
import structlog
from graphql import GraphQLError, OperationType
from starlette.exceptions import HTTPException
from starlette.websockets import WebSocket, WebSocketDisconnect

from datastore.refusals import Overloaded
from resolvers.requests.context import Context, Viewer, addressed_origin
from resolvers.values.network_addresses import network
from server.auth.identification import Credentials, parse_authorizations
from server.auth.verification import Faulty, Unauthenticated, Unverifiable
from server.compiler import encode_json
from server.execution.answers import Answer
from server.execution.documents import GraphQLRequest, Operation
from server.execution.limits import InvalidOperation, LimitExceeded, check_json
from server.http.endpoint import until_closing
from server.http.messages import client_address, error_response, overloaded, parse_request
from server.http.pipeline import Client, Pipeline
from server.telemetry import Outcome

PROTOCOL = "graphql-transport-ws"
INIT_SECONDS = 10.0
MOST_BEFORE_INIT = 100
"""Messages before a socket is initialised, the initialisation included; the others can only be pings and pongs."""
MAX_ID_LENGTH = 256
MAX_REASON = 123
"""Bytes of a reason for closing, by the protocol."""

_TYPES = ("connection_init", "subscribe", "complete", "ping", "pong")

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
    origin = websocket.headers.get("origin")
    own = addressed_origin(websocket.url.scheme, websocket.headers.get("host", ""))
    # Programs send none. A page's must be our own or allowed, because the socket carries the page's cookies.
    if origin is not None and not pipeline.services.policy.admits_page(origin, own):
        await websocket.close(4403, "Forbidden: pages of this origin may not connect")
    elif PROTOCOL not in websocket.scope.get("subprotocols", ()):
        await websocket.accept()
        await websocket.close(4406, f"Subprotocol not acceptable: use {PROTOCOL}")
    else:
        with ExitStack() as stack:
            try:
                stack.enter_context(pipeline.kept_open(pipeline.streams, client_address(websocket.scope)))
            except Overloaded:
                await websocket.send_denial_response(error_response(overloaded()))
                return
            await websocket.accept(subprotocol=PROTOCOL)
            await _Connection(pipeline, websocket, own).serve()


class _Connection:
    """One socket: its viewer once it is initialised, and its running operations."""

    def __init__(self, pipeline: Pipeline, websocket: WebSocket, own_origin: str) -> None:
        self._pipeline = pipeline
        self._socket = websocket
        self._own_origin = own_origin
        self._address = client_address(websocket.scope)
        self._client = Client(network(self._address))
        self._credentials: asyncio.Future[Credentials] = asyncio.get_running_loop().create_future()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._starting = asyncio.Lock()

    async def serve(self) -> None:
        closing = asyncio.ensure_future(self._pipeline.closing.wait())
        reading = asyncio.ensure_future(self._read_messages())
        lapsing = asyncio.ensure_future(self._lapse())
        try:
            done, _ = await asyncio.wait({closing, reading, lapsing}, return_when=asyncio.FIRST_COMPLETED)
            if closing in done:
                await self._finish(reading)
                await self._close(1001, "Going away: the service closes; connect again")
            for task in done:
                task.result()
        except _ProtocolError as error:
            await self._close(error.code, error.reason)
        except WebSocketDisconnect:
            pass
        finally:
            tasks = [closing, reading, lapsing, *self._running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _finish(self, reading: asyncio.Future[None]) -> None:
        """Read no more, and wait for what is under way, as long as a request may take: a client may never read."""
        reading.cancel()
        await asyncio.wait([reading, *self._running.values()], timeout=self._pipeline.settings.request_timeout)

    async def _lapse(self) -> None:
        credentials = await asyncio.shield(self._credentials)
        raise _ProtocolError(4403, f"Forbidden: {await credentials.lapse()}")

    async def _close(self, code: int, reason: str) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):  # the client was faster
            await self._socket.close(code, reason.encode()[:MAX_REASON].decode(errors="ignore"))

    async def _read_messages(self) -> None:
        try:
            async with asyncio.timeout(INIT_SECONDS):
                await self._initialise(await self._first())
        except TimeoutError:
            raise _ProtocolError(4408, "Connection initialisation timeout") from None
        while True:
            await self._handle(*await self._receive())

    async def _first(self) -> Mapping[str, Any]:
        """The first message that is no heartbeat, or the last of many heartbeats."""
        message: Mapping[str, Any] = {}
        for _ in range(MOST_BEFORE_INIT):
            message, _ = await self._receive()
            if not await self._is_heartbeat(message):
                break
        return message

    async def _handle(self, message: Mapping[str, Any], size: int) -> None:
        """Do what a message asks for. Nothing of it is held while the socket waits for the next one."""
        if await self._is_heartbeat(message):
            return
        match message["type"]:
            case "subscribe":
                await self._subscribe(message, size)
            case "complete":
                await self._stop(str(message.get("id")))
            case "connection_init":
                raise _ProtocolError(4429, "Too many initialisation requests")

    async def _is_heartbeat(self, message: Mapping[str, Any]) -> bool:
        """Whether it is a ping, which is answered, or a pong. Both may come before the initialisation too."""
        if message["type"] == "ping":
            await self._send({"type": "pong"})
        return message["type"] in ("ping", "pong")

    async def _receive(self) -> tuple[dict[str, Any], int]:
        """The next message, and how many bytes it had."""
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1000))
        # Thousands of pings may have come at once, and answering them would let nobody else go between.
        await self._pipeline.request_turns.take(self._client)
        text = message.get("text")
        if text is None:
            raise _ProtocolError(4400, "Messages must be text")
        if len(text) > self._pipeline.settings.max_body_bytes:
            raise _ProtocolError(4400, "The message is too large")
        json = text.encode()
        try:
            check_json(json)
            parsed = orjson.loads(json)
        except LimitExceeded:
            raise _ProtocolError(4400, "The message has too many values") from None
        except orjson.JSONDecodeError:
            raise _ProtocolError(4400, "The message is not JSON") from None
        if not isinstance(parsed, dict):
            raise _ProtocolError(4400, "A message must be an object")
        if parsed.get("type") not in _TYPES:
            raise _ProtocolError(4400, "Unknown message type")
        return parsed, len(json)

    async def _send(self, message: Mapping[str, Any]) -> None:
        try:
            await self._socket.send_text(encode_json(message).decode())
        except RuntimeError:  # Starlette's for a socket that is closed
            raise WebSocketDisconnect(1006) from None

    async def _initialise(self, message: Mapping[str, Any]) -> None:
        if message["type"] != "connection_init":
            raise _ProtocolError(4401, "Unauthorized: send connection_init first")
        payload = message.get("payload")
        if payload is not None and not isinstance(payload, dict):
            raise _ProtocolError(4400, "The payload of connection_init must be an object")
        identify = partial(
            self._pipeline.identification.identify,
            self._socket.scope["headers"],
            secure=self._socket.url.scheme == "wss",
            address=self._address,
            sets_cookies=False,
        )
        try:
            # As long as the socket is open nothing else is held of the payload, which may have a megabyte.
            identify = partial(identify, authorizations=parse_authorizations(payload or {}))
            identified = await identify()
        except Unauthenticated as error:
            raise _ProtocolError(4403, f"Forbidden: {error.detail}") from None
        except Unverifiable as error:
            raise _ProtocolError(1013, f"Try again later: {error.detail}") from None
        except Faulty as error:
            raise _ProtocolError(1011, f"Internal error: {error.detail}") from None
        self._credentials.set_result(Credentials(identified, identify))
        await self._send({"type": "connection_ack"})

    async def _subscribe(self, message: Mapping[str, Any], size: int) -> None:
        id_ = message.get("id")
        if not isinstance(id_, str) or not 0 < len(id_) <= MAX_ID_LENGTH:
            raise _ProtocolError(4400, f"The id of a subscribe message must be text of 1 to {MAX_ID_LENGTH} characters")
        if id_ in self._running:
            raise _ProtocolError(4409, f"Subscriber for {id_[:60]} already exists")
        if len(self._running) >= (most := self._pipeline.settings.operations_per_socket):
            raise _ProtocolError(4429, f"Too many operations: at most {most} at once per socket")
        task = asyncio.create_task(self._operation(id_, message.get("payload"), size))
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

    async def _operation(self, id_: str, payload: Any, size: int) -> None:
        async with self._starting:  # of a socket's operations one waits for its turn, and the others for that one
            await self._pipeline.request_turns.take(self._client)
        if self._pipeline.requests.is_full(self._address):
            await self._refuse(id_)
            return
        try:
            await self._answer(id_, payload, size, await self._credentials.result().viewer())
        except WebSocketDisconnect:
            raise
        except Overloaded:
            await self._refuse(id_)
        except HTTPException as error:
            error_payload = {"message": error.detail, "extensions": {"code": "BAD_REQUEST"}}
            await self._send({"id": id_, "type": "error", "payload": [error_payload]})
        except InvalidOperation as invalid:
            await self._send({"id": id_, "type": "error", "payload": Answer.not_executed(*invalid.errors).errors})
        except Exception as error:  # noqa: BLE001 - it is logged, and the client must not wait for ever
            self._pipeline.metrics.finished(None, Outcome.FAILED, 0.0)
            failed = Answer.not_executed(GraphQLError("The operation failed.", original_error=error))
            await self._send({"id": id_, "type": "error", "payload": failed.errors})

    async def _answer(self, id_: str, payload: Any, size: int, viewer: Viewer) -> None:
        introspection = self._pipeline.may_introspect(viewer)
        request = parse_request(payload, size)
        operation = await self._pipeline.operation(request, self._client, introspection=introspection)
        ctx = Context(
            self._pipeline.services,
            viewer,
            self._address,
            self._socket.headers.get("origin", ""),
            self._own_origin,
            explain=request.wants_plan and self._pipeline.may_see_plans(viewer),
        )
        if operation.kind is not OperationType.SUBSCRIPTION:
            with self._pipeline.in_flight(ctx.address):  # others may have begun while the document was checked
                answer = await self._pipeline.execute(operation, request, ctx, suggestions=introspection)
            await self._send_next(id_, answer)
        elif not await self._send_events(id_, operation, request, ctx, suggestions=introspection):
            return
        await self._send({"id": id_, "type": "complete"})

    async def _refuse(self, id_: str) -> None:
        """As over HTTP, which answers 503 when the process has as much to do as it can."""
        self._pipeline.metrics.finished(None, Outcome.OVERLOADED, 0.0)
        extensions = {"code": Overloaded.code, "retryAfterSeconds": 1.0}
        error = {"message": Overloaded.explanation, "extensions": extensions}
        await self._send({"id": id_, "type": "error", "payload": [error]})

    async def _send_events(
        self, id_: str, operation: Operation, request: GraphQLRequest, ctx: Context, *, suggestions: bool
    ) -> bool:
        """Send an answer; return whether the operation is complete.

        An answer that was not executed becomes the protocol's `error`, which ends it. A service that stops ends it too.
        """
        answers = await self._pipeline.subscribe(operation, request, ctx, suggestions=suggestions)
        if isinstance(answers, Answer):
            await self._send({"id": id_, "type": "error", "payload": answers.errors})
            return False
        async for answer in until_closing(self._pipeline.closing, answers):
            if answer is not None and not answer.executed:
                await self._send({"id": id_, "type": "error", "payload": answer.errors})
                return False
            if answer is not None:
                await self._send_next(id_, answer)
        return not self._pipeline.closing.is_set()

    async def _send_next(self, id_: str, answer: Answer) -> None:
        payload = answer.body()
        if answer.event_id:  # a stream of Server-Sent Events has a field for it
            payload["extensions"] = {**answer.extensions, "eventId": answer.event_id}
        await self._send({"id": id_, "type": "next", "payload": payload})
