"""The server's HTTP/1.1 protocol: uvicorn's, with bounds on what a client sends and on the time it takes.

Uvicorn bounds neither headers, nor the time for which a client may be silent, nor the number of connections: 127 MB of
headers took 415 MB of memory, and 1,100 idle sockets used up 1,024 descriptors. An ASGI application comes too late for
all three, since it is called when the headers are complete. So this is a subclass of uvicorn's protocol. It relies on
names that uvicorn does not promise to keep: pyproject.toml excludes the next version, and
`tests/attack/test_raw_http.py` checks the names.

What is counted per section of a message: the bytes of the request line and the headers; then those of the body's
framing, which are chunk sizes, chunk extensions and trailers. Trailers are dropped, because they could otherwise
replace headers that a proxy has checked.

At the limit of connections a new one takes the place of the one that has waited longest for its client. If none waits,
all have requests in progress, and the new one gets 503.
"""

import asyncio
import math
import resource
import socket
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import orjson
import uvicorn
from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from server.settings import Settings

if TYPE_CHECKING:  # `ringside serve --help` and a worker's parent need no GraphQL
    from server.http.pipeline import Pipeline

# ── limits ──

RESERVED_FILES = 128
"""Descriptors kept for everything but clients: the engine's connections, the listeners, the log, files of pages."""

LISTENERS = 6
"""How many sockets listen together: so many new connections are accepted in one iteration of the event loop."""


def most_connections(settings: Settings) -> int:
    """How many connections a process may have: fewer if the system allows it fewer open files."""
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(settings.max_connections, max(open_files - RESERVED_FILES, open_files // 2))


def raise_file_limit() -> None:
    """Raise the soft limit of open files, often 1,024, to the hard one. Child processes inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS refuses an unlimited number
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def limit_unaccepted_data(listening: socket.socket, seconds: float) -> None:
    """Let the system close connections whose clients read nothing of an answer for so long (on Linux).

    Accepted sockets inherit the option, so that it holds for WebSockets, streams and closing connections too.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


def listeners(listening: socket.socket) -> list[socket.socket]:
    """The listening socket and copies of it, which accept new connections together.

    libuv accepts one connection for each socket in a turn of the event loop. Under load, when a turn takes tenths of a
    second, one socket leaves new clients waiting until they give up. With many, refusing them takes the time that the
    answers need: docs/decisions/http-server.md has the figures.
    """
    return [listening, *(listening.dup() for _ in range(LISTENERS - 1))]


# ── protocol ──

IS_FIRST = "is_first"
"""In the ASGI state of a request: whether it is the first of its connection, so that none there has had an answer."""

MAX_HEADERS = 256
"""Headers of a request: even one of a single byte takes some hundred bytes of memory."""

MAX_PIPELINED = 8
"""Requests of a connection that may wait behind the one under way. Beyond that, the connection ends with the last."""

LINGER_SECONDS = 2.0
"""How long a refused client's further bytes are dropped, because closing at once may destroy the refusal."""

MIN_PIECE = 4096
CHUNK_FRAMING = 16
"""Bytes of a chunk's size and line ends that are not counted."""


MOST_UNREAD = 64 * 2**20
"""Bytes of answers that clients have not accepted. The requests are answered, so no other limit counts them."""


class ServerConfig(uvicorn.Config):
    """Uvicorn's configuration, with the limits of the settings."""

    def __init__(self, app: Any, settings: Settings, **options: Any) -> None:
        super().__init__(app, http=LimitedProtocol, ws=SocketProtocol, **options)
        self.settings = settings
        self.most_connections = most_connections(settings)
        self.waiting: dict[LimitedProtocol | SocketProtocol, None] = {}
        """The connections that may be closed to make room for others, the longest waiting first.

        Their clients have not sent a complete request, or not answered the closing of their socket.
        """
        self.unread: set[asyncio.Transport] = set()
        """The connections whose clients have yet to accept what was sent to them."""

    def bound_unread(self) -> None:
        """Abort connections, those with the most to read first, while more than `MOST_UNREAD` bytes are unread."""
        sizes = {transport: transport.get_write_buffer_size() for transport in self.unread}
        while sum(sizes.values()) > MOST_UNREAD:
            largest = max(sizes, key=sizes.__getitem__)
            del sizes[largest]
            self.unread.discard(largest)
            largest.abort()


class _Section(Enum):
    """The part of a message that comes next."""

    NONE = auto()
    """Nothing has been received since the last message."""
    HEAD = auto()
    BODY = auto()


_NONE, _HEAD, _BODY = _Section  # attributes of an Enum take longer


def _refusal(status: str, code: str, message: str, *headers: str) -> bytes:
    body = orjson.dumps({"errors": [{"message": message, "extensions": {"code": code}}]})
    lines = (
        f"HTTP/1.1 {status}",
        "content-type: application/json; charset=utf-8",
        f"content-length: {len(body)}",
        "connection: close",
        *headers,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


_BAD_REQUEST = _refusal("400 Bad Request", "BAD_REQUEST", "This is not a valid HTTP request.")
_UPGRADE = _refusal("400 Bad Request", "BAD_REQUEST", "A request with a body cannot ask for another protocol.")
_TIMEOUT = _refusal("408 Request Timeout", "BAD_REQUEST", "The request took too long to arrive.")
_TOO_LARGE = _refusal("431 Request Header Fields Too Large", "BAD_REQUEST", "The request's headers are too large.")
_FULL = _refusal(
    "503 Service Unavailable", "OVERLOADED", "The service is at its limit. Try again shortly.", "retry-after: 1"
)


class _Measured(asyncio.Protocol):
    """A connection that is known while its client has yet to accept what was sent."""

    config: ServerConfig
    transport: asyncio.Transport

    def pause_writing(self) -> None:
        super().pause_writing()
        self.config.unread.add(self.transport)
        self.config.bound_unread()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.config.unread.discard(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.config.unread.discard(self.transport)
        super().connection_lost(exc)


class LimitedProtocol(_Measured, HttpToolsProtocol):
    """One connection."""

    config: ServerConfig

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._settings = config.settings
        self._waiting = config.waiting
        self._section = _NONE
        self._section_ended = False
        self._allowance = self._settings.max_header_bytes
        self._content_bytes = 0
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._bad_request = _BAD_REQUEST
        self._finished = False
        """Whether this protocol reads no more: the client was refused, or speaks WebSocket now."""

    # ── connections ──

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if len(self.connections) > self.config.most_connections and not self._make_room():
            transport.write(_FULL)
            transport.close()
            return
        self._waiting[self] = None
        self._end_at(self._settings.header_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        self._release()
        super().connection_lost(exc)

    def _make_room(self) -> bool:
        """Whether a connection that waited for its client was closed."""
        if (longest := next(iter(self._waiting), None)) is None:
            return False
        del self._waiting[longest]
        if longest.transport.get_write_buffer_size():
            longest.transport.abort()  # closing would wait until the client has read the rest
        else:
            longest.transport.close()
        return True

    def _release(self) -> None:
        self._waiting.pop(self, None)
        self._deadline = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ── bytes ──

    def data_received(self, data: bytes) -> None:
        while data and not self._finished:
            size = max(self._allowance, MIN_PIECE)
            piece, data = data[:size], data[size:]
            super().data_received(piece)
            if self._section_ended:
                self._section_ended = False
                self._allowance = self._settings.max_header_bytes
            else:
                self._allowance -= len(piece) - self._content_bytes
            self._content_bytes = 0
            if self._section is not _NONE or self._idle:
                self._await_rest()

    @property
    def _idle(self) -> bool:
        """Whether all requests have been answered."""
        return self.cycle is None or self.cycle.response_complete

    def _await_rest(self) -> None:
        """The client has begun a request, or sent line breaks before one: the rest must come in time."""
        if self._finished:
            return
        if self._allowance <= 0 or (self._section is _HEAD and len(self.headers) > MAX_HEADERS):
            self._refuse(_TOO_LARGE)
        elif self._deadline == math.inf:
            self._end_at(self._settings.body_timeout if self._section is _BODY else self._settings.header_timeout)

    # ── the parser's callbacks ──

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            self._finished = True
            raise ValueError  # ends in `send_400_response`
        self._section = _HEAD
        super().on_message_begin()
        self.scope["state"][IS_FIRST] = self.cycle is None

    def on_headers_complete(self) -> None:
        if len(self.headers) > MAX_HEADERS:
            self._fail(_TOO_LARGE)
        upgrades = self.parser.should_upgrade()
        ignored = upgrades and not self._should_upgrade()
        if ignored and self._announces_body():  # which the parser would skip
            self._fail(_UPGRADE)
        super().on_headers_complete()
        self._section, self._section_ended, self._deadline = _BODY, True, math.inf
        if not upgrades:
            self.headers = []  # of trailers, which the request must not take for its headers
        if ignored:
            self.cycle.keep_alive = False  # the parser stops at such a request

    def on_chunk_header(self) -> None:
        self._content_bytes += CHUNK_FRAMING

    def on_body(self, body: bytes) -> None:
        self._content_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._section, self._section_ended, self._deadline = _NONE, True, math.inf
        self._waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._idle and not self.transport.is_closing():
            self._waiting[self] = None

    def _fail(self, refusal: bytes) -> None:
        self._bad_request = refusal
        raise ValueError  # ends in `send_400_response`

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        if self._finished:  # too many are pipelined: the last of them that fits is the connection's last
            self.cycle.keep_alive = False
        else:
            self._refuse(self._bad_request)

    # ── other protocols ──

    def _should_upgrade(self) -> bool:
        """Not behind a request that is still answered: its answer would go into the socket."""
        return super()._should_upgrade() and self.parser.get_method() == b"GET" and self._idle

    def _announces_body(self) -> bool:
        return any(
            name == b"transfer-encoding" or (name, value) != (b"content-length", b"0")
            for name, value in self.headers
            if name in (b"content-length", b"transfer-encoding")
        )

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: clients could fill the log."""

    def handle_websocket_upgrade(self) -> None:
        self._finished = True
        self._release()
        with suppress(Exception):
            super().handle_websocket_upgrade()
        if not getattr(self.transport.get_protocol(), "handshake_initiated", False):
            # The library has refused headers that httptools accepts, and uvicorn does not pass its answer on.
            for failed in [other for other in self.connections if other.transport is self.transport]:
                self.connections.discard(failed)
            self.connections.add(self)
            self.transport.set_protocol(self)
            self._refuse(_BAD_REQUEST)

    # ── deadlines and refusals ──

    def _end_at(self, seconds: float) -> None:
        """Refuse the request unless it is complete by the deadline."""
        self._deadline = self.loop.time() + seconds
        if self._timer is not None and self._timer.when() <= self._deadline:
            return  # it begins anew when it ends
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline == math.inf or self.transport.is_closing():
            return
        in_body = self._section is _BODY
        # While an earlier request is answered, reading may pause: that is not the client's time.
        if self._deadline > self.loop.time():
            self._timer = self.loop.call_at(self._deadline, self._check_deadline)
        elif self.pipeline or not (in_body or self._idle):
            self._end_at(self._settings.body_timeout if in_body else self._settings.header_timeout)
        elif self._finished:
            self.transport.abort()
        elif self._section is _NONE:
            self.transport.close()
        else:
            self._refuse(_TIMEOUT)

    def _refuse(self, refusal: bytes) -> None:
        """Refuse the message being parsed, and close the connection; only close it while another answer is sent."""
        in_body = self._section is _BODY
        answerable = in_body is not self._idle and not (in_body and (self.pipeline or self.cycle.response_started))
        self._finished = True
        if not self._idle:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not answerable:
            self.transport.close()
            return
        self.transport.write(refusal)
        with suppress(OSError, NotImplementedError):
            self.transport.write_eof()
        self._end_at(LINGER_SECONDS)


# ── socket protocol ──
# WebSockets that are taken apart in pieces, and that the application closes when the service stops.
#
# A client that floods its socket with frames lets others go between: docs/decisions/http-server.md, "Turns".
#
# uvicorn closes all sockets as soon as it stops, so the answers to mutations under way would be lost. Here the
# application is told instead: it answers what it has begun, then closes the socket with a code and a reason
# (`websocket.py`). Uvicorn cancels what has not ended within the grace period.
#
# uvicorn also logs an error for each socket that was refused by a response, or whose client left before it was
# accepted. These are ordinary events, and clients could fill the log with them.

REPLY_SECONDS = 1.0
"""How long a service that stops waits for a client to reply to its closing of a socket.

To close the connection earlier, while the client still sends, may destroy the last answers.
"""


MOST_FRAMES = 1_000
"""Of a message. Clients send a message as one frame, or in pieces of kilobytes."""
PIECE = 4096
"""Bytes of a socket that are taken apart in an iteration of the event loop: a frame of six takes 4 µs."""


class SocketProtocol(_Measured, WebSocketsSansIOProtocol):
    """One socket."""

    config: ServerConfig
    _rest = b""
    """What has been received and waits to be taken apart. Reading is paused meanwhile."""
    _goes_on = False
    """Whether a piece of it is taken apart in the next iteration."""
    _timer: asyncio.TimerHandle | None = None
    """Ends the connection unless the message that has begun is complete by then."""

    def data_received(self, data: bytes) -> None:
        size = PIECE if self.handshake_initiated else len(data)  # uvicorn expects the handshake to begin at once
        super().data_received(data[:size])
        self._rest = data[size:]
        self._go_on()

    async def receive(self) -> ASGIReceiveEvent:
        message = await super().receive()
        self._go_on()
        return message

    def _go_on(self) -> None:
        """Take the rest apart in the next iteration, if the application has read what came before."""
        may_go_on = self._rest and (self.queue.empty() or self.close_sent) and not self._goes_on
        if may_go_on and not self.transport.is_closing():
            self._goes_on = True
            self.transport.pause_reading()  # uvicorn resumes it when its queue is empty
            self.loop.call_soon(self._take_rest)

    def _take_rest(self) -> None:
        self._goes_on = False
        if self.transport.is_closing():
            return
        self.data_received(self._rest)
        if not (self._rest or self.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.config.waiting.pop(self, None)
        self._end_timer()
        super().connection_lost(exc)

    # ── messages of several frames ──

    def handle_text(self, event: Any) -> None:
        super().handle_text(event)
        self._await_end(event)

    def handle_bytes(self, event: Any) -> None:
        super().handle_bytes(event)
        self._await_end(event)

    def handle_cont(self, event: Any) -> None:
        super().handle_cont(event)
        self._await_end(event)

    def _await_end(self, event: Any) -> None:
        """The rest of a message must come in time, and in few frames: each takes more memory than its bytes."""
        if event.fin:
            self._end_timer()
        elif len(self.frames) > MOST_FRAMES:
            self.transport.abort()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.config.settings.body_timeout, self._check_message)

    def _check_message(self) -> None:
        self._timer = None
        if self._rest or self.read_paused:  # the service's time, not the client's
            self._timer = self.loop.call_later(self.config.settings.body_timeout, self._check_message)
        else:
            self.transport.abort()

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def handle_ping(self) -> None:
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.transport.abort()  # the client asks without reading, and its pongs would be kept for it

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if self.close_sent and not self.transport.is_closing():
            self.config.waiting[self] = None
        if self.transport.is_closing():
            self.handshake_complete = True  # as after `websocket.close`: there is nothing left to complete
        self._go_on()

    def shutdown(self) -> None:
        if not self.handshake_complete:
            super().shutdown()
            return
        pipeline: Pipeline = self.app_state["pipeline"]
        pipeline.closing.set()  # by a signal it is set already
        self.close_timeout = REPLY_SECONDS
        if self.close_timer is not None:  # the application has closed the socket already
            self.close_timer.cancel()
            self.close_timer = self.loop.call_later(REPLY_SECONDS, self.transport.close)
