"""The whole table moves: exported, imported, copied between engines, with every value as it was, or refused."""

import asyncio
import gzip
import io
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from datastore.dynamo import Table, open_table
from datastore.dynamo.declaration import create
from datastore.whole import table as whole_table
from datastore.whole.layout import CURRENT_LAYOUT, LAYOUT, Layout, ensure_layout
from datastore.whole.table import ImportRefused
from resolvers.transfer.readers import Unreadable
from server import Failed, audit, demo
from server.commands import whole_table as commands
from server.commands.export_file import End, ExportReader, at_place, identity
from server.commands.whole_table import copy, export_table, import_table, open_export, open_spool
from server.engine import run_engine_async, table_file
from server.engine.table import UnusableTable
from server.settings import Settings
from tests.backups import counted, counting_writers
from tests.client import Client, serving
from tests.command import ROOT, environment, on_table, ringside
from tests.conftest import create_table, settings_for
from tests.data_folders import refused_on, write_profiles
from tests.engines import RunningEngine, running_engine
from tests.service import start_service
from tests.voting import settle_votes
from tests.waiting import until
from tests.writers import writers

SECRET = "a secret without a comma that signs nothing"
ODD: list[dict[str, Any]] = [
    {"n": {"N": "12345678901234567890123456789012345678"}, "small": {"N": "-1.5E-100"}, "large": {"N": "9.9E+125"}},
    {"n": {"N": "1.50"}, "zero": {"N": "-0.00"}, "binary": {"B": bytes(range(256))}, "empty": {"B": b""}},
    {"texts": {"SS": ["b", "a", "é"]}, "numbers": {"NS": ["10", "9", "1E2"]}, "parts": {"BS": [b"\xff", b"\x00"]}},
    {"list": {"L": []}, "map": {"M": {}}, "text": {"S": ""}, "nothing": {"NULL": True}, "true": {"BOOL": True}},
    {"deep": {"M": {"B": {"B": b"x"}, "L": {"L": [{"M": {"N": {"N": "007"}}}, {"S": "\u0000\u2028𝄞"}]}}}},
    {"long": {"S": "é" * 100_000}},
    {"ttl": {"N": "4102444800"}, "gsi1pk": {"S": "G"}, "gsi1sk": {"S": "1"}},
]


def _nothing(*_: Any, **__: Any) -> None: ...


async def _put_odd(table: Table) -> None:
    for number, item in enumerate(ODD):
        key = {"pk": {"S": f"ODD#{number % 3}"}, "sk": {"S": f"{number} \u00e9"}}
        await table.client.put_item(TableName=table.name, Item={**key, **item})


async def _export(settings: Settings, file: Path) -> End:
    return await asyncio.to_thread(export_table, settings, file, _nothing)


async def _import(table: Table, file: Path) -> None:
    with open_export(file, _nothing) as (source, end):
        await import_table(table, source, end, _nothing)


async def _count(table: Table) -> int:
    return sum([len(rows) async for rows, _ in whole_table.read_pages(table)])


@asynccontextmanager
async def _another(url: str) -> AsyncIterator[Table]:
    async with create_table(f"ringside-{uuid4().hex[:16]}", url) as table:
        yield table


def _run(settings: Settings, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return ringside(
        *arguments,
        **on_table(
            settings.dynamodb_url,
            settings.table,
            RINGSIDE_SECRETS=SECRET,
            RINGSIDE_DATA=f"{settings.data}",
            **variables,
        ),
    )


def _failure(settings: Settings, *arguments: str, **variables: str) -> str:
    result = _run(settings, *arguments, **variables)
    assert result.returncode == 1, result.stdout
    assert "Traceback" not in result.stderr
    return result.stderr


# ── what is moved ──


@pytest.mark.every_engine
async def test_every_kind_of_value_makes_the_round_trip(engine: RunningEngine, table: Table, tmp_path: Path) -> None:
    """Exported, imported and exported again: the same bytes, and the same items in the indexes."""
    await _put_odd(table)
    first, second = tmp_path / "first", tmp_path / "second"
    end = await _export(settings_for(engine, table.name), first)
    assert (end.items, end.changed) == (len(ODD), 0)
    assert not first.with_name("first.part").exists()
    assert first.stat().st_mode & 0o777 == 0o600
    async with _another(engine.url) as other:
        await _import(other, first)
        await _export(settings_for(engine, other.name), second)
        stored = await other.client.get_item(
            TableName=other.name, Key={"pk": {"S": "ODD#1"}, "sk": {"S": "1 \u00e9"}}, ConsistentRead=True
        )
    assert first.read_bytes() == second.read_bytes()
    assert stored["Item"]["binary"] == {"B": bytes(range(256))}


@pytest.mark.soak
async def test_a_table_moves_to_another_engine_and_back_unchanged(tmp_path: Path) -> None:
    """Embedded, DynamoDB Local, embedded: exports of all three are the same bytes, and each passes the audit."""
    folders = [tmp_path / "first", tmp_path / "last"]
    files = [tmp_path / f"{number}.export" for number in range(3)]
    with ExitStack() as stack:
        (tmp_path / "local").mkdir()
        local = stack.enter_context(running_engine("dynamodb-local", tmp_path / "local"))
        old, new = (Settings(data=folder, secrets=(SECRET,)) for folder in folders)
        middle = settings_for(local, "ringside", data=tmp_path / "state")
        async with run_engine_async(folders[0]) as embedded, open_table("ringside", url=embedded.url) as table:
            await create(table)
            await ensure_layout(table)
            await _put_odd(table)
            async with serving(settings_for(RunningEngine("dynoxide", embedded.url), "ringside")) as client:
                async for _ in demo.seed(client.services):
                    pass
        async with open_table("ringside", url=local.url) as table:
            await create(table)
        copies = [
            ("--from", f"embedded:{folders[0]}", "--to", local.url),
            ("--from", f"{local.url}#ringside", "--to", f"embedded:{folders[1]}"),
        ]
        for arguments in copies:
            copied = await asyncio.to_thread(_run, middle, "copy", *arguments)
            assert copied.returncode == 0, copied.stderr
        for settings, file in zip((old, middle, new), files, strict=True):
            assert (await _export(settings, file)).changed == 0
    assert files[0].read_bytes() == files[1].read_bytes() == files[2].read_bytes()
    assert list((tmp_path / "state").iterdir()) == []


async def test_an_export_and_an_import_through_pipes(
    default_engine: RunningEngine, one_table: Table, settings: Settings
) -> None:
    """`-` is standard output and input; the import audits the table."""
    await _put_odd(one_table)
    command = [sys.executable, "-m", "server"]
    variables = {"RINGSIDE_DYNAMODB_URL": default_engine.url, "RINGSIDE_SECRETS": SECRET}
    exported = await asyncio.to_thread(
        subprocess.run, [*command, "export", "all", "-"], env=environment(**variables, RINGSIDE_TABLE=settings.table),
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    assert b"7 items written" in exported.stderr
    async with _another(default_engine.url) as other:
        imported = await asyncio.to_thread(
            subprocess.run, [*command, "import", "all", "-"], env=environment(**variables, RINGSIDE_TABLE=other.name),
            cwd=ROOT, input=exported.stdout, capture_output=True, check=True,
        )  # fmt: skip
        assert b"holds the 7 items" in imported.stdout
        assert await _count(other) == len(ODD)
        assert (await other.get(LAYOUT.at(), consistent=True)) == Layout(
            CURRENT_LAYOUT, imported=_checksum(exported.stdout)
        )


def _checksum(content: bytes) -> str:
    return gzip.decompress(content).splitlines()[-1].split(b'"')[-2].decode()


# ── beside writers ──


@pytest.mark.parametrize("place", [0, 4096 * 3])
async def test_an_export_of_a_damaged_table_names_the_table_s_file(tmp_path: Path, place: int) -> None:
    """Not its own copy of it, of which nothing is to be restored or moved away: as if that could not be kept."""
    data = tmp_path / "data"
    await write_profiles(data, *(f"user-{number}" for number in range(200)))
    with closing(sqlite3.connect(table_file(data))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = table_file(data).read_bytes()
    table_file(data).write_bytes(whole[:place] + bytes(20_000) + whole[place + 20_000 :])
    refused = await asyncio.to_thread(refused_on, data, "export", "all", str(tmp_path / "export"))
    assert str(table_file(data)) in "".join(refused.split())
    assert "damaged" in refused


async def test_an_export_of_the_embedded_engine_beside_writers_is_of_one_moment(tmp_path: Path) -> None:
    """No transaction is half in it, and it says that nothing changed."""
    data, file = tmp_path / "data", tmp_path / "export"
    async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
        await create(table)
        await ensure_layout(table)
        async with counting_writers(table) as done:
            acknowledged = sum(done)
            end = await _export(Settings(data=data, secrets=(SECRET,)), file)
        async with _another(engine.url) as other:
            await _import(other, file)
            said, found = await counted(other)
    assert end.changed == 0
    assert said == found >= acknowledged


async def passes_the_audit(client: Client) -> bool:
    return await audit.find_breaches(client.services) == []


async def test_an_export_beside_members_passes_the_audit(tmp_path: Path) -> None:
    """Votes, comments, edits and predictions go on while the embedded engine's table is exported, several times."""
    data, files = tmp_path / "data", [tmp_path / f"{number}.export" for number in range(3)]
    async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
        await create(table)
        await ensure_layout(table)
        running = RunningEngine("dynoxide", engine.url)
        async with serving(settings_for(running, "ringside")) as client, writers(client):
            for file in files:
                await _export(Settings(data=data, secrets=(SECRET,)), file)
        for file in files:
            async with _another(engine.url) as other:
                await _import(other, file)
                assert await _count(other) > 0
                async with serving(settings_for(running, other.name)) as imported:
                    await settle_votes(imported)
                    await until(partial(passes_the_audit, imported), "the audit finds nothing once all is settled")


async def test_an_export_of_another_engine_says_what_changed_meanwhile(
    default_engine: RunningEngine, one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """Beside writers it is not of one moment, and says so; once they pause it is."""

    async def torn() -> bool:
        said = await asyncio.to_thread(_run, settings, "export", "all", str(tmp_path / "torn"))
        restored = "RestoreTableToPointInTime" in said.stderr
        assert ("items were written while the table was read" in said.stderr) is restored
        return restored

    async with counting_writers(one_table):
        await until(torn, "the writers had their turn during an export")
    with open_export(tmp_path / "torn", _nothing) as (_, end):
        assert end.changed > 0
    assert (await _export(settings, tmp_path / "still")).changed == 0
    async with _another(default_engine.url) as other:
        await _import(other, tmp_path / "still")
        said, found = await counted(other)
        assert said == found > 0


async def test_writers_that_pause_during_an_export_leave_it_of_one_moment(
    one_table: Table, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first pass saw too early, a later one corrects: changed, new and removed items."""
    await _put_odd(one_table)
    passes: list[int] = []
    original = whole_table.read_pages

    async def change_after_the_first(table: Table, start: bytes | None) -> AsyncIterator[Any]:
        async for page in original(table, start):
            yield page
        passes.append(len(passes))
        if len(passes) == 1:
            await change(table)

    async def change(table: Table) -> None:
        removed = {"pk": {"S": "ODD#0"}, "sk": {"S": "0 \u00e9"}}
        await table.client.delete_item(TableName=table.name, Key=removed)
        for key in ({"pk": {"S": "ODD#1"}, "sk": {"S": "1 \u00e9"}}, {"pk": {"S": "new"}, "sk": {"S": "new"}}):
            await table.client.put_item(TableName=table.name, Item=key)

    monkeypatch.setattr(commands, "read_pages", change_after_the_first)
    end = await _export(settings, tmp_path / "export")
    assert (end.items, end.changed) == (len(ODD), 0)
    assert len(passes) == 3
    monkeypatch.undo()
    await _export(settings, tmp_path / "again")
    assert (tmp_path / "export").read_bytes() == (tmp_path / "again").read_bytes()


async def test_an_item_whose_time_is_over_may_go_at_any_time(
    one_table: Table, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine removes it between two passes, or from the table that is filled: neither is a change."""
    key = {"pk": {"S": "OLD"}, "sk": {"S": "OLD"}}
    for item in ({**key, "ttl": {"N": "1000000000"}}, {"pk": {"S": "A"}, "sk": {"S": "A"}}):
        await one_table.client.put_item(TableName=one_table.name, Item=item)
    await _export(settings, tmp_path / "with")
    original = whole_table.read_pages

    async def remove_after_the_first(table: Table, start: bytes | None) -> AsyncIterator[Any]:
        async for page in original(table, start):
            yield page
        await table.client.delete_item(TableName=table.name, Key=key)

    monkeypatch.setattr(commands, "read_pages", remove_after_the_first)
    end = await _export(settings, tmp_path / "without")
    assert end.changed == 0
    async with _another(settings.dynamodb_url) as other:
        original_write = whole_table.write_lines

        async def remove_at_once(table: Table, rows: Any, **how: bool) -> None:
            await original_write(table, rows, **how)
            await table.client.delete_item(TableName=table.name, Key=key)

        monkeypatch.setattr(whole_table, "write_lines", remove_at_once)
        await _import(other, tmp_path / "with")
        assert await _count(other) == 1


# ── what is refused ──


async def test_an_import_into_a_table_with_something_else_is_refused(
    one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """Nothing is written; the same file into the table that it filled is no harm."""
    await _put_odd(one_table)
    file = tmp_path / "export"
    await _export(settings, file)
    assert "is not empty" in await asyncio.to_thread(_failure, settings, "import", "all", str(file))
    assert await one_table.get(LAYOUT.at(), consistent=True) == Layout(CURRENT_LAYOUT)
    async with _another(settings.dynamodb_url) as other:
        await _import(other, file)
        await _import(other, file)
        await one_table.client.put_item(TableName=one_table.name, Item={"pk": {"S": "more"}, "sk": {"S": "more"}})
        await _export(settings, tmp_path / "another")
        with pytest.raises(ImportRefused, match="is not empty"):
            await _import(other, tmp_path / "another")


async def test_a_table_filled_in_part_is_not_served_and_takes_no_other_import(
    one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """By the service and by commands; the message says what to do."""
    await _put_odd(one_table)
    file = tmp_path / "export"
    await _export(settings, file)
    async with _another(settings.dynamodb_url) as other:
        await whole_table.begin_import(other, "another one")
        filling = settings.model_copy(update={"table": other.name})
        for command in (("table", "check"), ("serve", "--port", "0"), ("audit",)):
            assert "is being filled by" in await asyncio.to_thread(_failure, filling, *command)
        message = await asyncio.to_thread(_failure, filling, "export", "all", str(tmp_path / "part"))
        assert "is being filled by" in message
        message = await asyncio.to_thread(_failure, filling, "import", "all", str(file))
        assert "filled in part from another export" in message


@pytest.mark.parametrize(
    ("operation", "limit", "when"),
    [
        ("scan", 10, "after"),
        ("transact_write_items", None, "after"),
        ("scan", whole_table.PAGE, "after"),
        ("scan", whole_table.PAGE, "before"),
    ],
)
async def test_an_import_that_stalled_changes_nothing_after_another_run_of_it_completed(
    one_table: Table, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str,
    limit: int | None, when: str,
) -> None:  # fmt: skip
    """At its beginning, in a chunk, or while it compares: it stops and says so. What was written since stays."""
    await _put_odd(one_table)
    file = tmp_path / "export"
    await _export(settings, file)
    monkeypatch.setattr(commands.TableStore, "at_once", 2)
    last = {"pk": {"S": "ODD#2"}, "sk": {"S": "5 \u00e9"}}
    async with _another(settings.dynamodb_url) as other:
        call, stalls = getattr(other.client, operation), list[Any]()

        async def stall(**request: Any) -> Any:
            answer = await call(**request) if when == "after" else None
            if not stalls and request.get("Limit") == limit:
                stalls.append(request)
                await _import(other, file)
                await other.client.put_item(TableName=other.name, Item={**last, "new": {"BOOL": True}})
            return answer or await call(**request)

        setattr(other.client, operation, stall)
        with pytest.raises(ImportRefused, match="Another"):
            await _import(other, file)
        stored = await other.client.get_item(TableName=other.name, Key=last, ConsistentRead=True)
        assert stored["Item"] == {**last, "new": {"BOOL": True}}
        layout = await other.get(LAYOUT.at(), consistent=True)
        assert layout is not None
        assert layout.imported_items is None


async def test_a_damaged_file_is_refused_before_anything_is_written(
    one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """A cut and an altered one, one of another layout, and what is no export; each named with its place."""
    await _put_odd(one_table)
    file, bad = tmp_path / "export", tmp_path / "bad"
    await _export(settings, file)
    whole = file.read_bytes()
    lines = gzip.decompress(whole).splitlines(keepends=True)
    other_layout = gzip.compress(b"".join([re.sub(rb'"layout":\d+', b'"layout":2', lines[0]), *lines[1:]]))
    async with _another(settings.dynamodb_url) as other:
        empty = settings.model_copy(update={"table": other.name})
        for content, message in (
            (whole[:-20], "is incomplete"),
            (gzip.compress(b"".join([*lines[:3], *lines[4:]])), "line 8: it has 6 items"),
            (other_layout, "a table of layout 2"),
            (b"hello", "is not an export"),
            (b"", "is empty"),
        ):
            bad.write_bytes(content)
            assert message in await asyncio.to_thread(_failure, empty, "import", "all", str(bad))
        assert "cannot be read" in await asyncio.to_thread(_failure, empty, "import", "all", str(tmp_path / "none"))
        assert await other.get(LAYOUT.at(), consistent=True) == Layout(CURRENT_LAYOUT)
        assert await _count(other) == 0


async def test_a_table_that_somebody_writes_to_is_not_taken_for_the_export(
    one_table: Table, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item that is another one, and one too many: the import fails, and the table is not served."""
    await _put_odd(one_table)
    file = tmp_path / "export"
    await _export(settings, file)
    original = whole_table.write_lines
    for item, message in (
        ({"pk": {"S": "ODD#0"}, "sk": {"S": "0 \u00e9"}}, "some of its 7 items are different"),
        ({"pk": {"S": "more"}, "sk": {"S": "more"}}, "it has 8 items, and the export has 7"),
    ):

        async def write_more(table: Table, rows: Any, item: Any = item, **how: bool) -> None:
            await original(table, rows, **how)
            await table.client.put_item(TableName=table.name, Item=item)

        async with _another(settings.dynamodb_url) as other:
            monkeypatch.setattr(whole_table, "write_lines", write_more)
            with pytest.raises(Failed, match=message):
                await _import(other, file)
            layout = await other.get(LAYOUT.at(), consistent=True)
            assert layout is not None
            assert layout.imported_items == len(ODD)


async def test_an_export_never_replaces_a_file_of_another_kind(
    one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """An older export is replaced by a whole one; two exports do not write one file."""
    await _put_odd(one_table)
    file = tmp_path / "export"
    file.write_text("mine")
    with pytest.raises(Failed, match="exists and is not an export"):
        await _export(settings, file)
    assert file.read_text() == "mine"
    with pytest.raises(Failed, match="cannot be written"):
        await _export(settings, tmp_path / "none" / "export")
    file.unlink()
    await _export(settings, file)
    first = file.read_bytes()
    (tmp_path / "export.part").mkdir()
    with open_spool(tmp_path / "export.part" / "rows"):
        assert "Another export" in await asyncio.to_thread(_failure, settings, "export", "all", str(file))
    assert file.read_bytes() == first
    await one_table.client.put_item(TableName=one_table.name, Item={"pk": {"S": "more"}, "sk": {"S": "more"}})
    assert (await _export(settings, file)).items == len(ODD) + 1


async def test_a_copy_is_refused_where_it_would_do_harm(
    one_table: Table, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Onto itself, onto a table with something else, onto a served one, from nowhere, with a wrong URL or no folder."""
    await _put_odd(one_table)
    url, data = settings.dynamodb_url, tmp_path / "data"
    monkeypatch.setenv("RINGSIDE_DYNAMODB_URL", url)
    monkeypatch.setenv("RINGSIDE_TABLE", settings.table)
    monkeypatch.setenv("RINGSIDE_SECRETS", SECRET)
    monkeypatch.setenv("RINGSIDE_DATA", f"{tmp_path / 'state'}")
    async with _another(url) as other:
        for source, target, message in (
            (url, f"{url}#{settings.table}", "are the same table"),
            (f"embedded:{data}", f"embedded:{tmp_path}/./data", "are the same table"),
            (f"embedded:{data}", f"{url}", "is not empty"),
            (url, "ftp://nowhere", "is not the URL of a table"),
            (url, f"{url}#a", "does not name a table"),
            ("", url, "is not the URL of a table"),
            (url, f"{url}#missing-table", "table create"),
            (f"embedded:{data}", f"{url}#{other.name}", f"There is no table in {data}.*in a copy's URL"),
        ):
            with pytest.raises((Failed, ImportRefused, UnusableTable), match=message):
                await asyncio.to_thread(copy, source, target)
        with monkeypatch.context() as patched:
            patched.setattr("server.engine.table.START_SECONDS", 1.0)
            with pytest.raises(UnusableTable, match=r"The engine at http://127.0.0.1:1 did not answer .* a copy's URL"):
                await asyncio.to_thread(copy, url, "http://127.0.0.1:1")
        (tmp_path / "a file").touch()
        monkeypatch.setenv("RINGSIDE_DATA", f"{tmp_path / 'a file'}")
        with pytest.raises(Failed, match=r"What is copied cannot be kept in .*: Not a directory\. Set RINGSIDE_DATA"):
            await asyncio.to_thread(copy, url, f"{url}#{other.name}")
    monkeypatch.setenv("RINGSIDE_DATA", f"{tmp_path / 'state'}")
    with ExitStack() as stack:
        await start_service({"RINGSIDE_DATA": str(data)}, stack)
        with pytest.raises(Failed, match="Stop that process first"):
            await asyncio.to_thread(copy, url, f"embedded:{data}")


LARGE_TABLE = """
from server.engine import folder

folder.CHECK_SECONDS, folder._STEPS = 0.0, 1

from server.__main__ import main
main()
"""
"""The command line on a table's file of which there is no time to check all."""


async def test_what_a_command_logs_is_no_part_of_what_it_writes_to_standard_output(tmp_path: Path) -> None:
    """An export of a large table through a pipe begins with the export, not with a line about the table's file."""
    await write_profiles(tmp_path, "ada")
    command = [sys.executable, "-c", LARGE_TABLE, "export", "all", "-"]
    process = await asyncio.create_subprocess_exec(
        *command, env=environment(RINGSIDE_DATA=str(tmp_path)), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    exported, logged = await process.communicate()
    assert b"only a part of it was checked" in logged
    assert list(ExportReader(io.BytesIO(exported), "FILE").rows()) != []


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("embedded", "embedded:{data}#ringside"),
        ("EMBEDDED#other", "embedded:{data}#other"),
        ("embedded:/srv/a b", "embedded:/srv/a b#ringside"),
        ("embedded:/srv/a#other", "embedded:/srv/a#other"),
        ("aws", "aws#ringside"),
        ("aws#other", "aws#other"),
        ("http://127.0.0.1:8001", "http://127.0.0.1:8001#ringside"),
        ("http://127.0.0.1:8001/#other", "http://127.0.0.1:8001#other"),
    ],
)
def test_the_urls_of_a_copy(url: str, place: str, tmp_path: Path) -> None:
    """As the settings write them, with a folder or a table's name."""
    settings = Settings(data=tmp_path, secrets=(SECRET,))
    assert identity(at_place(settings, url)) == place.format(data=tmp_path.resolve())


def test_a_file_with_an_endless_line_does_not_fill_the_memory() -> None:
    """Nor does a small file that decompresses to a large one."""
    with pytest.raises(Unreadable, match="longer than"):
        list(ExportReader(io.BytesIO(gzip.compress(bytes(50_000_000))), "FILE").rows())
