"""The service in this process behind a real socket, with its own settings."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import uvicorn

from server.app import application
from server.commands.serve import uvicorn_config
from server.http.protocol import ServerConfig
from server.settings import Settings


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals to the tests."""
        yield


@dataclass(frozen=True)
class Served:
    """A running server and its address."""

    server: uvicorn.Server
    url: str

    @property
    def config(self) -> ServerConfig:
        assert isinstance(self.server.config, ServerConfig)
        return self.server.config


@asynccontextmanager
async def serving_on_a_socket(settings: Settings) -> AsyncIterator[Served]:
    """The service of these settings. Its table must exist."""
    server = _Server(uvicorn_config(settings, application(settings), 1))
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            if serving.done():
                serving.result()
            await asyncio.sleep(0.01)
        try:
            yield Served(server, f"http://127.0.0.1:{listening.getsockname()[1]}")
        finally:
            server.should_exit = server.force_exit = True  # waits for no connection, and does not end the application
            await serving
            await server.lifespan.shutdown()
