"""WebSockets that the application closes when the service stops.

uvicorn closes all sockets as soon as it stops, so the answers to mutations under way would be lost. Here the
application is told instead: it answers what it has begun, then closes the socket with a code and a reason
(`websocket.py`). Uvicorn cancels what has not ended within the grace period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from server.http.pipeline import Pipeline


class SocketProtocol(WebSocketsSansIOProtocol):
    """One socket."""

    def shutdown(self) -> None:
        if self.handshake_complete and not self.close_sent:
            pipeline: Pipeline = self.app_state["pipeline"]
            pipeline.closing.set()  # by a signal it is set already
        else:
            super().shutdown()
