"""An engine for as long as a block runs."""

import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from server.engine.folder import owned
from server.engine.process import Engine
from server.engine.programs import Program, choose


@asynccontextmanager
async def embedded(data: Path, binary: Path | None = None, program: Program | None = None) -> AsyncIterator[Engine]:
    """Run the engine of a data folder as long as the block does."""
    async with owned(data) as lock:
        with _reserved_port() as port:
            engine = Engine(program or choose(data, binary), data, lock, port)
            await engine.start()
            try:
                yield engine
            finally:
                await engine.stop()


@contextmanager
def beside(data: Path, binary: Path | None = None, program: Program | None = None) -> Iterator[Engine]:
    """Do the same where no event loop runs, as in the supervisor of several workers: the engine gets a thread's."""
    running = embedded(data, binary, program)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(running) as engine:
        yield engine


@contextmanager
def _reserved_port() -> Iterator[int]:
    """Yield a free port of loopback that stays free for the engine, also between its death and its return.

    On Linux a socket that is bound but never listens keeps a port out of the system's lottery, and two that both allow
    the reuse of the address may still share it. Elsewhere the port is only known to have been free a moment ago.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        if sys.platform != "linux":
            holder.close()
        yield port
