"""Backups of the embedded engine: of one moment, checked, restored whole or not at all, made on a schedule."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from datastore.dynamo import open_table
from datastore.dynamo.declaration import create
from datastore.layout import LAYOUT, Layout, ensure_layout
from datastore.people import PROFILE, Profile
from resolvers.context import utc_now
from server.engine import BackupFailed, BackupSchedule, back_up, backup, run_engine_async, schedule, table_file
from server.engine.backup import complete_restore
from server.failures import Failed
from tests.backups import counted, counting_writers
from tests.engines import engine_program
from tests.service import ROOT, environment, ringside, running_service, start_service

KILLED_AT = """
import os, signal, sys
from pathlib import Path
from server.engine import backup

steps = int(sys.argv.pop())
for name in ("copy_file", "check_backup", "sync", "complete_restore"):
    def dying(*given, original=getattr(backup, name), **more):
        global steps
        if not steps:
            os.kill(os.getpid(), signal.SIGKILL)
        steps -= 1
        return original(*given, **more)
    setattr(backup, name, dying)

rename = Path.rename
def dying_rename(path, target):
    global steps
    if path.name.startswith("table.db"):
        if not steps:
            os.kill(os.getpid(), signal.SIGKILL)
        steps -= 1
    return rename(path, target)
Path.rename = dying_rename

from server.__main__ import main
main()
"""
"""The command line, killed before its n-th step."""

KILLED_AT_INSTALLING = """
import os, shutil, signal, sys
from pathlib import Path

steps = int(sys.argv.pop())
def dying(original, *names):
    def call(path, *given, **more):
        global steps
        if Path(path).name.startswith(names):
            if not steps:
                os.kill(os.getpid(), signal.SIGKILL)
            steps -= 1
        return original(path, *given, **more)
    return call
Path.rename = dying(Path.rename, "table.db", "replacing", "replaced")
shutil.rmtree = dying(shutil.rmtree, "replaced", "removing")

from server.__main__ import main
main()
"""
"""The command line, killed before the n-th step with which a restore changes the data folder."""

KILLED_AT_REMOVING = """
import os, shutil, signal
from pathlib import Path

rmtree = shutil.rmtree
def dying(path, *given, **more):
    if Path(path).name in ("replaced", "removing") and (log := Path(path, "table.db-wal")).exists():
        log.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return rmtree(path, *given, **more)
shutil.rmtree = dying

from server.__main__ import main
main()
"""
"""The command line, killed once it has removed the log of the table in `replaced/`."""

SLOW_CHECK = """
import time
from server.engine import backup

check = backup.check_backup
def slow(file):
    print("checking", flush=True)
    time.sleep(60)
    check(file)
backup.check_backup = slow

from server.__main__ import main
main()
"""
"""The command line with a backup whose check takes longer than a test waits to interrupt it."""

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
from server.engine import programs
programs.CHECKOUT = Path("nowhere")

from server.__main__ import main
main()
"""
"""The command line on a machine on which nothing is installed but Ringside."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder that does not exist yet, on a machine that has dynoxide."""
    engine_program("dynoxide", tmp_path)
    return tmp_path / "data"


async def _write_profiles(data: Path, *names: str) -> None:
    async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
        await create(table)
        await ensure_layout(table)
        for name in names:
            await table.write(PROFILE.put(Profile(name, name, utc_now())))


async def _profiles(data: Path) -> list[str]:
    async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
        return sorted([profile.user async for profile in table.scan(PROFILE)])


def _run(data: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return ringside(*arguments, RINGSIDE_DATA=str(data), **variables)


def _refused(data: Path, *arguments: str, **variables: str) -> str:
    result = _run(data, *arguments, **variables)
    assert result.returncode == 1, result.stdout
    assert "Traceback" not in result.stderr
    return result.stderr


# ── backing up ──


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
        copy.mkdir()
        (tmp_path / f"{number}.db").rename(table_file(copy))
        async with run_engine_async(copy) as engine, open_table("ringside", url=engine.url) as table:
            said, found = await counted(table)
            assert said == found >= before[number]


def _slow_steps() -> backup.Advance:
    """Lets writers go on between the steps of a backup."""
    pause = threading.Event()
    return lambda _left, _pages: pause.wait(0.05) and None


async def test_the_command_backs_up_while_the_service_runs_and_restores_when_it_does_not(
    data: Path, tmp_path: Path
) -> None:
    """What was written after the backup is gone after the restore; it is kept aside."""
    file = tmp_path / "backup"
    variables = {"RINGSIDE_DATA": str(data)}
    with ExitStack() as stack:
        service = await start_service(variables, stack)
        made = await asyncio.to_thread(_run, data, "backup", str(file))
        assert made.returncode == 0, made.stderr
        assert file.stat().st_mode & 0o777 == 0o600
        message = await asyncio.to_thread(_refused, data, "restore", str(file))
        assert "Stop that process first" in message
        assert f"process {service.process.pid}" in message
        await asyncio.to_thread(_run, data, "demo")
        service.stop()
    assert len(await _profiles(data)) > 0
    restored = await asyncio.to_thread(_run, data, "restore", str(file))
    assert restored.returncode == 0, restored.stderr
    assert await _profiles(data) == []
    aside = tmp_path / "aside"
    (data / "replaced").rename(aside)
    assert len(await _profiles(aside)) > 0
    with ExitStack() as stack:
        await start_service(variables, stack)


async def test_a_backup_and_a_restore_through_pipes(data: Path, tmp_path: Path) -> None:
    """`-` is standard output and input."""
    await _write_profiles(data, "ada")
    command = [sys.executable, "-m", "server"]
    made = await asyncio.to_thread(
        subprocess.run, [*command, "backup", "-"], env=environment(RINGSIDE_DATA=str(data)), cwd=ROOT,
        capture_output=True, check=True,
    )  # fmt: skip
    other = tmp_path / "other"
    await asyncio.to_thread(
        subprocess.run, [*command, "restore", "-"], env=environment(RINGSIDE_DATA=str(other)), cwd=ROOT,
        input=made.stdout, capture_output=True, check=True,
    )  # fmt: skip
    assert await _profiles(other) == ["ada"]


async def test_a_backup_is_refused_where_there_is_no_table(data: Path, tmp_path: Path) -> None:
    """Also over a file that is no backup, to a folder that does not exist, and with another engine."""
    assert "There is no table" in _refused(data, "backup", str(tmp_path / "b"))
    await _write_profiles(data, "ada")
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    assert "is not a backup" in _refused(data, "backup", str(notes))
    assert notes.read_text() == "mine"
    assert "cannot be written" in _refused(data, "backup", str(tmp_path / "none" / "b"))
    other = {"RINGSIDE_DYNAMODB_URL": "http://127.0.0.1:1", "RINGSIDE_SECRETS": "s" * 40}
    for command in ("backup", "restore"):
        assert "is for the embedded engine" in _refused(data, command, str(notes), **other)


async def test_no_command_writes_its_file_over_those_of_a_data_folder(data: Path, tmp_path: Path) -> None:
    """By whatever path, also those of a service with another data folder; the message says where to write to."""
    await _write_profiles(data, "ada")
    (tmp_path / "symbolic").symlink_to(table_file(data))
    (tmp_path / "hard").hardlink_to(table_file(data))
    (tmp_path / "folder").symlink_to(data)
    (data / "replaced").mkdir()
    inode = table_file(data).stat().st_ino
    served = [data / name for name in ("table.db", "table.db-wal", "table.db-shm", "secret", "lock", "engine.log")]
    for file in (*served, tmp_path / "folder" / "table.db", tmp_path / "symbolic", data / "replaced" / "table.db"):
        with pytest.raises(Failed, match=f"belongs to the data folder {data}.*{data}/backups/by-hand"):
            back_up(data, file)
    with pytest.raises(BackupFailed, match="is the table itself"):
        back_up(data, tmp_path / "hard")
    for name in ("replacing", "removing", "replaced", "backups"):
        with pytest.raises(Failed, match=f"belongs to the data folder {data}"):
            back_up(data, data / name)
    for command in ("export all", "export votes", "export events", "export comments", "export member ada"):
        given = (*command.split(), str(table_file(data)))
        assert "belongs to the data folder" in await asyncio.to_thread(_refused, data, *given, COLUMNS="1000")
    another = await asyncio.to_thread(_refused, tmp_path / "another", *given, COLUMNS="1000")
    assert "belongs to the data folder" in another
    assert table_file(data).stat().st_ino == inode
    assert await _profiles(data) == ["ada"]
    assert back_up(data, data / "backups.db") > 0


async def test_a_backup_to_an_odd_path_is_refused_at_once(data: Path, tmp_path: Path) -> None:
    """A pipe is not waited for; a name that no file may have is no traceback."""
    await _write_profiles(data, "ada")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, reason in (("pipe", "is not a backup"), ("loop", "cannot be written"), ("n" * 300, "cannot be written")):
        with pytest.raises(Failed, match=reason):
            back_up(data, tmp_path / path)


async def test_a_backup_that_cannot_be_completed_leaves_the_earlier_one(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it leave a part of itself."""
    await _write_profiles(data, "ada")
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
    await _write_profiles(data, *(f"user-{number}" for number in range(200)))
    with closing(sqlite3.connect(table_file(data))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    _damage(table_file(data))
    with pytest.raises(BackupFailed, match=r"damaged|malformed"):
        back_up(data, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def _damage(file: Path) -> None:
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(size // 2)
        opened.write(os.urandom(min(20_000, size // 3)))


# ── restoring ──


async def test_a_damaged_cut_or_foreign_file_is_not_restored(data: Path, tmp_path: Path) -> None:
    """The table stays as it is."""
    await _write_profiles(data, *(f"user-{number}" for number in range(200)))
    good = tmp_path / "good"
    back_up(data, good)
    bad = {name: tmp_path / name for name in ("damaged", "cut", "empty", "text", "foreign", "without", "newer")}
    bad["damaged"].write_bytes(good.read_bytes())
    _damage(bad["damaged"])
    bad["cut"].write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    bad["empty"].touch()
    bad["text"].write_text("SQLite")
    with closing(sqlite3.connect(bad["foreign"])) as connection:
        connection.execute("CREATE TABLE words (word TEXT)")
    await _make_backup(tmp_path / "w", bad["without"], "another")
    await _make_backup(tmp_path / "n", bad["newer"], "ringside", Layout(99))
    messages = {
        "damaged": "damaged", "cut": "damaged", "empty": "not a backup", "text": "not a backup",
        "foreign": "not a backup", "without": "cannot be used", "newer": "newer release",
    }  # fmt: skip
    for name, message in messages.items():
        assert message in await asyncio.to_thread(_refused, data, "restore", str(bad[name])), name
    assert "There is no file" in await asyncio.to_thread(_refused, data, "restore", str(tmp_path / "none"))
    assert len(await _profiles(data)) == 200
    assert not (data / "replaced").exists()
    assert not (data / "restoring").exists()


async def _make_backup(data: Path, file: Path, table_name: str, layout: Layout | None = None) -> None:
    async with run_engine_async(data) as engine, open_table(table_name, url=engine.url) as table:
        await create(table)
        if layout:
            await table.write(LAYOUT.put(layout))
    back_up(data, file)


async def test_a_restore_that_is_killed_leaves_the_old_table_or_the_new_one(data: Path, tmp_path: Path) -> None:
    """Killed before each of its steps in turn. The next start finishes what was begun, or nothing has changed."""
    await _write_profiles(data, "new")
    file = tmp_path / "backup"
    back_up(data, file)
    await _write_profiles(data, "newer")
    kills, seen = 0, set()
    for step in range(60):
        copy = tmp_path / f"copy-{step}"
        await asyncio.to_thread(subprocess.run, ["cp", "-r", str(data), str(copy)], check=True)
        process = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", KILLED_AT, "restore", str(file), str(step)],
            env=environment(RINGSIDE_DATA=str(copy)), cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, process.stderr
        kills += 1
        found = await _profiles(copy)
        seen.add(tuple(found))
        if step % 4 == 0:
            again = await asyncio.to_thread(_run, copy, "restore", str(file))
            assert again.returncode == 0, again.stderr
            assert await _profiles(copy) == ["new"]
    assert kills > 8
    assert seen == {("new",), ("new", "newer")}


async def test_undoing_a_restore_that_is_killed_and_run_again_loses_no_table(data: Path, tmp_path: Path) -> None:
    """Killed before each of its last steps in turn: neither the table of before, nor the one that is restored."""
    await _write_profiles(data, "new")
    back_up(data, tmp_path / "backup")
    await _write_profiles(data, "newer")
    assert (await asyncio.to_thread(_run, data, "restore", str(tmp_path / "backup"))).returncode == 0
    for step in range(10):
        copy, aside = tmp_path / f"copy-{step}", tmp_path / f"aside-{step}"
        await asyncio.to_thread(subprocess.run, ["cp", "-r", str(data), str(copy)], check=True)
        undo = ("restore", str(copy / "replaced" / "table.db"))
        killed = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", KILLED_AT_INSTALLING, *undo, str(step)],
            env=environment(RINGSIDE_DATA=str(copy)), cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        again = await asyncio.to_thread(_run, copy, *undo)
        assert again.returncode == 0 or "There is no file" in again.stderr, again.stderr
        assert await _profiles(copy) == ["new", "newer"], step
        (copy / "replaced").rename(aside)
        assert await _profiles(aside) == ["new"], step


async def test_undoing_a_restore_keeps_what_is_in_the_log_of_the_replaced_table(data: Path, tmp_path: Path) -> None:
    """Also if it is killed while it removes the replaced table, and run again."""
    await _write_profiles(data, "new")
    back_up(data, tmp_path / "backup")
    await _killed_writer(data, "WAL")
    assert (await asyncio.to_thread(_run, data, "restore", str(tmp_path / "backup"))).returncode == 0
    undo = ("restore", str(data / "replaced" / "table.db"))
    killed = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED_AT_REMOVING, *undo],
        env=environment(RINGSIDE_DATA=str(data)), cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = await asyncio.to_thread(_run, data, *undo)
    assert again.returncode == 0 or "There is no file" in again.stderr, again.stderr
    assert await _profiles(data) == ["new"]
    with closing(sqlite3.connect(table_file(data))) as connection:
        assert connection.execute("SELECT count(*) FROM more").fetchone() == (200,)


async def test_the_journal_of_a_killed_writer_is_undone_or_put_aside_with_its_table(data: Path, tmp_path: Path) -> None:
    """The engine starts, as SQLite would go on; a backup is whole; a restored table is not mixed with the old one."""
    await _write_profiles(data, "new")
    back_up(data, tmp_path / "small")
    await _write_profiles(data, *(f"member-{number}" for number in range(200)))
    back_up(data, tmp_path / "large")
    assert (await asyncio.to_thread(_run, data, "restore", str(tmp_path / "small"))).returncode == 0
    for action in ("start", "backup", "restore"):
        copy = tmp_path / action
        await asyncio.to_thread(subprocess.run, ["cp", "-r", str(data), str(copy)], check=True)
        await _killed_writer(copy, "DELETE")
        assert table_file(copy).with_name("table.db-journal").stat().st_size > 0
        if action == "backup":
            back_up(copy, tmp_path / "made")
            made = await asyncio.to_thread(_run, tmp_path / "other", "restore", str(tmp_path / "made"))
            assert made.returncode == 0, made.stderr
            assert await _profiles(tmp_path / "other") == ["new"]
        elif action == "restore":
            restored = await asyncio.to_thread(_run, copy, "restore", str(tmp_path / "large"))
            assert restored.returncode == 0, restored.stderr
        assert len(await _profiles(copy)) == (201 if action == "restore" else 1)


async def _killed_writer(data: Path, mode: str) -> None:
    killed = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED_WRITER, str(table_file(data)), mode], check=False
    )
    assert killed.returncode == -signal.SIGKILL


async def test_a_restore_that_is_interrupted_changes_nothing(data: Path, tmp_path: Path) -> None:
    """It ends before it gives the folder back: another process may serve the table right after it."""
    await _write_profiles(data, "new")
    back_up(data, tmp_path / "backup")
    await _write_profiles(data, "newer")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SLOW_CHECK, "restore", str(tmp_path / "backup"),
        env=environment(RINGSIDE_DATA=str(data)), cwd=ROOT, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"checking\n"
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 130
    assert await _profiles(data) == ["new", "newer"]
    assert not (data / "replaced").exists()


@pytest.mark.parametrize("command", ["restore", "export all"])
async def test_without_dynoxide_a_command_says_how_to_put_it_into_the_data_folder(
    data: Path, tmp_path: Path, command: str
) -> None:
    """Not into the folder of the copy with which it works, which is gone afterwards."""
    await _write_profiles(data, "ada")
    file = tmp_path / "file"
    if command == "restore":
        back_up(data, file)
    refused = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", WITHOUT_DYNOXIDE, *command.split(), str(file)],
        env=environment(RINGSIDE_DATA=str(data), PATH="", COLUMNS="1000"),
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 1
    assert "was written by dynoxide, which was not found" in refused.stderr
    assert f"npm install --prefix {data} dynoxide" in refused.stderr


async def test_a_backup_that_is_killed_has_no_name(data: Path, tmp_path: Path) -> None:
    """Its file is there only once it is whole."""
    await _write_profiles(data, "ada")
    file = tmp_path / "backup"
    for step in range(20):
        process = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", KILLED_AT, "backup", str(file), str(step)],
            env=environment(RINGSIDE_DATA=str(data)), cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
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
    await _write_profiles(data, "ada")
    file, others = tmp_path / "backup", tmp_path / f".backup.part-{os.getppid()}-0a1b2c3d"
    others.touch()
    for leftover in ("", "-journal", "-0a1b2c3d", "-0a1b2c3d-journal"):
        (tmp_path / f".backup.part-{os.getpid()}{leftover}").touch()
    assert back_up(data, file) > 0
    backup.check_backup(file)
    assert list(tmp_path.glob(".*")) == [others]


# ── on a schedule ──


def _wait_for(condition: threading.Event) -> None:
    assert condition.wait(60)


def _names(data: Path) -> list[str]:
    return sorted(path.name for path in (data / "backups").glob("*.db"))


async def test_the_service_makes_scheduled_backups_and_keeps_seven(data: Path) -> None:
    """One is due at the start if the newest is old; it replaces the oldest. The metrics say when it was made."""
    await _write_profiles(data, "ada")
    folder = data / "backups"
    folder.mkdir()
    old = [datetime.now(UTC) - timedelta(hours=number) for number in range(3, 12)]
    for moment in old:
        back_up(data, folder / moment.strftime(schedule._NAME))
    with ExitStack() as stack:
        variables = {"RINGSIDE_DATA": str(data), "RINGSIDE_BACKUP_HOURS": "2"}
        service = await start_service(variables, stack)
        async with asyncio.timeout(60), httpx.AsyncClient(base_url=service.url) as http:
            while len(names := _names(data)) != 7 or names[-1] <= old[0].strftime(schedule._NAME):
                await asyncio.sleep(0.1)
            figures = (await http.get("/metrics")).text
        assert "ringside_backup_failures 0.0" in figures
        newest = next(line for line in figures.splitlines() if line.startswith("ringside_backup_newest"))
        assert float(newest.split()[1]) > old[0].timestamp() + 3600
        service.stop()
    restored = await asyncio.to_thread(_run, data, "restore", str(folder / names[-1]))
    assert restored.returncode == 0, restored.stderr
    assert await _profiles(data) == ["ada"]


async def test_one_of_several_processes_makes_the_backups_and_all_tell_of_them(data: Path) -> None:
    """The one that runs the engine; the metrics of the workers read when it was."""
    engine_variables = {"RINGSIDE_DATA": str(data), "RINGSIDE_BACKUP_HOURS": "1"}
    with ExitStack() as stack:
        running = running_service(engine_variables, ["--workers", "2"])
        service = await asyncio.to_thread(stack.enter_context, running)
        async with asyncio.timeout(60), httpx.AsyncClient(base_url=service.url) as http:
            while not _names(data):
                await asyncio.sleep(0.1)
            figures = (await http.get("/metrics")).text
        made = [line for line in figures.splitlines() if line.startswith("ringside_backup_newest")]
        assert len(made) == 1
        assert float(made[0].split()[1]) > 0
        assert len(_names(data)) == 1
        assert service.stop() == 0


async def test_backups_from_a_clock_that_was_ahead_make_room_for_new_ones(data: Path) -> None:
    """They count as the oldest, for the metrics too; what somebody else named in a similar way is left alone."""
    await _write_profiles(data, "ada")
    folder = data / "backups"
    folder.mkdir()
    ahead = [datetime.now(UTC) + timedelta(days=30 + number) for number in range(schedule.KEPT)]
    for moment in ahead:
        (folder / moment.strftime(schedule._NAME)).touch()
    copies = [f"ringside-{number}-keepZ.db" for number in range(schedule.KEPT)]
    for name in copies:
        (folder / name).touch()
    backups = BackupSchedule(data, 3600)
    assert backups._seconds_until_due() == 0
    assert schedule.backup_figures(data)["newest"] == 0
    backups._back_up()
    kept = [name for name in _names(data) if name not in copies]
    assert kept[1:] == [moment.strftime(schedule._NAME) for moment in ahead[1:]]
    assert set(copies) < set(_names(data))
    backup.check_backup(folder / kept[0])
    assert 0 < schedule.backup_figures(data)["newest"] < ahead[0].timestamp()
    assert backups._seconds_until_due() > 0


async def test_a_scheduled_backup_leaves_one_alone_that_somebody_writes_beside_it(data: Path) -> None:
    """What a killed process left of a scheduled one is removed."""
    await _write_profiles(data, "ada")
    folder = data / "backups"
    folder.mkdir()
    leftover = folder / f".{datetime.now(UTC).strftime(schedule._NAME)}.part-{os.getppid()}-0a1b2c3d"
    leftover.touch()
    beside: list[int] = []

    def begin_another(_left: int, _pages: int) -> None:
        if not beside:
            beside.append(0)
            BackupSchedule(data, 3600)._back_up()

    assert back_up(data, folder / "before-upgrade.db", begin_another) > 0
    backup.check_backup(folder / "before-upgrade.db")
    assert len(_names(data)) == 2
    assert not leftover.exists()


async def test_a_backup_that_is_moved_away_at_once_is_not_made_again_at_once(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one is due after the whole time."""
    await _write_profiles(data, "ada")
    pauses: list[float | None] = []

    class Pauses(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            return len(pauses) > 2

    def move_away(folder: Path, file: Path, advance: backup.Advance) -> int:
        size = back_up(folder, file, advance)
        file.unlink()
        return size

    monkeypatch.setattr(schedule, "back_up", move_away)
    backups = BackupSchedule(data, 3600)
    backups._stopping = Pauses()
    backups._run()
    assert pauses == [0, 3600, 3600]


async def test_a_failed_scheduled_backup_is_logged_counted_and_tried_again(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earlier backups stay; after the next success nothing counts as failed."""
    await _write_profiles(data, "ada")
    failed, made = threading.Event(), threading.Event()

    def fail(*_: object) -> int:
        failed.set()
        raise BackupFailed("the disk is full")

    monkeypatch.setattr(schedule, "back_up", fail)
    monkeypatch.setattr(schedule, "RETRY_SECONDS", 0.05)
    with capture_logs() as logs, BackupSchedule(data, 3600):
        await asyncio.to_thread(_wait_for, failed)
        async with asyncio.timeout(30):
            while not schedule.backup_figures(data)["failures"]:
                await asyncio.sleep(0.01)
        assert schedule.backup_figures(data)["newest"] == 0

        def succeed(folder: Path, file: Path, advance: backup.Advance) -> int:
            size = back_up(folder, file, advance)
            made.set()
            return size

        monkeypatch.setattr(schedule, "back_up", succeed)
        await asyncio.to_thread(_wait_for, made)
        async with asyncio.timeout(30):
            while schedule.backup_figures(data)["failures"]:
                await asyncio.sleep(0.01)
    assert logs[0] == {
        "event": "backup failed", "log_level": "error", "reason": "the disk is full", "retry_seconds": 0.05,
        "exc_info": None,
    }  # fmt: skip
    assert len(_names(data)) == 1


async def test_a_schedule_that_ends_gives_up_the_backup_under_way(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopping service does not wait for it, and no part of it is left."""
    await _write_profiles(data, "ada")
    begun = threading.Event()
    monkeypatch.setattr(backup, "_PAGES_A_STEP", 1)

    class Slow(BackupSchedule):
        def _advance(self, left: int, pages: int) -> None:
            begun.set()
            self._stopping.wait(60)
            super()._advance(left, pages)

    with Slow(data, 3600):
        await asyncio.to_thread(_wait_for, begun)
    assert list((data / "backups").iterdir()) == []


@pytest.mark.parametrize("hours", ["0", "-1", "1000", "nan", "daily", "inf"])
def test_absurd_hours_between_backups_are_refused(data: Path, hours: str) -> None:
    """With a correct value."""
    assert "RINGSIDE_BACKUP_HOURS is invalid" in _refused(data, "token", "--user", "a", RINGSIDE_BACKUP_HOURS=hours)


def test_scheduled_backups_of_another_engine_are_refused(data: Path) -> None:
    """They would be of nothing."""
    other = {"RINGSIDE_DYNAMODB_URL": "aws", "RINGSIDE_SECRETS": "s" * 40, "RINGSIDE_BACKUP_HOURS": "24"}
    assert "RINGSIDE_BACKUP_HOURS is for the embedded engine" in _refused(data, "token", "--user", "a", **other)


def test_completing_no_restore_changes_nothing(tmp_path: Path) -> None:
    """As at every start."""
    complete_restore(tmp_path)
    assert list(tmp_path.iterdir()) == []
