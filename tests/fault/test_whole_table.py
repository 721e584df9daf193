"""Exports, imports and copies that are killed with kill -9, and on an engine that throttles and fails."""

import asyncio
import gzip
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from datastore.dynamo import Table, open_table
from datastore.dynamo.declaration import create
from datastore.whole import table as whole_table
from datastore.whole.layout import CURRENT_LAYOUT, LAYOUT, Layout, ensure_layout
from server.commands import whole_table as commands
from server.commands.export_file import End
from server.commands.whole_table import export_table, import_table, open_export
from server.engine import run_engine_async
from server.settings import Settings
from tests.command import ROOT, environment, on_table, ringside
from tests.conftest import create_table, settings_for
from tests.engines import RunningEngine, engine_program
from tests.fault.faults import Fault
from tests.fault.proxy import Proxy

SECRET = "a secret without a comma that signs nothing"
ITEMS = 400
LIVES = 80
KILLED_AT = """
import os, signal, sys
from pathlib import Path
from datastore.whole import table as whole_table
from server.commands import export_file, whole_table as commands

left = int(sys.argv.pop())
commands.TableStore.at_once = 50
whole_table.PAGE = 100

def step():
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

def dying(owner, name, asynchronous=False):
    original = getattr(owner, name)
    def call(*given, **more):
        step()
        return original(*given, **more)
    async def call_async(*given, **more):
        step()
        return await original(*given, **more)
    setattr(owner, name, call_async if asynchronous else call)

for name in ("add", "end_pass"):
    dying(commands.Spool, name)
dying(export_file, "write_export")
dying(commands, "sync")
for name in ("begin_import", "write_lines", "record_import"):
    dying(whole_table, name, asynchronous=True)
dying(Path, "rename")

from server.__main__ import main
main()
"""
"""The command line, killed before its n-th step. A page has 100 rows and a chunk 50, so there are many."""


def _nothing(*_: Any, **__: Any) -> None: ...


async def _fill(table: Table, prefix: str = "ITEM", value: str = "old") -> None:
    for start in range(0, ITEMS, 25):
        puts = [
            {
                "PutRequest": {
                    "Item": {"pk": {"S": f"{prefix}#{place % 40}"}, "sk": {"S": f"{place:06d}"}, "v": {"S": value}}
                }
            }
            for place in range(start, start + 25)
        ]
        await table.client.batch_write_item(RequestItems={table.name: puts})


async def _export(settings: Settings, file: Path) -> End:
    return await asyncio.to_thread(export_table, settings, file, _nothing)


async def _import(table: Table, file: Path) -> None:
    with open_export(file, _nothing) as (source, end):
        await import_table(table, source, end, _nothing)


def _variables(settings: Settings) -> dict[str, str]:
    return on_table(settings.dynamodb_url, settings.table, RINGSIDE_SECRETS=SECRET, RINGSIDE_DATA=f"{settings.data}")


async def _run_until_it_survives(variables: Mapping[str, str], random: Random, *arguments: str) -> int:
    """Runs a command again and again, killed at a random step each time; returns how often it was killed."""
    for life in range(LIVES):
        process = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", KILLED_AT, *arguments, str(random.randint(2, 14))],
            env=environment(**variables), cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if process.returncode == 0:
            return life
        assert process.returncode == -signal.SIGKILL, process.stderr
    raise AssertionError(f"{' '.join(arguments)} did not come to its end in {LIVES} lives")


@pytest.mark.soak
async def test_an_export_and_an_import_that_are_killed_go_on(
    default_engine: RunningEngine, one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """Whatever the steps at which they died: the file is the one of an undisturbed export, the table equal to it."""
    await _fill(one_table)
    whole, file, again = (tmp_path / name for name in ("whole", "file", "again"))
    await _export(settings, whole)
    random = Random(7)
    assert await _run_until_it_survives(_variables(settings), random, "export", "all", str(file)) > 0
    assert file.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("file")) == ["file"]
    async with create_table(f"ringside-{uuid4().hex[:16]}", default_engine.url) as other:
        filled = settings.model_copy(update={"table": other.name})
        assert await _run_until_it_survives(_variables(filled), random, "import", "all", str(file)) > 0
        await _export(filled, again)
        assert again.read_bytes() == whole.read_bytes()


async def test_an_export_that_was_killed_while_reading_again_has_what_was_written_since(
    one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """Killed with all of the second pass read, but not ended. What was added, changed and deleted since is found."""
    await _fill(one_table)
    await _fill(one_table, "GONE")
    await _kill_export(tmp_path / "file", _variables(settings), steps=9)
    await _fill(one_table, value="new")
    await _fill(one_table, "LATER")
    gone = [item async for item in one_table.scan_items(consistent=True) if item["pk"]["S"].startswith("GONE")]
    for start in range(0, len(gone), 25):
        deletions = [{"DeleteRequest": {"Key": {key: item[key] for key in ("pk", "sk")}}} for item in gone[start:][:25]]
        await one_table.client.batch_write_item(RequestItems={one_table.name: deletions})
    assert (await _export(settings, tmp_path / "file")).changed == 0
    await _export(settings, tmp_path / "whole")
    assert (tmp_path / "file").read_bytes() == (tmp_path / "whole").read_bytes()


async def test_a_table_whose_import_was_killed_is_not_served_until_it_is_complete(
    default_engine: RunningEngine, one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """Killed before its last step, the import leaves a table that looks whole, and is not known to be."""
    await _fill(one_table)
    file = tmp_path / "file"
    await _export(settings, file)
    async with create_table(f"ringside-{uuid4().hex[:16]}", default_engine.url) as other:
        filled = settings.model_copy(update={"table": other.name})
        steps = 1 + 2 * ITEMS // 50
        process = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", KILLED_AT, "import", "all", str(file), str(steps)],
            env=environment(**_variables(filled)), cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert process.returncode == -signal.SIGKILL, process.stderr
        layout = await other.get(LAYOUT.at(), consistent=True)
        assert layout is not None
        assert layout.imported_items == ITEMS
        refused = await asyncio.to_thread(ringside, "table", "check", **_variables(filled))
        assert "is being filled by" in refused.stderr
        imported = await asyncio.to_thread(ringside, "import", "all", str(file), **_variables(filled))
        assert imported.returncode == 0, imported.stderr
        checked = await asyncio.to_thread(ringside, "table", "check", **_variables(filled))
        assert checked.returncode == 0, checked.stderr


async def _kill_export(file: Path, variables: Mapping[str, str], steps: int = 3) -> None:
    killed = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED_AT, "export", "all", str(file), str(steps)],
        env=environment(**variables), cwd=ROOT, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL


async def test_what_a_killed_export_left_is_not_taken_for_another_table(tmp_path: Path) -> None:
    """Nor for a table of another layout."""
    engine_program("dynoxide", tmp_path)
    file = tmp_path / "file"
    for name in ("first", "second"):
        async with run_engine_async(tmp_path / name) as engine, open_table("ringside", url=engine.url) as table:
            await create(table)
            await table.write(LAYOUT.put(Layout(CURRENT_LAYOUT + 1)))
            await _fill(table, name)
    variables = {"RINGSIDE_DATA": str(tmp_path / "first")}
    refused = await asyncio.to_thread(ringside, "export", "all", str(file), **variables)
    assert f"has layout {CURRENT_LAYOUT + 1}" in refused.stderr
    for name in ("first", "second"):
        async with run_engine_async(tmp_path / name) as engine, open_table("ringside", url=engine.url) as table:
            await table.write(LAYOUT.put(Layout(CURRENT_LAYOUT)))
    await _kill_export(file, variables)
    exported = await asyncio.to_thread(ringside, "export", "all", str(file), RINGSIDE_DATA=str(tmp_path / "second"))
    assert exported.returncode == 0
    lines = gzip.decompress(file.read_bytes()).splitlines()
    assert len(lines) == ITEMS + 2
    assert all(b"second#" in line for line in lines[1:-1])


async def test_an_export_that_begins_with_a_new_copy_keeps_nothing_of_the_old_one(tmp_path: Path) -> None:
    """The export is of one moment, not of both."""
    engine_program("dynoxide", tmp_path)
    data, file = tmp_path / "data", tmp_path / "file"
    variables = {"RINGSIDE_DATA": str(data)}
    for value in ("old", "new"):
        async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
            await create(table)
            await ensure_layout(table)
            await _fill(table, value=value)
        if value == "old":
            await _kill_export(file, variables)
    exported = await asyncio.to_thread(ringside, "export", "all", str(file), **variables)
    assert exported.returncode == 0, exported.stderr
    lines = gzip.decompress(file.read_bytes()).splitlines()
    assert [b'"new"' in line for line in lines if b"ITEM#" in line] == [True] * ITEMS


@pytest.mark.soak
async def test_a_copy_that_is_killed_goes_on(
    default_engine: RunningEngine, one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """From the embedded engine to another one: both are equal in the end, and nothing is left behind."""
    engine_program("dynoxide", tmp_path)
    data, state = tmp_path / "data", tmp_path / "state"
    async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
        await create(table)
        await ensure_layout(table)
        await _fill(table)
    variables = {**_variables(settings), "RINGSIDE_DATA": str(state)}
    arguments = ("copy", "--from", f"embedded:{data}#ringside", "--to", default_engine.url)
    assert await _run_until_it_survives(variables, Random(3), *arguments) > 0
    assert list(state.iterdir()) == []
    await _export(Settings(data=data, secrets=(SECRET,)), tmp_path / "old")
    await _export(settings, tmp_path / "new")
    assert (tmp_path / "old").read_bytes() == (tmp_path / "new").read_bytes()
    assert sum([len(rows) async for rows, _ in whole_table.read_pages(one_table)]) == ITEMS


@pytest.mark.parametrize("seed", range(3))
async def test_a_move_gets_through_an_engine_that_throttles_and_fails(
    seed: int, default_engine: RunningEngine, one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """A third of all calls fail, or are done in part: no item is lost, none is read twice."""
    await _fill(one_table)
    await _export(settings, tmp_path / "whole")
    async with (
        Proxy(default_engine.url, seed=seed, fault_rate=0.3, max_delay=0.01) as proxy,
        create_table(f"ringside-{uuid4().hex[:16]}", default_engine.url) as plain,
        open_table(plain.name, url=proxy.url) as other,
    ):
        unreliable = RunningEngine("unreliable", proxy.url)
        for operation in ("Scan", "BatchWriteItem", "BatchGetItem"):
            proxy.inject(Fault.SHORT, operation)
            proxy.inject(Fault.THROTTLED, operation)
        await _export(settings_for(unreliable, one_table.name), tmp_path / "file")
        await _import(other, tmp_path / "file")
        assert {Fault.THROTTLED, Fault.SHORT} <= proxy.faults.keys()
        proxy.fault_rate = 0
        await _export(settings_for(unreliable, other.name), tmp_path / "again")
    whole = (tmp_path / "whole").read_bytes()
    assert (tmp_path / "file").read_bytes() == whole
    assert (tmp_path / "again").read_bytes() == whole


async def test_an_import_whose_answers_are_lost_is_not_taken_for_another_run(
    default_engine: RunningEngine, one_table: Table, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning, its later positions and its end are written, and written again since no answer came."""
    await _fill(one_table)
    await _export(settings, tmp_path / "whole")
    monkeypatch.setattr(commands.TableStore, "at_once", ITEMS // 4)
    async with (
        Proxy(default_engine.url) as proxy,
        create_table(f"ringside-{uuid4().hex[:16]}", default_engine.url) as plain,
        open_table(plain.name, url=proxy.url) as other,
    ):

        def lose_the_next(*_: Any, **__: Any) -> None:
            proxy.clear_injected()
            proxy.inject(Fault.RESET_AFTER, "PutItem")

        with open_export(tmp_path / "whole", lose_the_next) as (source, end):
            await import_table(other, source, end, lose_the_next)
        assert proxy.faults[Fault.RESET_AFTER] == 5
        assert await other.get(LAYOUT.at(), consistent=True) == Layout(CURRENT_LAYOUT, imported=end.sha256)
