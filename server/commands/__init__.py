"""What the commands of the command line share: an engine to work on, a voice, and a way to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console

from datastore.dynamo import declaration
from resolvers.context import Services
from server.app import check, open_engine, policy_of
from server.engine import EngineInUse, beside
from server.settings import Settings

T = TypeVar("T")

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


class Failed(Exception):
    """A command that could not do what it was asked to; the message says why and what to do."""


@contextmanager
def engine_of(settings: Settings, *, share: bool = True) -> Iterator[Settings]:
    """Settings with an engine's address: the embedded one is started, or shared with the service that runs it."""
    if not settings.embedded:
        yield settings
        return
    try:
        with beside(settings.data, settings.engine_binary) as engine:
            yield settings.model_copy(update={"dynamodb_url": engine.url})
    except EngineInUse as holder:
        if not share:
            raise
        yield settings.model_copy(update={"dynamodb_url": holder.url})


def with_house(work: Callable[[Services], Awaitable[T]]) -> T:
    """Does something with the table of the environment's settings, created first where the engine is embedded."""
    settings = Settings.load()

    async def done(reachable: Settings) -> T:
        async with open_engine(reachable) as table:
            if settings.embedded:
                await declaration.create(table)
            await check(table)
            services = Services(table, settings.seal(), policy_of(settings))
            try:
                return await work(services)
            finally:
                await services.close()

    with engine_of(settings) as reachable:
        return asyncio.run(done(reachable))
