"""Running a command's work: with an engine, on the table, with the services that resolvers use."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from datastore.changes.occurrences import MOST_AGE
from datastore.dynamo import DynamoError
from datastore.refusals import InvalidInput
from resolvers.requests.context import Services
from resolvers.values.node_ids import parse_node_key
from server import Failed
from server.commands import operator
from server.engine import EngineInUse, run_engine
from server.engine.folder import is_data_folder
from server.engine.table import open_checked_table
from server.settings import Settings
from server.telemetry import configure_logging

T = TypeVar("T")

LEARN_SECONDS = MOST_AGE / 2


def load_settings() -> Settings:
    """The environment's. What is logged from now on goes to standard error, like a service's, and to no result."""
    settings = Settings.load()
    configure_logging(settings.log)
    return settings


@contextmanager
def engine_for(settings: Settings, *, share: bool = True) -> Iterator[Settings]:
    """Start the embedded engine if the settings want one, and yield settings with an engine's address.

    With `share`, an engine that another process has started for the same data is used instead.
    """
    if not settings.embedded:
        yield settings
        return
    try:
        with run_engine(settings.data, settings.engine_binary) as engine:
            yield settings.model_copy(update={"dynamodb_url": engine.url})
    except EngineInUse as in_use:
        if not share:
            raise
        yield settings.model_copy(update={"dynamodb_url": in_use.url})


def run_with_services(work: Callable[[Services], Awaitable[T]], *, begins_table: bool = False) -> T:
    """Run `work` on the table of the environment's settings.

    Work that `begins_table` may be an embedded engine's first. Other work is refused in a folder that was never used:
    in a mistyped one an audit would find nothing wrong, and an export nothing at all.
    """
    settings = load_settings()
    if settings.embedded and not begins_table:
        require_used(settings.data)

    async def run(reachable: Settings) -> T:
        async with open_checked_table(reachable, create=settings.embedded) as table:
            services = Services(table, settings.seal(), settings.policy(), of_command=True)
            if (node := operator.get()) is not None:
                services.operator = f"User:{await known_member(services, node)}"
            try:
                async with _knowing_webhooks(services):
                    return await work(services)
            finally:
                await services.close()

    with engine_for(settings) as reachable:
        return asyncio.run(run(reachable))


def require_used(data: Path) -> None:
    """Failed for a folder that was never an embedded engine's."""
    if not is_data_folder(data):
        raise Failed(
            f"There is no table in {data}. Set RINGSIDE_DATA to the service's data folder. `ringside serve` and "
            "`ringside table create` make a new one."
        )


async def known_member(services: Services, text: str) -> str:
    """The member with the id that the API shows as a User's."""
    with suppress(InvalidInput):
        user = parse_node_key("User", text)
        if await services.profiles.load(user) is not None:
            return user
    raise Failed(f"{text[:80]!r} is no member's id. That is the `id` of a User, as the API shows it.")


@asynccontextmanager
async def _knowing_webhooks(services: Services) -> AsyncIterator[None]:
    """Webhooks are told what is done in this block, however long it takes: also those that are added meanwhile."""
    await services.journal.learn(services.table)
    learning = asyncio.create_task(_learn_repeatedly(services))
    try:
        yield
    finally:
        learning.cancel()
        with suppress(asyncio.CancelledError):
            await learning


async def _learn_repeatedly(services: Services) -> None:
    while True:
        await asyncio.sleep(LEARN_SECONDS)
        with suppress(DynamoError):  # it goes on with those that it knows
            await services.journal.learn(services.table)
