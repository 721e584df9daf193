"""Runs an engine for the duration of a block."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from server.engine.addresses import reserved_address
from server.engine.backup import complete_restore
from server.engine.folder import locked_folder
from server.engine.integrity import check_file
from server.engine.process import Engine
from server.engine.programs import Program, choose_program, table_file


@asynccontextmanager
async def run_engine_async(
    data: Path, binary: Path | None = None, program: Program | None = None
) -> AsyncIterator[Engine]:
    """Run the engine of a data folder while the block runs."""
    async with locked_folder(data) as lock:
        complete_restore(data)  # some renaming; in a thread it would outlive the lock if this is cancelled
        await asyncio.to_thread(check_file, table_file(data))
        with reserved_address() as address:
            engine = Engine(program or choose_program(data, binary), data, lock, address)
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
