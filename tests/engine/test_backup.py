"""Backups of the embedded engine: of one moment, whole, and never over files of a data folder."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from datastore.dynamo import open_table
from datastore.dynamo.declaration import create
from server import Failed
from server.engine import back_up, backup, run_engine_async, table_file
from server.engine.backup import BackupFailed
from tests.backups import counted, counting_writers
from tests.command import ROOT, environment
from tests.data_folders import KILLED_AT, damage, read_profiles, refused_on, run_on, run_script, write_profiles
from tests.service import start_service


async def test_a_backup_beside_writers_is_the_table_of_one_moment(data: Path, tmp_path: Path) -> None:
    """Each of several backups holds what was acknowledged before it began, and no transaction in half."""
    async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
        await create(table)
        async with counting_writers(table) as done:
            before = []
            for number in range(3):
                before.append(sum(done))
                await asyncio.to_thread(back_up, data, tmp_path / f"{number}.db", _slow_steps())
    for number in range(3):
        copy = tmp_path / f"copy-{number}"
        table_file(copy).parent.mkdir(parents=True)
        (tmp_path / f"{number}.db").rename(table_file(copy))
        async with run_engine_async(copy) as engine, open_table("ringside", url=engine.url) as table:
            said, found = await counted(table)
            assert said == found >= before[number]


def _slow_steps() -> backup.Advance:
    """Lets writers go on between the steps of a backup."""
    pause = threading.Event()

    def wait(_left: int, _pages: int) -> None:
        pause.wait(0.05)

    return wait


async def test_the_command_backs_up_while_the_service_runs_and_restores_when_it_does_not(
    data: Path, tmp_path: Path
) -> None:
    """What was written after the backup is gone after the restore; it is kept aside."""
    file = tmp_path / "backup"
    variables = {"RINGSIDE_DATA": str(data), "RINGSIDE_REQUEST_TIMEOUT": "60"}
    with ExitStack() as stack:
        service = await start_service(variables, stack)
        made = await asyncio.to_thread(run_on, data, "backup", str(file))
        assert made.returncode == 0, made.stderr
        assert file.stat().st_mode & 0o777 == 0o600
        message = await asyncio.to_thread(refused_on, data, "restore", str(file))
        assert "Stop that process first" in message
        assert f"process {service.process.pid}" in message
        with httpx.Client(
            base_url=service.url, headers={"authorization": f"Bearer {service.token('ada')}"}, timeout=60
        ) as ada:
            ada.post("/graphql", json={"query": "{ viewer { id } }"}).raise_for_status()
        service.stop()
    assert len(await read_profiles(data)) > 0
    restored = await asyncio.to_thread(run_on, data, "restore", str(file))
    assert restored.returncode == 0, restored.stderr
    assert await read_profiles(data) == []
    (aside,) = (data / "replaced").iterdir()
    assert restored.stdout == f"The table was restored. The one that it replaces is kept in {aside}.\n"
    assert len(await read_profiles(aside)) > 0
    with ExitStack() as stack:
        await start_service(variables, stack)


async def test_a_backup_and_a_restore_through_pipes(data: Path, tmp_path: Path) -> None:
    """`-` is standard output and input."""
    await write_profiles(data, "ada")
    command = [sys.executable, "-m", "server"]
    made = await asyncio.to_thread(
        subprocess.run, [*command, "backup", "-"], env=environment(RINGSIDE_DATA=str(data)), cwd=ROOT,
        capture_output=True, check=True,
    )  # fmt: skip
    other = tmp_path / "other"
    restored = await asyncio.to_thread(
        subprocess.run, [*command, "restore", "-"], env=environment(RINGSIDE_DATA=str(other)), cwd=ROOT,
        input=made.stdout, capture_output=True, check=True,
    )  # fmt: skip
    assert restored.stdout == b"The table was restored.\n"
    assert await read_profiles(other) == ["ada"]


async def test_a_backup_is_refused_where_there_is_no_table(data: Path, tmp_path: Path) -> None:
    """Also over a file that is no backup, to a folder that does not exist, and with another engine."""
    assert "There is no table" in refused_on(data, "backup", str(tmp_path / "b"))
    await write_profiles(data, "ada")
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    assert "is not a backup" in refused_on(data, "backup", str(notes))
    assert notes.read_text() == "mine"
    assert "cannot be written" in refused_on(data, "backup", str(tmp_path / "none" / "b"))
    other = {"RINGSIDE_DYNAMODB_URL": "http://127.0.0.1:1", "RINGSIDE_SECRETS": "s" * 40}
    for command in ("backup", "restore"):
        assert "is for the embedded engine" in refused_on(data, command, str(notes), **other)


async def test_no_command_writes_its_file_over_those_of_a_data_folder(data: Path, tmp_path: Path) -> None:
    """By whatever path, also those of a service with another data folder; the message says where to write to."""
    await write_profiles(data, "ada")
    (tmp_path / "symbolic").symlink_to(table_file(data))
    (tmp_path / "hard").hardlink_to(table_file(data))
    (tmp_path / "folder").symlink_to(data)
    inode = table_file(data).stat().st_ino
    served = [data / name for name in ("table/table.db", "table/table.db-wal", "secret", "lock", "engine.log")]
    for file in (
        *served,
        tmp_path / "folder/table/table.db",
        tmp_path / "symbolic",
        data / "replaced/1/table/table.db",
    ):
        with pytest.raises(Failed, match=f"belongs to the data folder {data}.*{data}/backups/by-hand"):
            back_up(data, file)
    with pytest.raises(BackupFailed, match="is not a backup"):
        back_up(data, tmp_path / "hard")
    for name in ("restoring", "restored", "replaced", "backups"):
        with pytest.raises(Failed, match=f"belongs to the data folder {data}"):
            back_up(data, data / name)
    (tmp_path / "words.csv").write_text("ListId,Simplified,Definition\n")
    migrate = f"migrate legacy --subscriptions old --past-words old --words {tmp_path / 'words.csv'} --report"
    for command in (migrate, "export all", "export votes", "export events", "export comments", "export member ada"):
        given = (*command.split(), str(table_file(data)))
        assert "belongs to the data folder" in await asyncio.to_thread(refused_on, data, *given, COLUMNS="1000")
    await write_profiles(tmp_path / "another", "ada")
    another = await asyncio.to_thread(refused_on, tmp_path / "another", *given, COLUMNS="1000")
    assert "belongs to the data folder" in another
    assert table_file(data).stat().st_ino == inode
    assert await read_profiles(data) == ["ada"]
    assert back_up(data, data / "backups.db") > 0


async def test_a_backup_to_an_odd_path_is_refused_at_once(data: Path, tmp_path: Path) -> None:
    """A pipe is not waited for; a name that no file may have is no traceback."""
    await write_profiles(data, "ada")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, reason in (("pipe", "is not a backup"), ("loop", "cannot be written"), ("n" * 300, "cannot be written")):
        with pytest.raises(Failed, match=reason):
            back_up(data, tmp_path / path)


async def test_a_backup_that_cannot_be_completed_leaves_the_earlier_one(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it leave a part of itself."""
    await write_profiles(data, "ada")
    file = tmp_path / "backup"
    back_up(data, file)
    earlier = file.read_bytes()

    def fail(_: Path) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(backup, "sync", fail)
    with pytest.raises(BackupFailed, match="disk is full"):
        back_up(data, file)
    assert file.read_bytes() == earlier
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["backup"]


async def test_a_damaged_table_is_not_backed_up(data: Path, tmp_path: Path) -> None:
    """Rather than to replace the last good backup by it."""
    await write_profiles(data, *(f"user-{number}" for number in range(200)))
    with closing(sqlite3.connect(table_file(data))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damage(table_file(data))
    with pytest.raises(BackupFailed, match=r"damaged|malformed"):
        back_up(data, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


@pytest.mark.soak
async def test_a_backup_that_is_killed_has_no_name(data: Path, tmp_path: Path) -> None:
    """Its file is there only once it is whole."""
    await write_profiles(data, "ada")
    file = tmp_path / "backup"
    for step in range(20):
        process = await asyncio.to_thread(run_script, KILLED_AT, data, "backup", str(file), str(step))
        if process.returncode == 0:
            break
        if file.exists():
            backup.check_backup(file)
            file.unlink()
    assert step > 2
    backup.check_backup(file)
    assert list(tmp_path.glob(".*")) == []


async def test_what_a_process_of_the_same_number_left_does_not_stop_a_backup(data: Path, tmp_path: Path) -> None:
    """In a container each process is number 1, also the one after a killed one. What others may be writing stays."""
    await write_profiles(data, "ada")
    file, others = tmp_path / "backup", tmp_path / f".backup.part-{os.getppid()}-0a1b2c3d"
    others.touch()
    for leftover in ("", "-journal", "-0a1b2c3d", "-0a1b2c3d-journal"):
        (tmp_path / f".backup.part-{os.getpid()}{leftover}").touch()
    assert back_up(data, file) > 0
    backup.check_backup(file)
    assert list(tmp_path.glob(".*")) == [others]
