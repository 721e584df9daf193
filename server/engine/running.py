"""Runs an engine for the duration of a block."""

import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from server.engine.folder import locked_folder
from server.engine.process import Engine
from server.engine.programs import Program, choose_program


@asynccontextmanager
async def run_engine_async(
    data: Path, binary: Path | None = None, program: Program | None = None
) -> AsyncIterator[Engine]:
    """Run the engine of a data folder while the block runs."""
    async with locked_folder(data) as lock:
        with _reserved_port() as port:
            engine = Engine(program or choose_program(data, binary), data, lock, port)
            await engine.start()
            try:
                yield engine
            finally:
                await engine.stop()


@contextmanager
def run_engine(data: Path, binary: Path | None = None, program: Program | None = None) -> Iterator[Engine]:
    """Do the same without a running event loop, as in the parent of several workers: the engine runs in a thread."""
    engine_context = run_engine_async(data, binary, program)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(engine_context) as engine:
        yield engine


@contextmanager
def _reserved_port() -> Iterator[int]:
    """Yield a free loopback port that stays reserved for the engine, even while the engine is down.

    On Linux the system does not hand out a port to which a socket is bound, even if that socket never listens, and
    sockets that allow address reuse may share it. On other systems the port was merely free a moment ago.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        if sys.platform != "linux":
            holder.close()
        yield port
