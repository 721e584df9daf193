"""Uvicorn's HTTP with two savings; what goes over the wire stays the same, byte for byte (a test holds them together).

- An application may hand over an answer in one piece, its headers ready-made. Uvicorn looks at each header with two
  regular expressions, builds the head from parts, and sends the body apart from it.
- Connections that wait for their next request share timers, instead of setting one of their own with every answer.

Together they save 12 of the 70 µs that a request costs beside its execution.

An application finds `scope["extensions"][WHOLE]`, as ASGI has it for what a server can do besides, and calls it with
the status, the head's lines and the body. False means that it cannot be done now: then the answer is sent as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from datastore.dynamo import Alarm

WHOLE = "ringside.whole"
Whole: TypeAlias = Callable[[int, bytes, bytes], bool]


class Lean(HttpToolsProtocol):
    """One connection."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cycle.scope["extensions"] = {WHOLE: partial(_whole, self, cycle)}  # type: ignore[dict-item]
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            until = self.loop.time() + self.timeout_keep_alive
            self.timeout_keep_alive_task = Alarm(self.loop, until, self.timeout_keep_alive_handler)  # type: ignore[assignment]


def _whole(connection: Lean, cycle: RequestResponseCycle, status: int, head: bytes, body: bytes) -> bool:
    """Send an answer in one piece. `head` has its lines but the first, each with its end, also `content-length`."""
    if cycle.response_started or cycle.flow.write_paused or cycle.access_log or cycle.scope["method"] == "HEAD":
        return False
    if cycle.disconnected:
        return True
    ours = [b"%b: %b\r\n" % header for header in connection.server_state.default_headers]
    last = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
    cycle.response_started = cycle.response_complete = True
    cycle.transport.write(b"".join([STATUS_LINE[status], *ours, head, last, body]))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True
