"""The table's layout: named by the table, required by the service, upgraded by a command that may be killed."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from datastore import layout
from datastore.dynamo import EngineUnavailable, Table, deadline, declaration, open_table
from datastore.dynamo.conditions import absent
from datastore.layout import CURRENT_LAYOUT, LAYOUT, Layout
from datastore.people import PROFILE, Profile
from tests.client import serving
from tests.conftest import create_table, settings_for
from tests.engines import RunningEngine, running_engine
from tests.fault.proxy import Proxy
from tests.first_round import ITEMS, items_of, write_items
from tests.legacy_sample import create_foreign_table
from tests.service import ROOT, environment, ringside, running_service

SECRET = "a secret that is long enough to be one in tests"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
SERVE = ("serve", "--port", "0")
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"}
RESHARD = ("board", "reshard", "main")


def _variables(url: str, table: Table) -> dict[str, str]:
    return {
        "RINGSIDE_DYNAMODB_URL": url,
        "RINGSIDE_TABLE": table.name,
        "RINGSIDE_SECRETS": SECRET,
        "RINGSIDE_INTROSPECTION": "on",
    }


def _run(command: tuple[str, ...], engine: RunningEngine, table: Table) -> subprocess.CompletedProcess[str]:
    return ringside(*command, **_variables(engine.url, table))


def _refused(command: tuple[str, ...], variables: dict[str, str]) -> str:
    """The message of a command that must fail."""
    result = ringside(*command, **variables)
    assert result.returncode == 1, result.stdout
    assert "Traceback" not in result.stderr
    return result.stderr


async def test_a_new_table_has_the_current_layout(engine: RunningEngine, table: Table) -> None:
    """The first process that serves an empty table names its layout; others find it named."""
    await table.write(LAYOUT.delete(LAYOUT.at()))
    settings = settings_for(engine, table.name)
    async with serving(settings), serving(settings):
        assert await layout.ensure_layout(table) == Layout(CURRENT_LAYOUT)
        assert len(await items_of(table)) == 1


async def test_a_new_table_is_not_taken_for_an_old_one_beside_another_start(
    one_table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process names the layout before this one looks for items, and this one finds that item only."""
    await one_table.write(LAYOUT.delete(LAYOUT.at()))
    scan, starts = one_table.client.scan, list[Any]()

    async def after_another_start(**request: Any) -> Any:
        if not starts:
            starts.append(request)
            await layout.ensure_layout(one_table)
        return await scan(**request)

    monkeypatch.setattr(one_table.client, "scan", after_another_start)
    assert await layout.ensure_layout(one_table) == Layout(CURRENT_LAYOUT)
    assert starts


async def test_table_create_names_the_layout(default_engine: RunningEngine, one_table: Table) -> None:
    """Before anything serves the table."""
    await one_table.client.delete_table(TableName=one_table.name)
    created = await asyncio.to_thread(ringside, "table", "create", **_variables(default_engine.url, one_table))
    assert created.returncode == 0, created.stderr
    assert await one_table.get(LAYOUT.at()) == Layout(CURRENT_LAYOUT)


async def test_a_table_whose_creation_was_interrupted_gets_its_time_to_live(table: Table) -> None:
    """DynamoDB makes a table for half a minute and sets its time to live after that: another call does what is left."""
    await table.client.delete_table(TableName=table.name)
    await table.client.create_table(**declaration.definition(table.name))
    assert await _time_to_live(table) == "DISABLED"
    assert not await declaration.create(table)
    assert await _time_to_live(table) == "ENABLED"
    assert not await declaration.create(table)


async def test_a_table_of_something_else_gets_no_time_to_live(one_table: Table) -> None:
    """Its items may have an attribute of the same name, and would be removed."""
    other = Table(one_table.client, f"{one_table.name}-other")
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


async def test_a_table_of_the_first_round_is_refused_with_what_to_do(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """By the service, and by a command that writes; nothing is written."""
    await write_items(one_table)
    for command in (SERVE, RESHARD):
        message = await asyncio.to_thread(_refused, command, _variables(default_engine.url, one_table))
        assert "has layout 1" in message
        assert "`ringside table upgrade`" in message
    assert len(await items_of(one_table)) == len(ITEMS)


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        (Layout(1, CURRENT_LAYOUT), f"is being upgraded to layout {CURRENT_LAYOUT}, or its upgrade was interrupted"),
        (Layout(CURRENT_LAYOUT + 1), "was written by a newer release"),
    ],
)
async def test_an_unknown_or_unfinished_layout_is_refused(
    default_engine: RunningEngine, one_table: Table, stored: Layout, reason: str
) -> None:
    """The message says which of them it is."""
    await one_table.write(LAYOUT.put(stored))
    assert reason in await asyncio.to_thread(_refused, SERVE, _variables(default_engine.url, one_table))


async def test_a_newer_layout_is_not_upgraded(default_engine: RunningEngine, one_table: Table) -> None:
    """An upgrade of this release leaves a newer release's table alone."""
    newer = Layout(CURRENT_LAYOUT + 1)
    await one_table.write(LAYOUT.put(newer))
    message = await asyncio.to_thread(_refused, ("table", "upgrade"), _variables(default_engine.url, one_table))
    assert "was written by a newer release" in message
    assert await layout.ensure_layout(one_table) == newer


async def test_an_upgraded_table_is_served_and_upgrading_again_changes_nothing(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """The fixture's votes are of the year 2050, so only the audit of `test_first_round` has the right clock."""
    await write_items(one_table)
    await layout.upgrade(one_table, lambda _part, _items: None)
    before = await _items_but_ranks(one_table)
    await layout.upgrade(one_table, lambda _part, _items: None)
    assert await _items_but_ranks(one_table) == before
    assert (await asyncio.to_thread(_run, ("table", "check"), default_engine, one_table)).returncode == 0


async def test_the_upgrade_command_audits_what_it_upgraded(default_engine: RunningEngine, one_table: Table) -> None:
    """A breach is reported with exit code 1, and the table is served even so."""
    await write_items(one_table)
    await one_table.write(PROFILE.put(Profile("zoe", "Zoe", NOW), when=absent()))
    key = PROFILE.at(user="zoe").attributes
    await one_table.client.update_item(TableName=one_table.name, Key=key, UpdateExpression="REMOVE gsi1pk, gsi1sk")
    upgraded = await asyncio.to_thread(_run, ("table", "upgrade"), default_engine, one_table)
    assert f"The table has layout {CURRENT_LAYOUT}." in upgraded.stdout
    assert upgraded.returncode == 1
    assert "people:" in upgraded.stderr
    assert "`ringside audit`" in upgraded.stderr
    assert (await asyncio.to_thread(_run, ("table", "check"), default_engine, one_table)).returncode == 0


async def _items_but_ranks(table: Table) -> list[Any]:
    """Every item but the counts that ranks are read from: each upgrade counts them again, under a new number.

    A standing's version begins with a random number, so it differs too.
    """
    return [
        {name: value for name, value in item.items() if name != "version" or "events_played" not in item}
        for item in await items_of(table)
        if not item["pk"]["S"].startswith("HISTOGRAM#") and item["sk"]["S"] != "RANKS"
    ]


async def test_an_upgrade_that_is_killed_continues(default_engine: RunningEngine, table_name: str) -> None:
    """Killed after some of its writes, the table is refused by `serve`; run again, it equals one upgraded at once."""
    async with create_table(f"{table_name}-control", default_engine.url) as control:
        await write_items(control)
        await layout.upgrade(control, lambda _part, _items: None)
        expected = await _items_but_ranks(control)
    for writes in (1, 40):
        async with create_table(f"{table_name}-{writes}", default_engine.url) as table:
            await write_items(table)
            async with Proxy(default_engine.url) as proxy:
                await _kill_after(writes, proxy, table)
            if (await layout.ensure_layout(table)).version < CURRENT_LAYOUT:
                assert "interrupted" in await asyncio.to_thread(_refused, SERVE, _variables(default_engine.url, table))
            await layout.upgrade(table, lambda _part, _items: None)
            assert await _items_but_ranks(table) == expected


async def _kill_after(writes: int, proxy: Proxy, table: Table) -> None:
    """Runs the upgrade and kills it once it has begun and made so many writes; it may have ended before."""
    variables = environment(**_variables(proxy.url, table))
    process = subprocess.Popen([sys.executable, "-m", "server", "table", "upgrade"], cwd=ROOT, env=variables)
    while process.poll() is None and (await layout.ensure_layout(table)) == Layout(1):
        await asyncio.sleep(0.001)
    proxy.reset_counts()
    while process.poll() is None:
        if sum(count for operation, count in proxy.requests.items() if operation in WRITES) >= writes:
            process.send_signal(signal.SIGKILL)
        await asyncio.sleep(0.001)


async def test_the_embedded_engine_upgrades_by_itself(tmp_path: Path) -> None:
    """`ringside serve` on a data folder of the first round answers; a command alone would refuse it."""
    await asyncio.to_thread(_first_round_folder, tmp_path)
    variables = {"RINGSIDE_DATA": str(tmp_path), "RINGSIDE_SECRETS": SECRET}
    assert "has layout 1" in await asyncio.to_thread(_refused, RESHARD, variables)
    await asyncio.to_thread(_ask_for_a_board, variables)


def _first_round_folder(folder: Path) -> None:
    with running_engine("dynoxide", folder) as engine:
        asyncio.run(_write_first_round(engine.url))


async def _write_first_round(url: str) -> None:
    async with open_table("ringside", url=url) as table:
        await declaration.create(table)
        await write_items(table)


def _ask_for_a_board(variables: dict[str, Any]) -> None:
    with running_service(variables) as service:
        answer = httpx.post(f"{service.url}/graphql", json={"query": '{ board(slug: "main") { slug } }'})
        assert answer.json() == {"data": {"board": {"slug": "main"}}}
