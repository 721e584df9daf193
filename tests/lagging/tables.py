"""Fresh tables on an engine that lags."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from datastore.dynamo import Table, open_table
from datastore.dynamo.declaration import create
from datastore.whole.layout import ensure_layout
from tests.conftest import drop
from tests.engines import EnginePair, running_pair
from tests.lagging.engine import LaggingEngine


class LaggingTable(NamedTuple):
    """One table twice: through the engine that lags, and as its leader has it, with every write at once.

    What is written to the leader directly, once the table is in use, never reaches the indexes.
    """

    engine: LaggingEngine
    table: Table
    leader: Table


@asynccontextmanager
async def lagging(folder: Path, **how: Any) -> AsyncIterator[tuple[LaggingEngine, Table]]:
    """A fresh table on a lagging engine, with two embedded engines of its own."""
    with running_pair(folder) as engines:
        async with (
            LaggingEngine(engines.leader.url, engines.follower.url, **how) as engine,
            open_table("ringside", url=engine.url) as table,
        ):
            await create(table)
            yield engine, table


@asynccontextmanager
async def lagging_table(engines: EnginePair, name: str, **how: Any) -> AsyncIterator[LaggingTable]:
    """A fresh table of the current layout on two engines that other tests use too."""
    async with (
        LaggingEngine(engines.leader.url, engines.follower.url, **how) as engine,
        open_table(name, url=engine.url) as table,
        open_table(name, url=engines.leader.url) as leader,
    ):
        await create(table)
        await ensure_layout(table)
        yield LaggingTable(engine, table, leader)
        engine.fault_rate = 0
        await drop(table)
