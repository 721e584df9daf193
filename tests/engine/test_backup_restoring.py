"""Restoring a backup of the embedded engine: the whole table or nothing, also when it is killed."""

import asyncio
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from datastore.dynamo import open_table
from datastore.dynamo.declaration import create
from datastore.whole.layout import LAYOUT, Layout
from server.engine import back_up, backup, run_engine_async, table_file
from server.engine.backup import BackupFailed, staged_copy
from server.engine.folder import complete_restore
from tests.command import ROOT, environment
from tests.data_folders import KILLED_AT, damage, read_profiles, refused_on, run_on, run_script, write_profiles

SLOW_CHECK = """
import signal, time
from server.engine import backup

signal.signal(signal.SIGINT, signal.default_int_handler)  # which is ignored in what a script starts beside itself
check = backup.check_backup
def slow(*given):
    print("checking", flush=True)
    time.sleep(60)
    check(*given)
backup.check_backup = slow

from server.__main__ import main
main()
"""
"""The command line with a backup whose check takes longer than a test waits to interrupt it."""

INTERRUPTED_CHECK = """
import signal
from server.engine import backup, folder

signal.signal(signal.SIGINT, signal.default_int_handler)
folder._STEPS = 1
find, signals = backup.find_damage, [signal.SIGINT]
def interrupted(file, stops=folder.never):
    def stops_or_signal():
        if signals:
            signal.raise_signal(signals.pop())
        return stops()
    return find(file, stops=stops_or_signal)
backup.find_damage = interrupted

from server.__main__ import main
main()
"""
"""The command line, interrupted while SQLite checks a backup."""

KILLED_WRITER = """
import os, signal, sqlite3, sys

file, mode = sys.argv[1:]
connection = sqlite3.connect(file, isolation_level=None)
connection.execute(f"PRAGMA journal_mode = {mode}")
connection.execute("PRAGMA wal_autocheckpoint = 0")
connection.execute("PRAGMA cache_size = 2")  # so that pages are written before the commit
connection.execute("CREATE TABLE more (text)")
connection.execute("BEGIN")
connection.executemany("INSERT INTO more VALUES (?)", [("x" * 3000,)] * 200)
if mode == "WAL":
    connection.execute("COMMIT")
os.kill(os.getpid(), signal.SIGKILL)
"""
"""Leaves 200 rows in the log only, or a journal of rows that were not committed."""

WITHOUT_DYNOXIDE = """
from pathlib import Path
from server.engine import process as programs
programs.CHECKOUT = Path("nowhere")

from server.__main__ import main
main()
"""
"""The command line on a machine on which nothing is installed but Ringside."""


async def test_a_damaged_cut_or_foreign_file_is_not_restored(data: Path, tmp_path: Path) -> None:
    """The table stays as it is."""
    await write_profiles(data, *(f"user-{number}" for number in range(200)))
    good = tmp_path / "good"
    back_up(data, good)
    bad = {name: tmp_path / name for name in ("damaged", "cut", "empty", "text", "foreign", "without", "newer")}
    bad["damaged"].write_bytes(good.read_bytes())
    damage(bad["damaged"])
    bad["cut"].write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    bad["empty"].touch()
    bad["text"].write_text("SQLite")
    with closing(sqlite3.connect(bad["foreign"])) as connection:
        connection.execute("CREATE TABLE words (word TEXT)")
    await _make_backup(tmp_path / "w", bad["without"], "another")
    await _make_backup(tmp_path / "n", bad["newer"], "ringside", Layout(99))
    other = tmp_path / "other"
    shutil.copy(table_file(data), other)
    bad["raw"] = other
    messages = {
        "damaged": "its checksum is of another content", "without": "cannot be used", "newer": "has layout 99",
        **dict.fromkeys(("cut", "empty", "text", "foreign", "raw"), "not a whole backup by `ringside backup`"),
    }  # fmt: skip
    for name, message in messages.items():
        assert message in await asyncio.to_thread(refused_on, data, "restore", str(bad[name])), name
    assert "There is no file" in await asyncio.to_thread(refused_on, data, "restore", str(tmp_path / "none"))
    assert len(await read_profiles(data)) == 200
    assert not (data / "replaced").exists()
    assert not (data / "restoring").exists()


async def test_a_backup_with_any_bit_changed_is_not_restored(data: Path, tmp_path: Path) -> None:
    """Wherever it is, in the checksum too; nor is one that was cut or has grown by a byte."""
    await write_profiles(data, "ada")
    good, bad = tmp_path / "good", tmp_path / "bad"
    back_up(data, good)
    whole = good.read_bytes()
    line = len(whole) - backup._CHECKSUM_SIZE
    anywhere = random.Random(35)
    positions = [*range(100), *(anywhere.randrange(line) for _ in range(400)), *range(line, len(whole))]
    for position in positions:
        changed = bytearray(whole)
        changed[position] ^= 1 << anywhere.randrange(8)
        bad.write_bytes(changed)
        _assert_refused(data, bad)
    for bit in range(8 * backup._CHECKSUM_SIZE):
        changed = bytearray(whole)
        changed[line + bit // 8] ^= 1 << bit % 8
        bad.write_bytes(changed)
        _assert_refused(data, bad)
    ends = (whole[-line:], whole[:line], *(whole[:size] for size in (0, 1, 50, 4096, line + 1, len(whole) - 1)))
    for content in (*ends, whole + b"\n", whole + whole[line:], whole[:4096] + whole[8192:]):
        bad.write_bytes(content)
        _assert_refused(data, bad)
    with staged_copy(data, good) as folder:
        assert table_file(folder).read_bytes() == whole[:line]


def _assert_refused(data: Path, file: Path) -> None:
    with pytest.raises(BackupFailed), staged_copy(data, file):
        pass
    assert not (data / "restoring").exists()


async def test_a_backup_of_which_a_letter_was_changed_is_not_restored(data: Path, tmp_path: Path) -> None:
    """SQLite finds nothing wrong with it."""
    await write_profiles(data, "ada")
    file = tmp_path / "backup"
    back_up(data, file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert file.read_bytes().count(b"ada") > 2
    file.write_bytes(file.read_bytes().replace(b"ada", b"eve"))
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert "its checksum is of another content" in await asyncio.to_thread(refused_on, data, "restore", str(file))
    assert await read_profiles(data) == ["ada"]


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("trigger", 'CREATE TRIGGER added AFTER INSERT ON "ringside" BEGIN DELETE FROM "ringside"; END'),
        ("view", "CREATE VIEW added AS SELECT 1"),
        ("table", "CREATE VIRTUAL TABLE added USING fts5(text)"),
    ],
)
async def test_a_backup_with_what_the_engine_did_not_make_is_not_restored(
    data: Path, tmp_path: Path, kind: str, statement: str
) -> None:
    """Even with a correct checksum: with a trigger the service would confirm writes that are gone."""
    await write_profiles(data, "ada")
    file = tmp_path / "backup"
    back_up(data, file)
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size - backup._CHECKSUM_SIZE)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(statement)
    backup._append_checksum(file)
    refusal = await asyncio.to_thread(refused_on, data, "restore", str(file), COLUMNS="1000")
    assert f"has a {kind} 'added' that the engine did not make" in refusal
    assert await read_profiles(data) == ["ada"]


async def _make_backup(data: Path, file: Path, table_name: str, layout: Layout | None = None) -> None:
    async with run_engine_async(data) as engine, open_table(table_name, url=engine.url) as table:
        await create(table)
        if layout:
            await table.write(LAYOUT.put(layout))
    back_up(data, file)


@pytest.mark.soak
async def test_a_restore_that_is_killed_leaves_the_old_table_or_the_new_one(data: Path, tmp_path: Path) -> None:
    """Killed before each of its steps in turn. The next start finishes what was begun, or nothing has changed."""
    await write_profiles(data, "new")
    file = tmp_path / "backup"
    back_up(data, file)
    await write_profiles(data, "newer")
    kills, seen = 0, set()
    for step in range(60):
        copy = tmp_path / f"copy-{step}"
        await asyncio.to_thread(subprocess.run, ["cp", "-r", str(data), str(copy)], check=True)
        process = await asyncio.to_thread(run_script, KILLED_AT, copy, "restore", str(file), str(step))
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, process.stderr
        kills += 1
        seen.add(tuple(await read_profiles(copy)))
    assert kills > 8
    assert seen == {("new",), ("new", "newer")}


async def test_a_restore_that_is_killed_and_run_again_loses_no_table(data: Path, tmp_path: Path) -> None:
    """Killed before every third of its steps: the table of before is kept, with what is in its log only."""
    await write_profiles(data, "new")
    back_up(data, tmp_path / "backup")
    await write_profiles(data, "newer")
    await _killed_writer(data, "WAL")
    for step in range(0, 60, 3):
        copy = tmp_path / f"copy-{step}"
        await asyncio.to_thread(subprocess.run, ["cp", "-r", str(data), str(copy)], check=True)
        killed = await asyncio.to_thread(run_script, KILLED_AT, copy, "restore", str(tmp_path / "backup"), str(step))
        again = await asyncio.to_thread(run_on, copy, "restore", str(tmp_path / "backup"))
        assert again.returncode == 0, again.stderr
        assert await read_profiles(copy) == ["new"], step
        assert ["new", "newer"] in [await _replaced(folder) for folder in (copy / "replaced").iterdir()], step
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL, killed.stderr


async def _replaced(folder: Path) -> list[str]:
    """The profiles in a replaced table, if it has the rows of `KILLED_WRITER`."""
    if not table_file(folder).exists():
        return []
    with closing(sqlite3.connect(table_file(folder))) as connection:
        has_rows = connection.execute("SELECT name FROM sqlite_master WHERE name = 'more'").fetchone()
        assert not has_rows or connection.execute("SELECT count(*) FROM more").fetchone() == (200,)
    return await read_profiles(folder) if has_rows else []


async def test_a_restore_is_undone_by_a_backup_of_what_it_replaced(data: Path, tmp_path: Path) -> None:
    """As the guide says."""
    await write_profiles(data, "new")
    back_up(data, tmp_path / "backup")
    await write_profiles(data, "newer")
    assert (await asyncio.to_thread(run_on, data, "restore", str(tmp_path / "backup"))).returncode == 0
    (replaced,) = (data / "replaced").iterdir()
    assert (await asyncio.to_thread(run_on, replaced, "backup", str(tmp_path / "undo"))).returncode == 0
    assert (await asyncio.to_thread(run_on, data, "restore", str(tmp_path / "undo"))).returncode == 0
    assert await read_profiles(data) == ["new", "newer"]


async def test_the_journal_of_a_killed_writer_is_undone_or_put_aside_with_its_table(data: Path, tmp_path: Path) -> None:
    """The engine starts, as SQLite would go on; a backup is whole; a restored table is not mixed with the old one."""
    await write_profiles(data, "new")
    back_up(data, tmp_path / "small")
    await write_profiles(data, *(f"member-{number}" for number in range(200)))
    back_up(data, tmp_path / "large")
    assert (await asyncio.to_thread(run_on, data, "restore", str(tmp_path / "small"))).returncode == 0
    for action in ("start", "backup", "restore"):
        copy = tmp_path / action
        await asyncio.to_thread(subprocess.run, ["cp", "-r", str(data), str(copy)], check=True)
        await _killed_writer(copy, "DELETE")
        assert table_file(copy).with_name("table.db-journal").stat().st_size > 0
        if action == "backup":
            back_up(copy, tmp_path / "made")
            made = await asyncio.to_thread(run_on, tmp_path / "other", "restore", str(tmp_path / "made"))
            assert made.returncode == 0, made.stderr
            assert await read_profiles(tmp_path / "other") == ["new"]
        elif action == "restore":
            restored = await asyncio.to_thread(run_on, copy, "restore", str(tmp_path / "large"))
            assert restored.returncode == 0, restored.stderr
        assert len(await read_profiles(copy)) == (201 if action == "restore" else 1)


async def _killed_writer(data: Path, mode: str) -> None:
    killed = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED_WRITER, str(table_file(data)), mode], check=False
    )
    assert killed.returncode == -signal.SIGKILL


async def test_a_restore_that_is_interrupted_changes_nothing(data: Path, tmp_path: Path) -> None:
    """It ends before it gives the folder back: another process may serve the table right after it."""
    await write_profiles(data, "new")
    back_up(data, tmp_path / "backup")
    await write_profiles(data, "newer")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SLOW_CHECK, "restore", str(tmp_path / "backup"),
        env=environment(RINGSIDE_DATA=str(data)), cwd=ROOT, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"checking\n"
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 130
    assert await read_profiles(data) == ["new", "newer"]
    assert not (data / "replaced").exists()


@pytest.mark.parametrize("command", ["backup", "restore"])
async def test_an_interruption_while_sqlite_checks_a_backup_ends_the_command(
    data: Path, tmp_path: Path, command: str
) -> None:
    """SQLite keeps an exception to itself. What was checked in part only gets no name, and replaces nothing."""
    await write_profiles(data, "new")
    back_up(data, tmp_path / "backup")
    earlier = (tmp_path / "backup").read_bytes()
    await write_profiles(data, "newer")
    interrupted = await asyncio.to_thread(run_script, INTERRUPTED_CHECK, data, command, str(tmp_path / "backup"))
    assert interrupted.returncode == 130, interrupted.stderr
    assert (tmp_path / "backup").read_bytes() == earlier
    assert await read_profiles(data) == ["new", "newer"]
    assert not (data / "replaced").exists()


@pytest.mark.parametrize("command", ["restore", "export all"])
async def test_without_dynoxide_a_command_says_how_to_put_it_into_the_data_folder(
    data: Path, tmp_path: Path, command: str
) -> None:
    """Not into the folder of the copy with which it works, which is gone afterwards."""
    await write_profiles(data, "ada")
    file = tmp_path / "file"
    if command == "restore":
        back_up(data, file)
    without = partial(run_script, WITHOUT_DYNOXIDE, data, PATH="", COLUMNS="1000")
    refused = await asyncio.to_thread(without, *command.split(), str(file))
    assert refused.returncode == 1
    assert "was written by dynoxide, which was not found" in refused.stderr
    assert f"npm install --prefix {data} dynoxide" in refused.stderr


def test_completing_no_restore_changes_nothing(tmp_path: Path) -> None:
    """As at every start."""
    complete_restore(tmp_path)
    assert list(tmp_path.iterdir()) == []
