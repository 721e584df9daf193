"""The embedded engine starts, is restarted when it dies, and stops, with the guarantees of server/engine."""

import asyncio
import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
import uvloop
from botocore.exceptions import BotoCoreError, ClientError
from structlog.testing import capture_logs

from datastore.changes.unit_of_work import CREATED, Created, read_created
from datastore.dynamo import Table, open_table
from datastore.dynamo.declaration import create
from datastore.whole.layout import ensure_layout
from resolvers.requests.context import utc_now
from server.engine import run_engine, run_engine_async, table_file
from server.engine.folder import EngineRefused
from server.engine.process import Engine, Program, dynoxide, find_binary, reserved_address
from server.settings.values import BAD_PORTS
from tests.client import serving
from tests.command import ringside_process
from tests.conftest import settings_for
from tests.data_folders import refused_on
from tests.engines import RunningEngine, engine_program, sdk_client
from tests.waiting import until

NO_ANSWER = (BotoCoreError, ClientError)
BOARDS = "{ boards(first: 1) { nodes { slug } } }"


@pytest.fixture
async def running(data: Path) -> AsyncIterator[Engine]:
    """The engine of the data folder."""
    async with run_engine_async(data) as engine:
        yield engine


async def _create_table(url: str) -> None:
    async with sdk_client(url) as dynamodb:
        await dynamodb.create_table(
            TableName="rows",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        )


async def _put(url: str, key: str) -> None:
    async with sdk_client(url) as dynamodb:
        await dynamodb.put_item(TableName="rows", Item={"pk": {"S": key}})


async def _keys(url: str) -> set[str]:
    async with sdk_client(url, retries=3) as dynamodb:
        pages = dynamodb.get_paginator("scan").paginate(TableName="rows", ConsistentRead=True)
        return {item["pk"]["S"] async for page in pages for item in page["Items"]}


async def _keys_once_restarted(engine: Engine, killed: int | None) -> set[str]:
    """What it has once it answers again: the client's own attempts may be over before a busy machine has started it."""
    await _wait_until(lambda: engine.pid not in (None, killed))

    async def found() -> list[set[str]]:
        with suppress(BotoCoreError):
            return [await _keys(engine.url)]
        return []

    [keys] = await until(found, "the engine answers again")
    return set(keys)


async def _wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.01)


def _kill(pid: int | None) -> None:
    assert pid
    os.kill(pid, signal.SIGKILL)


def _is_gone(pid: int | None) -> bool:
    try:
        return pid is None or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _engine_events(logs: Iterable[Mapping[str, object]]) -> list[object]:
    return [line["event"] for line in logs if "engine" in line]


# ── Start ──


async def test_a_restarted_service_has_the_data_of_the_one_before(data: Path) -> None:
    """The table's file outlives the engine."""
    async with run_engine_async(data) as first:
        await _create_table(first.url)
        await _put(first.url, "yesterday")
    async with run_engine_async(data) as second:
        assert await _keys(second.url) == {"yesterday"}


async def test_what_has_expired_is_removed(running: Engine) -> None:
    """As DynamoDB does by itself: the journal keeps its days, and the file does not grow by what nobody needs."""
    now = utc_now()
    async with open_table("ringside", url=running.url) as table:
        await create(table)
        await ensure_layout(table)
        for name, days in (("old", -3), ("newer", -2), ("ended today", -0.5), ("valid", 1)):
            await table.write(CREATED.put(Created("Board", name, now + timedelta(days=days))))
        async with serving(settings_for(RunningEngine("dynoxide", running.url), "ringside")) as client:

            async def is_removed() -> bool:
                return await read_created(table, "Board") == {"ended today", "valid"}

            await until(is_removed, "what expired days ago is removed")
            assert [node["slug"] for node in (await client.ask(BOARDS))["nodes"]] == ["main"]


class _Scanning:
    """A client, and what else happens after each of its scans."""

    def __init__(self, client: Any, then: Callable[[], Awaitable[None]]) -> None:
        self._client = client
        self._then = then

    async def scan(self, **parameters: Any) -> Any:
        answer = await self._client.scan(**parameters)
        await self._then()
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


async def test_what_was_renewed_is_not_removed(running: Engine) -> None:
    """Between the scan that finds it expired and its removal."""
    now = utc_now()
    async with open_table("ringside", url=running.url) as table:
        await create(table)
        await table.write(CREATED.put(Created("Board", "a", now - timedelta(days=1))))
        renewed = CREATED.put(Created("Board", "a", now + timedelta(days=1)))
        renewing = Table(_Scanning(table.client, lambda: table.write(renewed)), table.address)
        assert await renewing.remove_expired(now) == 0
        assert await read_created(table, "Board") == {"a"}


async def test_only_the_owner_can_read_the_data_folder(data: Path, running: Engine) -> None:
    """The folder holds all data and the secret that signs the service's tokens."""
    assert running.pid
    assert data.stat().st_mode & 0o077 == 0
    assert [file.name for file in data.iterdir() if file.stat().st_mode & 0o077] == []


async def test_the_engine_does_not_get_the_secrets(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    """The engine does not need them, and other processes can read its environment."""
    monkeypatch.setenv("RINGSIDE_SECRETS", "a secret the engine must not get")
    async with run_engine_async(data) as engine:
        environment = psutil.Process(engine.pid).environ()
    assert "PATH" in environment
    assert "RINGSIDE_SECRETS" not in environment


async def test_an_interrupt_from_the_terminal_does_not_reach_the_engine(running: Engine) -> None:
    """Ctrl-C reaches a terminal's whole session, but the service needs the engine while it drains."""
    assert running.pid
    assert os.getsid(running.pid) == running.pid != os.getsid(0)


async def test_the_engine_also_runs_on_uvloop(data: Path) -> None:
    """Uvicorn prefers uvloop, which starts processes differently from asyncio."""

    async def restart() -> None:
        async with run_engine_async(data) as engine:
            await _create_table(engine.url)
            _kill(killed := engine.pid)
            assert await _keys_once_restarted(engine, killed) == set()

    await asyncio.to_thread(uvloop.run, restart())


def test_a_supervisor_without_an_event_loop_can_own_the_engine(data: Path) -> None:
    """Several workers share one engine, which their parent process restarts when it dies."""
    with run_engine(data) as engine:
        asyncio.run(_create_table(engine.url))
        _kill(killed := engine.pid)
        assert asyncio.run(_keys_once_restarted(engine, killed)) == set()
        restarted_pid = engine.pid
    assert _is_gone(restarted_pid)


# ── Refusals ──


async def test_a_second_service_in_a_data_folder_is_refused(data: Path, running: Engine) -> None:
    """The message names the folder, the process that uses it and the three remedies."""
    with pytest.raises(EngineRefused) as refused:
        async with run_engine_async(data):
            pass
    message = str(refused.value)
    assert f"{data} is in use by process {os.getpid()}" in message
    assert "RINGSIDE_DATA" in message
    assert f"RINGSIDE_DYNAMODB_URL={running.url}" in message


async def test_a_second_service_waits_while_the_first_one_ends(data: Path) -> None:
    """A service that is stopped and started again at once is not refused its own folder."""
    first = run_engine_async(data)
    pid = (await first.__aenter__()).pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    ending = asyncio.create_task(first.__aexit__(None, None, None))
    await asyncio.sleep(0)
    async with run_engine_async(data) as second:
        assert ending.done()
        assert _is_gone(pid)
        assert second.pid


def test_a_folder_locked_by_an_unknown_process_is_refused_after_a_while(data: Path) -> None:
    """It may be an old engine that hangs, or any other process that took the lock."""
    data.mkdir()
    with (data / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = ringside_process("serve", RINGSIDE_DATA=str(data))
    assert "locked by a process that does not respond" in refused.stderr


async def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """The message holds the system's reason and a remedy."""
    (tmp_path / "data").touch()
    with pytest.raises(EngineRefused, match=r"cannot be used: File exists\. Set RINGSIDE_DATA"):
        async with run_engine_async(tmp_path / "data"):
            pass


@pytest.mark.parametrize(("name", "reason"), [("engine.log", "Is a directory"), ("table", "File exists")])
async def test_something_else_in_the_place_of_the_engines_files_is_no_traceback(
    data: Path, name: str, reason: str
) -> None:
    """The message names it. The system refuses another user's file in the same way."""
    data.mkdir()
    (data / "lock").touch()
    (data / name).mkdir() if name == "engine.log" else (data / name).touch()
    message = await asyncio.to_thread(refused_on, data, "audit", COLUMNS="1000")
    assert message.startswith(f"The engine cannot be started: {data / name}: {reason}. "), message
    (data / name).rmdir() if name == "engine.log" else (data / name).unlink()
    async with run_engine_async(data):
        pass


async def test_an_engine_that_exits_at_once_is_refused_with_its_output(data: Path) -> None:
    """The folder is free for the next attempt."""
    failing = Program("failing", lambda *_: ("/bin/sh", "-c", "echo disk is full >&2; exit 3"))
    with pytest.raises(EngineRefused, match=r"failing exited at startup \(3\): disk is full"):
        async with run_engine_async(data, program=failing):
            pass
    async with run_engine_async(data) as engine:
        assert engine.pid


async def test_an_engine_that_never_answers_is_refused_and_stopped(data: Path, tmp_path: Path) -> None:
    """It gets its startup time, and then its process is stopped."""
    pid = tmp_path / "pid"
    silent = Program("silent", lambda *_: ("/bin/sh", "-c", f"echo $$ >{pid}; exec sleep 600"), startup_timeout=3.0)
    pid.touch()
    for _ in range(20):  # a busy machine may not have begun it by then
        with pytest.raises(EngineRefused, match="silent did not answer within"):
            async with run_engine_async(data, program=silent):
                pass
        if pid.read_text():
            break
    assert _is_gone(int(pid.read_text()))


# ── Address ──


async def test_engines_listen_at_bad_ports(tmp_path: Path) -> None:
    """Browsers refuse to connect to them; tests/browser/test_engine_port.py shows it in one."""
    async with run_engine_async(tmp_path / "a") as first, run_engine_async(tmp_path / "b") as second:
        urls = [urlsplit(engine.url) for engine in (first, second)]
    assert len({url.netloc for url in urls}) == 2
    assert {url.port for url in urls} <= set(BAD_PORTS)
    assert all((url.hostname or "").startswith("127.") for url in urls)


async def test_more_engines_than_ports_can_run(tmp_path: Path, only_port: Callable[[int], None]) -> None:
    """On Linux, where all of 127.0.0.0/8 is loopback, they share the ports."""
    with reserved_address() as (_, port):
        only_port(port)
        async with run_engine_async(tmp_path / "a") as first, run_engine_async(tmp_path / "b") as second:
            await _create_table(first.url)
            await _put(first.url, "in the first one")
            await _create_table(second.url)
            assert await _keys(second.url) == set()


async def test_without_a_free_bad_port_the_engine_does_not_start(data: Path, only_port: Callable[[int], None]) -> None:
    """It never falls back to a port that web pages can reach."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        only_port(port)
        with pytest.raises(EngineRefused, match=rf"None of the ports {port} is free.*RINGSIDE_DYNAMODB_URL"):
            async with run_engine_async(data):
                pass


def test_an_address_stays_reserved_while_its_engine_is_down() -> None:
    """Two services that start at the same moment get different addresses."""
    with reserved_address() as first, reserved_address() as second:
        assert first != second


# ── Restart ──


async def test_a_killed_engine_restarts_at_its_address_with_every_acknowledged_write(running: Engine) -> None:
    """Eight writers write without a pause while it is killed three times: no acknowledged write is missing."""
    await _create_table(running.url)
    keys, acknowledged, done, kills = count(), set[str](), asyncio.Event(), 3

    async def write() -> None:
        async with sdk_client(running.url) as dynamodb:
            while not done.is_set():
                key = str(next(keys))
                try:
                    await dynamodb.put_item(TableName="rows", Item={"pk": {"S": key}})
                except NO_ANSWER:
                    await asyncio.sleep(0.01)
                else:
                    acknowledged.add(key)

    def has_restarted(times: int) -> bool:
        return _engine_events(logs).count("engine restarted") == times

    async def kill() -> None:
        enough = len(acknowledged) + 20
        await _wait_until(lambda: len(acknowledged) > enough)
        _kill(running.pid)

    writers = [asyncio.create_task(write()) for _ in range(8)]
    with capture_logs() as logs:
        for restarts in range(1, kills + 1):
            await kill()
            await _wait_until(partial(has_restarted, restarts))
    done.set()
    await asyncio.gather(*writers)
    assert acknowledged <= await _keys(running.url)
    assert _engine_events(logs) == ["engine died", "engine restarted"] * kills


async def test_an_engine_that_does_not_restart_is_started_again(data: Path) -> None:
    """A start that fails is logged with its reason and repeated, also if the system has no more files for it."""
    starts = count(1)
    working = dynoxide(_binary(data), table_file(data))

    def command(host: str, port: int) -> Sequence[str]:
        match next(starts):
            case 2:
                return "/bin/sh", "-c", "echo not yet >&2; exit 1"
            case 3:
                raise OSError(errno.EMFILE, "Too many open files")
        return working.command(host, port)

    with capture_logs() as logs:
        async with run_engine_async(data, program=Program("sometimes failing", command)) as engine:
            first = engine.pid
            _kill(first)
            await _wait_until(
                lambda: engine.pid not in (None, first) and any(line["event"] == "engine restarted" for line in logs)
            )
    first_reason, second_reason = (line["reason"] for line in logs if line["event"] == "engine did not restart")
    assert "not yet" in first_reason
    assert "Too many open files" in second_reason


async def test_a_killed_engine_whose_log_was_removed_is_started_again(data: Path) -> None:
    """Whoever clears up files must not end what watches over the engine; the warning says why it has no output."""
    with capture_logs() as logs:
        async with run_engine_async(data) as engine:
            (data / "engine.log").unlink()
            _kill(engine.pid)
            await _wait_until(lambda: "engine restarted" in _engine_events(logs))
    assert next(line["output"] for line in logs if line["event"] == "engine died") == "its log cannot be read"


# ── Stop ──


async def test_nothing_is_left_when_the_service_ends(data: Path) -> None:
    """Both the engine and the shell that watches it are gone."""
    async with run_engine_async(data) as engine:
        processes = [psutil.Process(engine.pid), *psutil.Process(engine.pid).children(recursive=True)]
    await _wait_until(lambda: all(_is_gone(process.pid) for process in processes))


async def test_an_engine_that_ignores_the_signal_is_killed(data: Path) -> None:
    """A stopped process reacts to SIGKILL only."""
    async with run_engine_async(data) as engine:
        pid = engine.pid
        assert pid
        os.kill(pid, signal.SIGSTOP)
    assert _is_gone(pid)


SERVICE = """
import asyncio, sys
from pathlib import Path
from server.engine import run_engine_async

async def serve():
    async with run_engine_async(Path(sys.argv[1])) as engine:
        print(engine.pid, engine.url, flush=True)
        await asyncio.sleep(600)

asyncio.run(serve())
"""


async def test_killing_the_service_ends_its_engine_and_frees_the_folder(data: Path) -> None:
    """The killed service cannot stop its engine. The next service waits until the engine has noticed."""
    service = subprocess.Popen([sys.executable, "-c", SERVICE, str(data)], stdout=subprocess.PIPE, text=True)
    with service:
        assert service.stdout
        pid, url = (await asyncio.to_thread(service.stdout.readline)).split()
        await _create_table(url)
        await _put(url, "written before the kill")
        service.kill()
    async with run_engine_async(data) as successor:
        assert _is_gone(int(pid))
        assert await _keys(successor.url) == {"written before the kill"}


# ── moto ──


async def test_moto_loses_no_concurrent_update(tmp_path: Path) -> None:
    """In threads it loses updates, so it answers one request at a time."""
    async with (
        run_engine_async(tmp_path, program=engine_program("moto", tmp_path)) as moto,
        sdk_client(moto.url) as dynamodb,
    ):
        await _create_table(moto.url)
        increment = {
            "TableName": "rows",
            "Key": {"pk": {"S": "counter"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        await asyncio.gather(*(dynamodb.update_item(**increment) for _ in range(50)))
        counter = await dynamodb.get_item(TableName="rows", Key={"pk": {"S": "counter"}})
    assert counter["Item"]["n"] == {"N": "50"}


def _binary(data: Path) -> Path:
    binary = find_binary(data)
    assert binary
    return binary
