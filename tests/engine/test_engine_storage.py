"""The embedded engine's storage in trouble: a full disk, a damaged file, an empty one. The reason is always named."""

import asyncio
import logging
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from datastore.dynamo import StorageFailed, Table, open_table
from datastore.dynamo.declaration import create
from datastore.people.profiles import PROFILE, Profile
from resolvers.requests.context import utc_now
from server.engine import required_binary, run_engine_async, table_file
from server.engine.folder import EngineRefused, find_damage
from server.engine.process import Program, dynoxide
from tests.client import Client, serving
from tests.command import ROOT, environment
from tests.conftest import settings_for
from tests.engines import RunningEngine

UPDATE = 'mutation { updateProfile(input: { name: "Ada Lovelace" }) { __typename ... on Refused { code message } } }'
FILLER = "filler"
MOUNT = f"""
mount -t tmpfs -o size=3m tmpfs "$1" && head -c 1000000 /dev/zero > "$1/{FILLER}" && shift && exec "$@"
"""
LIMIT = """
shift; trap '' XFSZ; ulimit -f 3000; exec "$@"
"""


def _may_mount(folder: Path) -> bool:
    command = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _small_disk(place: Path) -> tuple[Program, str]:
    """An engine on a disk of 3 MB, and what it reports once that is full.

    Where mounting is not allowed, the engine's files may have 1.5 MB, which SQLite takes for a failing disk.
    """
    disk = place / "disk"
    disk.mkdir(parents=True)
    unlimited = dynoxide(required_binary(place), disk / "table.db")
    mounts = _may_mount(disk)
    shell = ["unshare", "--map-root-user", "--mount", "/bin/sh", "-c", MOUNT] if mounts else ["/bin/sh", "-c", LIMIT]

    def command(host: str, port: int) -> Sequence[str]:
        return *shell, "small-disk", str(disk), *unlimited.command(host, port)

    return Program("dynoxide", command), "is full; free some space" if mounts else "fails"


async def _fill(table: Table) -> None:
    """Writes items, large ones and then small ones, until there is no room for either."""
    for size in (20_000, 100):
        with pytest.raises(StorageFailed):
            await _write_profiles(table, size)


async def _write_profiles(table: Table, size: int) -> None:
    for number in range(10_000):
        await table.write(PROFILE.put(Profile(f"user-{size}-{number}", size * "x", utc_now())))


@pytest.mark.usefixtures("nothing_logged_yet")
async def test_a_full_disk_is_named_in_answers_readiness_and_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Reads go on, no request waits for its deadline, and all is well once there is room."""
    program, reason = _small_disk(tmp_path)
    async with run_engine_async(tmp_path, program=program) as engine, open_table("ringside", url=engine.url) as table:
        await create(table)
        async with serving(settings_for(RunningEngine("dynoxide", engine.url), "ringside")) as visitor:
            assert await _readiness(visitor, 200) == {"status": "ready"}
            ada = visitor.member("ada")
            assert (await ada.ask("{ viewer { name } }")) == {"name": "Ada"}
            with caplog.at_level(logging.WARNING):
                await _fill(table)
            assert reason in caplog.text
            assert len(caplog.records) == 1
            await _assert_named(visitor, ada, reason)
            filler = Path(f"/proc/{engine.pid}/root{tmp_path}/disk/{FILLER}")
            if filler.exists():
                filler.unlink()
                await _assert_writable(visitor)


async def _assert_named(visitor: Client, ada: Client, reason: str) -> None:
    refused = await ada.ask(UPDATE)
    assert refused["code"] == "UNAVAILABLE"
    assert reason in refused["message"]
    assert await visitor.ask("{ boards(first: 1) { nodes { slug } } }") == {"nodes": [{"slug": "main"}]}
    assert reason in (await _readiness(visitor, 503))["reason"]


async def _readiness(visitor: Client, status: int) -> dict[str, str]:
    """What /readyz says once it has this status; it looks again after two seconds."""
    async with asyncio.timeout(120):
        while (answer := await visitor.http.get("/readyz")).status_code != status:
            await asyncio.sleep(0.1)
    body: dict[str, str] = answer.json()
    return body


async def _assert_writable(visitor: Client) -> None:
    assert (await visitor.member("ada").ask(UPDATE))["__typename"] == "ProfileUpdated"
    assert await _readiness(visitor, 200) == {"status": "ready"}


# ── the file ──


async def _table_with_items(data: Path) -> bytes:
    """The file of a table with some megabytes, after the engine has ended."""
    async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
        await create(table)
        await table.write_many(PROFILE.put(Profile(f"user-{number}", 4000 * "x", utc_now())) for number in range(250))
    return table_file(data).read_bytes()


async def _refusal(data: Path) -> str:
    with pytest.raises(EngineRefused) as refused:
        async with run_engine_async(data):
            pass
    return str(refused.value)


async def test_a_damaged_file_is_refused_and_left_alone(data: Path) -> None:
    """64 KB in its middle are zero; without the check the engine would serve the rest."""
    whole = await _table_with_items(data)
    middle = len(whole) // 2
    damaged = whole[:middle] + bytes(65_536) + whole[middle + 65_536 :]
    table_file(data).write_bytes(damaged)
    message = await _refusal(data)
    assert f"{table_file(data)} is damaged: " in message
    assert "Restore a copy" in message
    assert table_file(data).read_bytes() == damaged


async def test_a_file_that_cannot_be_opened_is_not_called_damaged(data: Path) -> None:
    """As on a full disk, where SQLite cannot make the file with which it begins: nobody is told to give a table up."""
    whole = await _table_with_items(data)
    message = await asyncio.to_thread(_audit_on_full_disk, data, 1)
    assert f"{table_file(data)} cannot be read: disk I/O error. Look whether its disk is full" in message
    assert table_file(data).read_bytes() == whole
    async with run_engine_async(data):
        pass


async def test_the_lock_keeps_its_room_and_a_disk_without_is_named(data: Path) -> None:
    """A service that was killed starts again on a full disk, and answers what is read."""
    async with run_engine_async(data):
        written = (data / "lock").stat()
    assert (data / "lock").stat().st_size == written.st_size
    message = await asyncio.to_thread(_audit_on_full_disk, data, 0)
    assert f"The data folder {data} cannot be used: File too large." in message


def _audit_on_full_disk(data: Path, blocks: int) -> str:
    """What an audit says whose files may have no more than so many blocks of 512 bytes."""
    limited = ["/bin/sh", "-c", f"trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"", "limited", sys.executable]
    variables = environment(RINGSIDE_DATA=str(data), RINGSIDE_SECRETS="s" * 48, COLUMNS="1000")
    command = [*limited, "-B", "-m", "server", "audit"]  # or Python would leave cut modules behind
    done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    return done.stderr


async def test_an_empty_file_is_not_a_new_table(data: Path) -> None:
    """A file that something emptied held a table."""
    table_file(data).parent.mkdir(parents=True)
    table_file(data).touch()
    assert f"{table_file(data)} is empty" in await _refusal(data)
    assert table_file(data).stat().st_size == 0
    table_file(data).unlink()
    async with run_engine_async(data):
        assert table_file(data).stat().st_size > 0


async def test_a_file_that_is_not_a_table_is_refused(data: Path) -> None:
    """With SQLite's reason; the file is left as it is."""
    table_file(data).parent.mkdir(parents=True)
    table_file(data).write_text("not a database, " * 1000)
    assert "file is not a database" in await _refusal(data)
    assert table_file(data).read_text().startswith("not a database")


def test_the_check_of_a_large_file_is_bounded(tmp_path: Path) -> None:
    """It ends after some seconds, here at once, and says that it has not seen the whole file."""
    file = tmp_path / "large"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE items (number INTEGER)")
        connection.executemany("INSERT INTO items VALUES (?)", ((number,) for number in range(50_000)))
    with capture_logs() as logs:
        assert find_damage(file, "quick_check", 0.0) is None
    assert [line["event"] for line in logs] == ["the table's file is large: only a part of it was checked"]
