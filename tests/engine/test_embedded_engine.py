"""The embedded engine begins, dies, comes back and ends as server/engine promises."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

import psutil
import pytest
import uvloop
from botocore.exceptions import BotoCoreError, ClientError
from structlog.testing import capture_logs

from server.engine import (
    Engine,
    EngineRefused,
    Program,
    beside,
    dynoxide,
    embedded,
    find_binary,
    folder,
    process,
    table_file,
)
from tests.engines import engine_program, sdk_client

NO_ANSWER = (BotoCoreError, ClientError)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder that is not there yet, on a machine that has dynoxide."""
    engine_program("dynoxide", tmp_path)
    return tmp_path / "data"


@pytest.fixture
async def running(data: Path) -> AsyncIterator[Engine]:
    """The engine of the data folder."""
    async with embedded(data) as one:
        yield one


async def _make_table(url: str) -> None:
    async with sdk_client(url) as dynamodb:
        await dynamodb.create_table(
            TableName="kept",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        )


async def _put(url: str, key: str) -> None:
    async with sdk_client(url) as dynamodb:
        await dynamodb.put_item(TableName="kept", Item={"pk": {"S": key}})


async def _keys(url: str) -> set[str]:
    async with sdk_client(url, retries=3) as dynamodb:
        pages = dynamodb.get_paginator("scan").paginate(TableName="kept", ConsistentRead=True)
        return {item["pk"]["S"] async for page in pages for item in page["Items"]}


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)


def _kill(pid: int | None) -> None:
    assert pid
    os.kill(pid, signal.SIGKILL)


def _gone(pid: int | None) -> bool:
    return pid is None or not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def _told(logs: Iterable[Mapping[str, object]]) -> list[object]:
    return [line["event"] for line in logs if "engine" in line]


# ── Beginning ──


async def test_the_table_is_there_after_a_restart(data: Path) -> None:
    """A service that is started again finds yesterday's data."""
    async with embedded(data) as first:
        await _make_table(first.url)
        await _put(first.url, "yesterday")
    async with embedded(data) as second:
        assert await _keys(second.url) == {"yesterday"}


async def test_only_the_owner_can_read_the_data_folder(data: Path, running: Engine) -> None:
    """It holds everybody's data, and the secret that signs."""
    assert running.pid
    assert data.stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in data.glob("table.db*"))


async def test_the_engine_does_not_get_the_secrets(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    """It has no use for them, and its environment can be read by others than the service."""
    monkeypatch.setenv("RINGSIDE_SECRETS", "a secret that stays at home")
    async with embedded(data) as one:
        environment = psutil.Process(one.pid).environ()
    assert "PATH" in environment
    assert "RINGSIDE_SECRETS" not in environment


async def test_an_interrupt_from_the_terminal_does_not_reach_the_engine(running: Engine) -> None:
    """Ctrl-C reaches a terminal's whole session: the service has to drain on a living engine."""
    assert running.pid
    assert os.getsid(running.pid) == running.pid != os.getsid(0)


async def test_it_runs_on_the_servers_event_loop_too(data: Path) -> None:
    """Uvicorn prefers uvloop, which starts processes in its own way."""

    async def visit() -> None:
        async with embedded(data) as one:
            await _make_table(one.url)
            _kill(one.pid)
            await _until(lambda: not _gone(one.pid))
            assert await _keys(one.url) == set()

    await asyncio.to_thread(uvloop.run, visit())


def test_a_supervisor_without_an_event_loop_can_own_the_engine(data: Path) -> None:
    """Several workers share one engine, which their parent keeps alive."""
    with beside(data) as one:
        asyncio.run(_make_table(one.url))
        _kill(one.pid)
        assert asyncio.run(_keys(one.url)) == set()
        last = one.pid
    assert _gone(last)


# ── Refusals ──


async def test_a_second_service_in_a_data_folder_is_refused(data: Path, running: Engine) -> None:
    """It is told which folder, who has it, and the three ways out."""
    with pytest.raises(EngineRefused) as refused:
        async with embedded(data):
            pass
    message = str(refused.value)
    assert f"{data} is in use by process {os.getpid()}" in message
    assert "RINGSIDE_DATA" in message
    assert f"RINGSIDE_DYNAMODB_URL={running.url}" in message


async def test_a_second_service_waits_while_the_first_one_ends(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    """One that is stopped and started again in a hurry does not stumble over itself."""
    first = embedded(data)
    pid = (await first.__aenter__()).pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(process, "GRACE", 0.3)
    ending = asyncio.create_task(first.__aexit__(None, None, None))
    await asyncio.sleep(0)
    async with embedded(data) as second:
        assert ending.done()
        assert _gone(pid)
        assert second.pid


async def test_a_folder_locked_by_an_unknown_process_is_refused_after_a_while(
    monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    """It may be an old engine that hangs, or somebody who plays with locks."""
    monkeypatch.setattr(folder, "PATIENCE", 0.1)
    data.mkdir()
    with (data / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(EngineRefused, match="locked by a process that does not respond"):
            async with embedded(data):
                pass


async def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """The reason is the system's, the remedy ours."""
    (tmp_path / "data").touch()
    with pytest.raises(EngineRefused, match=r"cannot be used: File exists\. Set RINGSIDE_DATA"):
        async with embedded(tmp_path / "data"):
            pass


async def test_an_engine_that_exits_at_once_is_refused_with_its_output(data: Path) -> None:
    """And the folder is free for the next attempt."""
    unlucky = Program("unlucky", lambda _: ("/bin/sh", "-c", "echo no luck today >&2; exit 3"))
    with pytest.raises(EngineRefused, match=r"unlucky exited at startup \(3\): no luck today"):
        async with embedded(data, program=unlucky):
            pass
    async with embedded(data) as one:
        assert one.pid


async def test_an_engine_that_never_answers_is_refused_and_stopped(data: Path, tmp_path: Path) -> None:
    """Its patience is over, and nothing of it is left."""
    pid = tmp_path / "pid"
    mute = Program("mute", lambda _: ("/bin/sh", "-c", f"echo $$ >{pid}; exec sleep 600"), patience=0.2)
    with pytest.raises(EngineRefused, match="mute did not answer within"):
        async with embedded(data, program=mute):
            pass
    assert _gone(int(pid.read_text()))


async def test_a_file_that_is_not_a_table_is_refused_with_the_engine_s_message(data: Path) -> None:
    """It is neither overwritten nor passed over."""
    data.mkdir()
    table_file(data).write_text("dear diary, " * 1000)
    with pytest.raises(EngineRefused, match=r"dynoxide exited at startup .*not a"):
        async with embedded(data):
            pass
    assert table_file(data).read_text().startswith("dear diary")


# ── Dying and coming back ──


async def test_a_killed_engine_comes_back_at_its_address_with_all_it_acknowledged(running: Engine) -> None:
    """Eight writers write without a pause while it is killed three times: no acknowledged write is missing."""
    await _make_table(running.url)
    keys, acknowledged, done, deaths = count(), set[str](), asyncio.Event(), 3

    async def write() -> None:
        async with sdk_client(running.url) as dynamodb:
            while not done.is_set():
                key = str(next(keys))
                try:
                    await dynamodb.put_item(TableName="kept", Item={"pk": {"S": key}})
                except NO_ANSWER:
                    await asyncio.sleep(0.01)
                else:
                    acknowledged.add(key)

    async def kill() -> None:
        enough = len(acknowledged) + 20
        await _until(lambda: len(acknowledged) > enough)
        _kill(running.pid)

    writers = [asyncio.create_task(write()) for _ in range(8)]
    with capture_logs() as logs:
        for death in range(1, deaths + 1):
            await kill()
            await _until(lambda death=death: _told(logs).count("engine restarted") == death)  # type: ignore[misc]
    done.set()
    await asyncio.gather(*writers)
    assert acknowledged <= await _keys(running.url)
    assert _told(logs) == ["engine died", "engine restarted"] * deaths


async def test_an_engine_that_does_not_restart_is_started_again(data: Path) -> None:
    """A start that fails is logged with its reason, and another one follows."""
    starts = count(1)
    real = dynoxide(_binary(data), table_file(data))

    def command(port: int) -> Sequence[str]:
        return ("/bin/sh", "-c", "echo not yet >&2; exit 1") if next(starts) in (2, 3) else real.command(port)

    with capture_logs() as logs:
        async with embedded(data, program=Program("moody", command)) as one:
            first = one.pid
            _kill(first)
            await _until(
                lambda: one.pid not in (None, first) and any(line["event"] == "engine restarted" for line in logs)
            )
    failures = [line for line in logs if line["event"] == "engine did not restart"]
    assert ["not yet" in line["reason"] for line in failures] == [True, True]


# ── Ending ──


async def test_nothing_is_left_when_the_service_ends(data: Path) -> None:
    """Neither the engine nor the shell that watches over it."""
    async with embedded(data) as one:
        family = [psutil.Process(one.pid), *psutil.Process(one.pid).children(recursive=True)]
    await _until(lambda: all(_gone(member.pid) for member in family))


async def test_an_engine_that_ignores_the_signal_is_killed(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    """A frozen process hears no signal but one."""
    monkeypatch.setattr(process, "GRACE", 0.1)
    async with embedded(data) as one:
        pid = one.pid
        assert pid
        os.kill(pid, signal.SIGSTOP)
    assert _gone(pid)


SERVICE = """
import asyncio, sys
from pathlib import Path
from server.engine import embedded

async def serve():
    async with embedded(Path(sys.argv[1])) as engine:
        print(engine.pid, engine.url, flush=True)
        await asyncio.sleep(600)

asyncio.run(serve())
"""


async def test_killing_the_service_ends_its_engine_and_frees_the_folder(data: Path) -> None:
    """Nobody could tell the engine: it notices by itself. The next service waits for that, and finds the data."""
    service = subprocess.Popen([sys.executable, "-c", SERVICE, str(data)], stdout=subprocess.PIPE, text=True)
    with service:
        assert service.stdout
        pid, url = (await asyncio.to_thread(service.stdout.readline)).split()
        await _make_table(url)
        await _put(url, "last words")
        service.kill()
    async with embedded(data) as successor:
        assert _gone(int(pid))
        assert await _keys(successor.url) == {"last words"}


# ── The last resort ──


async def test_moto_loses_no_concurrent_update(tmp_path: Path) -> None:
    """Without a lock around it, it loses updates."""
    async with embedded(tmp_path, program=engine_program("moto", tmp_path)) as moto, sdk_client(moto.url) as dynamodb:
        await _make_table(moto.url)
        one_more = {
            "TableName": "kept",
            "Key": {"pk": {"S": "counter"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        await asyncio.gather(*(dynamodb.update_item(**one_more) for _ in range(50)))
        counter = await dynamodb.get_item(TableName="kept", Key={"pk": {"S": "counter"}})
    assert counter["Item"]["n"] == {"N": "50"}


def _binary(data: Path) -> Path:
    found = find_binary(data)
    assert found
    return found
