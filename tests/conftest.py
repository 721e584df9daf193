"""What every test may ask for: engines, a table of its own, the service in this process, members of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import settings as hypothesis_settings

from datastore.dynamo import Table, open_table
from datastore.dynamo.declaration import create
from server.settings import Settings
from tests.client import Client, serving
from tests.engines import RunningEngine, default_engine, engine, table_name
from tests.no_skips import pytest_make_collect_report, pytest_runtest_makereport
from tests.service import Service, running_service

__all__ = ["default_engine", "engine", "pytest_make_collect_report", "pytest_runtest_makereport", "table_name"]

# By itself hypothesis fails an example that takes 0.2 s, which on a busy machine any does.
hypothesis_settings.register_profile("ringside", deadline=None)
hypothesis_settings.load_profile("ringside")

SECRET = "a secret that is long enough to be one, in tests"


def settings_for(engine: RunningEngine, table_name: str, **more: object) -> Settings:
    return Settings(dynamodb_url=engine.url, table=table_name, secrets=(SECRET,), introspection="on", **more)


@pytest.fixture
def settings(default_engine: RunningEngine, table_name: str) -> Settings:
    """Settings of a service on the default engine."""
    return settings_for(default_engine, table_name)


@asynccontextmanager
async def created(name: str, url: str) -> AsyncIterator[Table]:
    async with open_table(name, url=url) as table:
        await create(table)
        yield table
        await table.client.delete_table(TableName=name)


@pytest.fixture
async def table(engine: RunningEngine, table_name: str) -> AsyncIterator[Table]:
    """An empty table, on each engine in its turn."""
    async with created(table_name, engine.url) as made:
        yield made


@pytest.fixture
async def one_table(default_engine: RunningEngine, table_name: str) -> AsyncIterator[Table]:
    """An empty table on the default engine, for tests in which the engine is not the question."""
    async with created(table_name, default_engine.url) as made:
        yield made


@pytest.fixture
async def client(table: Table, engine: RunningEngine) -> AsyncIterator[Client]:
    """An anonymous visitor of the service, on each engine in its turn."""
    async with serving(settings_for(engine, table.name)) as visitor:
        yield visitor


@pytest.fixture
async def one_client(one_table: Table, settings: Settings) -> AsyncIterator[Client]:
    """An anonymous visitor of the service on the default engine."""
    assert one_table.name == settings.table
    async with serving(settings) as visitor:
        yield visitor


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service with its demo data, as `make run` starts it, in a process of its own; one for the whole run."""
    with running_service({"RINGSIDE_DATA": str(tmp_path_factory.mktemp("service"))}, ["--demo"]) as one:
        yield one
