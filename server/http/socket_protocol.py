"""WebSockets that the application closes when the service stops.

uvicorn closes all sockets as soon as it stops, so the answers to mutations under way would be lost. Here the
application is told instead: it answers what it has begun, then closes the socket with a code and a reason
(`websocket.py`). Uvicorn cancels what has not ended within the grace period.

uvicorn also logs an error for each socket that was refused by a response, or whose client left before it was accepted.
These are ordinary events, and clients could fill the log with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

    from server.http.pipeline import Pipeline

REPLY_SECONDS = 1.0
"""How long a service that stops waits for a client to reply to its closing of a socket.

To close the connection earlier, while the client still sends, may destroy the last answers.
"""


class SocketProtocol(WebSocketsSansIOProtocol):
    """One socket."""

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if self.transport.is_closing():
            self.handshake_complete = True  # as after `websocket.close`: there is nothing left to complete

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
