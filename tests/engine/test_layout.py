"""The table's layout: named by the table, required by the service."""

import asyncio
import socket
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from datastore.dynamo import EngineUnavailable, Table, deadline, declaration, open_table
from datastore.dynamo.entity import TTL
from datastore.people.profiles import PROFILE, Profile
from datastore.whole import layout
from datastore.whole.layout import CURRENT_LAYOUT, LAYOUT, Layout
from tests.client import serving
from tests.command import on_table, ringside
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.intercepted import beforehand
from tests.legacy_sample import create_foreign_table

SECRET = "a secret that is long enough to be one in tests"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
SERVE = ("serve", "--port", "0")
RESHARD = ("board", "reshard", "main")


def _variables(url: str, table: Table) -> dict[str, str]:
    return on_table(url, table.name, RINGSIDE_SECRETS=SECRET, RINGSIDE_INTROSPECTION="on")


def _refused(command: tuple[str, ...], variables: dict[str, str]) -> str:
    """The message of a command that must fail."""
    result = ringside(*command, **variables)
    assert result.returncode == 1, result.stdout
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.every_engine
async def test_a_new_table_has_the_current_layout(engine: RunningEngine, table: Table) -> None:
    """The first process that serves an empty table names its layout; others find it named."""
    await table.write(LAYOUT.delete(LAYOUT.at()))
    settings = settings_for(engine, table.name)
    async with serving(settings), serving(settings):
        assert await layout.ensure_layout(table) == Layout(CURRENT_LAYOUT)
        stored = [item["pk"]["S"] async for item in table.scan_items(consistent=True)]
        assert sorted(stored) == ["BOARD#main", "LAYOUT"]


async def test_a_new_table_is_not_taken_for_an_old_one_beside_another_start(one_table: Table) -> None:
    """The other process names the layout before this one looks for items, and this one finds that item only."""
    await one_table.write(LAYOUT.delete(LAYOUT.at()))
    with beforehand(one_table, lambda: layout.ensure_layout(one_table), "scan") as starts:
        assert await layout.ensure_layout(one_table) == Layout(CURRENT_LAYOUT)
    assert starts


async def test_table_create_names_the_layout(default_engine: RunningEngine, one_table: Table) -> None:
    """Before anything serves the table."""
    await one_table.client.delete_table(TableName=one_table.name)
    created = await asyncio.to_thread(ringside, "table", "create", **_variables(default_engine.url, one_table))
    assert created.returncode == 0, created.stderr
    assert await one_table.get(LAYOUT.at()) == Layout(CURRENT_LAYOUT)


@pytest.mark.every_engine
async def test_a_table_whose_creation_was_interrupted_gets_its_time_to_live(table: Table) -> None:
    """DynamoDB makes a table for half a minute and sets its time to live after that: another call does what is left."""
    await table.client.delete_table(TableName=table.name)
    await table.client.create_table(**declaration.definition(table.name))
    assert await _time_to_live(table) == "DISABLED"
    assert not await declaration.create(table)
    assert await _time_to_live(table) == "ENABLED"
    assert not await declaration.create(table)


async def test_a_restored_table_fails_its_check_until_create_has_turned_on_its_time_to_live(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """DynamoDB restores a table without it, and what has expired would stay for ever."""
    await one_table.client.update_time_to_live(
        TableName=one_table.name, TimeToLiveSpecification={"Enabled": False, "AttributeName": TTL}
    )
    variables = _variables(default_engine.url, one_table)
    message = await asyncio.to_thread(_refused, ("table", "check"), variables)
    assert "its time to live is off" in message
    assert "`ringside table create`" in message
    for command in ("create", "check"):
        assert (await asyncio.to_thread(ringside, "table", command, **variables)).returncode == 0
    assert await _time_to_live(one_table) == "ENABLED"


async def test_a_table_of_something_else_gets_no_time_to_live(one_table: Table) -> None:
    """Its items may have an attribute of the same name, and would be removed."""
    other = Table(one_table.client, replace(one_table.address, name=f"{one_table.name}-other"))
    await create_foreign_table(other, "Id", "Date")
    try:
        assert not await declaration.create(other)
        assert await _time_to_live(other) == "DISABLED"
    finally:
        await other.client.delete_table(TableName=other.name)


async def _time_to_live(table: Table) -> str:
    answer = await table.client.describe_time_to_live(TableName=table.name)
    return str(answer["TimeToLiveDescription"]["TimeToLiveStatus"])


async def test_creating_a_table_on_an_engine_that_is_away_fails_as_every_call_does() -> None:
    """So the command prints one line."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        async with open_table("ringside", url=url) as table:
            with deadline(0.3), pytest.raises(EngineUnavailable):
                await declaration.create(table)


async def test_a_table_of_something_else_is_refused(default_engine: RunningEngine, one_table: Table) -> None:
    """It has items, and none of them names a layout; nothing is written."""
    await one_table.write(LAYOUT.delete(LAYOUT.at()))
    await one_table.write(PROFILE.put(Profile("ada", "Ada", NOW)))
    for command in (SERVE, RESHARD):
        message = await asyncio.to_thread(_refused, command, _variables(default_engine.url, one_table))
        assert "has items that Ringside did not write" in message
        assert "RINGSIDE_TABLE" in message
    assert len([item async for item in one_table.scan_items(consistent=True)]) == 1


async def test_an_unknown_layout_is_refused_with_what_to_do(default_engine: RunningEngine, one_table: Table) -> None:
    """By the service, and by a command that writes; nothing is written."""
    unknown = Layout(CURRENT_LAYOUT + 1)
    await one_table.write(LAYOUT.put(unknown))
    for command in (SERVE, RESHARD):
        message = await asyncio.to_thread(_refused, command, _variables(default_engine.url, one_table))
        assert f"has layout {CURRENT_LAYOUT + 1}, and this release knows layout {CURRENT_LAYOUT} only" in message
        assert "Run the release that wrote it" in message
    assert await layout.ensure_layout(one_table) == unknown
