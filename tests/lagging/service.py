"""The service in this process on a table of a lagging engine."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from datastore.dynamo import open_table
from datastore.dynamo.declaration import create
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine, running_engine
from tests.lagging.engine import LaggingEngine
from tests.lagging.replica import Lag


@asynccontextmanager
async def lagging_services(
    leader: RunningEngine, folder: Path, name: str, *, lag: Lag, services: int = 1, engine: Any = (), **settings: object
) -> AsyncIterator[tuple[LaggingEngine, list[Client]]]:
    """A client of each service, all of them on one table. `engine` has more of the engine's parameters."""
    async with AsyncExitStack() as stack:
        follower = stack.enter_context(running_engine("dynoxide", folder))
        lagging = LaggingEngine(leader.url, follower.url, seed=3, lag=lag, **dict(engine))
        await stack.enter_async_context(lagging)
        table = await stack.enter_async_context(open_table(name, url=lagging.url))
        await create(table)
        their = settings_for(RunningEngine("lagging", lagging.url), name, **settings)
        yield lagging, [await stack.enter_async_context(serving(their)) for _ in range(services)]
