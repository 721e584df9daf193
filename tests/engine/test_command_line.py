"""The `ringside` command line; what serves, in a process of its own."""

import asyncio
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import boto3
import httpx
import psutil
import pytest

from datastore.dynamo import Table
from server import Failed
from server.commands import serve
from server.execution.documents import hash_of, read_manifest
from server.settings import Settings, variable
from tests.command import ROOT, environment, on_table, ringside, ringside_process
from tests.data_folders import run_script, write_profiles
from tests.engines import RunningEngine
from tests.fault.proxy import Proxy
from tests.mail_server import Mailbox, body_of, mail_server_beside
from tests.service import running_service, start_service
from tests.waiting import LONGEST, until

SECRET = "a secret that is long enough to be one in tests"
SIGNALLED_IN_A_CALLBACK = """
import signal, sys
from datastore.dynamo.transport.connections import _Connection
from server.commands import serve

number = int(sys.argv.pop())
received = _Connection.data_received
def signalled(self, data):
    _Connection.data_received = received
    signal.raise_signal(number)
    received(self, data)

seed_demo = serve.seed_demo
async def watched(services):
    _Connection.data_received = signalled
    await seed_demo(services)
serve.seed_demo = watched

from server.__main__ import main
main()
"""
"""The command line, which gets a signal while the event loop gives it an answer of the engine."""


def test_the_service_keeps_its_data_when_it_is_started_again(tmp_path: Path) -> None:
    """Yesterday's profile is there, kill -9 in between; SIGTERM ends with 0."""
    data = {"RINGSIDE_DATA": str(tmp_path), "RINGSIDE_REQUEST_TIMEOUT": "60"}
    with running_service(data, ["--demo"]) as first:
        headers = {"authorization": f"Bearer {ringside('token', '--user', 'ada', **data).stdout.strip()}"}
        change = {"query": 'mutation { updateProfile(input: {name: "Kept"}) { __typename } }'}
        assert "ProfileUpdated" in httpx.post(f"{first.url}/graphql", json=change, headers=headers, timeout=60).text
        first.stop(signal.SIGKILL)
    with running_service(data, ["--demo"]) as second:
        asked = httpx.post(f"{second.url}/graphql", json={"query": "{ viewer { name } }"}, headers=headers, timeout=60)
        assert asked.json() == {"data": {"viewer": {"name": "Kept"}}}
        assert second.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_start(tmp_path: Path, number: signal.Signals) -> None:
    """uvloop logs an exception that a signal's handler raises in its callbacks, and the start went on."""
    arguments = ("serve", "--port", "0", "--demo")
    done = run_script(SIGNALLED_IN_A_CALLBACK, tmp_path, *arguments, str(number.value))
    assert (done.returncode, done.stderr) == (0, "")
    assert "Ringside answers" not in done.stdout


def test_several_workers_share_a_port_and_an_engine(tmp_path: Path) -> None:
    """Two processes answer; the metrics speak for both. Emails lead to the port, which nobody had to name again."""
    mailbox, ask = Mailbox(), 'mutation { requestSignIn(input: {email: "ada@example.org"}) { __typename } }'
    with (
        mail_server_beside(mailbox, tmp_path) as mail,
        running_service({"RINGSIDE_DATA": str(tmp_path), "RINGSIDE_SMTP_URL": mail}, ["--workers", "2"]) as service,
    ):
        for _ in range(20):
            assert httpx.post(f"{service.url}/graphql", json={"query": "{ __typename }"}, timeout=60).status_code == 200
        assert "Requested" in httpx.post(f"{service.url}/graphql", json={"query": ask}, timeout=60).text
        ((_, email),) = asyncio.run(until(lambda: mailbox.emails, "the email has arrived"))
        assert f"{service.url}/sign-in?" in body_of(email)
        counted = next(
            line
            for line in httpx.get(f"{service.url}/metrics", timeout=60).text.splitlines()
            if line.startswith("ringside_requests_total{")
        )
        assert counted.endswith(" 21.0")


async def test_workers_go_on_when_one_of_them_cannot_start_again(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """While the engine does not answer, one is killed. There are two again once it answers."""
    async with Proxy(default_engine.url) as proxy:
        with ExitStack() as stack:
            service = await start_service(on_table(proxy.url, one_table.name), stack, ["--workers", "2"])

            def started() -> int:
                return sum("startup complete" in line for line in service.lines)

            await until(lambda: started() == 2, "both workers serve")
            async with proxy.silent():
                killed, other = _workers(service.process.pid)
                killed.kill()
                await until(lambda: any("failed to start" in line for line in service.lines), "one cannot start")
                assert other in _workers(service.process.pid)
            await until(lambda: started() == 3 or service.process.poll() is not None, "a third has started")
            assert len(_workers(service.process.pid)) == 2
            assert await asyncio.to_thread(service.stop) == 0


async def test_workers_of_which_none_can_start_end_with_an_error(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """An orchestrator restarts what ends with 1, and takes 0 for the end of the work."""
    async with Proxy(default_engine.url) as proxy:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "server", "serve", "--port", "0", "--workers", "2"),
            env=environment(**on_table(proxy.url, one_table.name)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdout
        try:
            await process.stdout.readuntil(b"Ringside answers")
            proxy.error = "AccessDeniedException"
            async with asyncio.timeout(300):
                output = await process.stdout.read()
        finally:
            if process.returncode is None:
                process.kill()
    assert (await process.wait(), b"No worker could start" in output) == (1, True), output


@pytest.mark.soak
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """With a stream open and the engine gone; the same port serves again, with the data that was there."""
    data = {"RINGSIDE_DATA": str(tmp_path)}
    with running_service(data, ["--workers", "2"]) as killed:
        headers = {"authorization": f"Bearer {killed.token('ada')}"}
        change = {"query": 'mutation { updateProfile(input: {name: "Kept"}) { __typename } }'}
        assert "ProfileUpdated" in httpx.post(f"{killed.url}/graphql", json=change, headers=headers, timeout=60).text
        processes = psutil.Process(killed.process.pid).children(recursive=True)
        listen = {"query": 'subscription { commentPosted(product: "p") { id } }'}
        accepted = {"accept": "text/event-stream"}
        with httpx.stream("POST", f"{killed.url}/graphql", json=listen, headers=accepted, timeout=120) as stream:
            assert stream.status_code == 200
            killed.stop(signal.SIGKILL)
            alive = _alive_after(60, processes)
        for process in alive:
            process.kill()
        assert alive == []
    port = killed.url.rpartition(":")[2]
    with running_service(data, ["--workers", "2", "--port", port]) as second:
        asked = httpx.post(f"{second.url}/graphql", json={"query": "{ viewer { name } }"}, headers=headers, timeout=60)
        assert asked.json() == {"data": {"viewer": {"name": "Kept"}}}
        assert second.stop() == 0


def test_a_worker_that_the_machine_lets_wait_is_not_killed(tmp_path: Path) -> None:
    """While it starts, or later: on a busy machine it would be killed again and again, with what it has under way."""
    with running_service({"RINGSIDE_DATA": str(tmp_path)}, ["--workers", "2"]) as service:
        workers = _workers(service.process.pid)
        for worker in workers:
            worker.suspend()
        assert _alive_after(8, workers) == workers
        for worker in workers:
            worker.resume()
        assert httpx.get(f"{service.url}/livez", timeout=60).status_code == 200
        assert service.stop() == 0


def test_workers_whose_parent_is_killed_before_they_serve_end_too(tmp_path: Path) -> None:
    """They do not wait for the engine, which has ended as well; their output is closed once all have ended."""
    with subprocess.Popen(
        [sys.executable, "-m", "server", "serve", "--port", "0", "--workers", "2"],
        env=environment(RINGSIDE_DATA=str(tmp_path)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as parent:
        while len(_workers(parent.pid)) < 2:
            assert parent.poll() is None
            time.sleep(0.01)
        parent.kill()
        output, _ = parent.communicate(timeout=LONGEST)
    assert "parent process has ended, and this worker ends too" in output


def test_no_request_fails_because_the_log_cannot_be_written(tmp_path: Path) -> None:
    """Its reader may have ended, or its disk be full. A mutation that was carried out is answered, and jobs go on."""
    with subprocess.Popen(
        [sys.executable, "-m", "server", "serve", "--port", "0"],
        env=environment(RINGSIDE_DATA=str(tmp_path)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout
        url = None
        for line in process.stdout:
            url = url or re.search(r"http://[\d.]+:\d+", line)
            if "startup complete" in line:
                break
        process.stdout.close()
        try:
            assert url
            for query in ("{ boards { nodes { slug } } }", "mutation { signOut(input: {}) { __typename } }"):
                answer = httpx.post(f"{url[0]}/graphql", json={"query": query}, timeout=60)
                assert (answer.status_code, answer.text[:9]) == (200, '{"data":{')
        finally:
            process.terminate()
        assert process.wait(LONGEST) == 0


@pytest.mark.parametrize(("arguments", "front"), [([], True), (["--no-demo"], False)])
def test_a_setting_makes_the_service_a_demo_and_adds_no_data(
    tmp_path: Path, arguments: list[str], *, front: bool
) -> None:
    """Only the option does, and --no-demo comes before the setting."""
    asked = {"query": "{ events(first: 1) { nodes { id } } }"}
    with running_service({"RINGSIDE_DATA": str(tmp_path), "RINGSIDE_DEMO": "true"}, arguments) as service:
        found = httpx.post(f"{service.url}/graphql", json=asked, timeout=60).json()
        assert found == {"data": {"events": {"nodes": []}}}
        page = httpx.get(service.url, headers={"accept": "text/html"}, timeout=60)
        assert ("ringside-tee" in page.text) is front


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full: Linux has one")
def test_a_service_starts_and_ends_although_its_output_s_disk_is_full(tmp_path: Path) -> None:
    """Or it would be down from its next start until somebody has made room."""
    with (
        Path("/dev/full").open("wb") as full,
        subprocess.Popen(
            [sys.executable, "-m", "server", "serve", "--port", "0"],
            env=environment(RINGSIDE_DATA=str(tmp_path)),
            cwd=ROOT,
            stdout=full,
            stderr=full,
        ) as process,
    ):
        try:
            port = asyncio.run(until(lambda: process.poll() is not None or _port_of(process.pid), "it listens"))
            assert httpx.get(f"http://127.0.0.1:{port}/livez", timeout=60).status_code == 200
        finally:
            process.terminate()
        assert process.wait(LONGEST) == 0


def _port_of(pid: int) -> int | None:
    listening = (each.laddr.port for each in psutil.Process(pid).net_connections("tcp4") if each.status == "LISTEN")
    return next(listening, None)


def _workers(parent: int) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["ppid", "cmdline"])
        if process.info["ppid"] == parent and "--multiprocessing-fork" in (process.info["cmdline"] or ())
    ]


def _alive_after(seconds: float, processes: Sequence[psutil.Process]) -> Sequence[psutil.Process]:
    """Those that have not ended by then; it returns as soon as all have."""
    deadline = time.monotonic() + seconds
    while (alive := [process for process in processes if _is_alive(process)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return alive


def _is_alive(process: psutil.Process) -> bool:
    try:
        # An orphan stays a zombie until the system's first process looks.
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("command", ["token --user ada", "table create", "audit", "export votes"])
def test_a_command_runs_without_the_schema(tmp_path: Path, command: str) -> None:
    """The schema and the application take half of the time in which a command starts."""
    asyncio.run(write_profiles(tmp_path, "ada"))
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "server", *command.split()],
        env=environment(RINGSIDE_DATA=str(tmp_path)), cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert "server.settings" in imported
    assert imported.isdisjoint({"schema", "strawberry", "graphql", "fastapi", "server.app"})


@pytest.mark.parametrize(
    "command",
    ["audit", "export votes -", "jobs", "member role ada --role admin", "table check", "token --user ada"],
)
def test_a_command_for_a_mistyped_data_folder_is_refused_and_begins_no_table(tmp_path: Path, command: str) -> None:
    """It would find nothing wrong, export nothing, or sign with a secret of no service, as if it had worked."""
    refused = ringside(*command.split(), RINGSIDE_DATA=str(tmp_path / "mistyped"))
    assert refused.returncode == 1
    assert f"There is no table in {tmp_path / 'mistyped'}. Set RINGSIDE_DATA" in refused.stderr
    assert not refused.stdout
    assert not (tmp_path / "mistyped" / "table").exists()


UNREACHABLE = "x" * 300
"""A name that is too long: looking for it fails, as behind a folder that this user may not open."""


@pytest.mark.parametrize(
    ("command", "variables", "refused"),
    [
        ("import contenders FILE", {}, "FILE cannot be used"),
        ("restore FILE", {}, "FILE cannot be used"),
        ("table check", {"RINGSIDE_TRUSTED_DOCUMENTS": "FILE"}, "FILE cannot be used"),
        ("audit", {"RINGSIDE_DATA": "FILE"}, "FILE/lock cannot be read"),
        ("backup TARGET", {"RINGSIDE_DATA": "FILE"}, "FILE/table/table.db cannot be read"),
        ("export all TARGET", {"RINGSIDE_DATA": "FILE"}, "FILE/table/table.db cannot be read"),
    ],
)
def test_a_file_that_cannot_be_looked_for_is_named(
    tmp_path: Path, command: str, variables: dict[str, str], refused: str
) -> None:
    """And no other one is, and nothing that only programmers read."""

    def full(text: str) -> str:
        return text.replace("FILE", f"{tmp_path / UNREACHABLE}").replace("TARGET", f"{tmp_path / 'target'}")

    data = {"RINGSIDE_DATA": str(tmp_path), "RINGSIDE_SECRETS": "s" * 48, "COLUMNS": "1000"}
    done = ringside(*map(full, command.split()), **{**data, **{key: full(value) for key, value in variables.items()}})
    assert done.returncode == 1
    assert done.stderr.strip().startswith(full(refused)), done.stderr
    assert "Traceback" not in done.stderr


def test_a_new_deployment_s_first_key_begins_its_table(tmp_path: Path) -> None:
    key = ringside("apikey", "create", "shop", "--role", "editor", RINGSIDE_DATA=str(tmp_path / "data"))
    assert key.returncode == 0, key.stderr
    listed = ringside("apikey", "list", RINGSIDE_DATA=str(tmp_path / "data"))
    assert "shop" in listed.stdout


@pytest.mark.parametrize("what", ["member ada", "comments", "votes"])
def test_an_exported_file_is_readable_only_by_its_owner(tmp_path: Path, what: str) -> None:
    """It holds what members have entrusted to the service; a file that existed keeps its mode."""
    asyncio.run(write_profiles(tmp_path / "data", "ada"))
    file, usual = tmp_path / "out.jsonl", os.umask(0o022)
    try:
        for mode in (0o600, 0o640):
            exported = ringside("export", *what.split(), str(file), RINGSIDE_DATA=str(tmp_path / "data"))
            assert exported.returncode == 0, exported.stderr
            assert stat.S_IMODE(file.stat().st_mode) == mode
            file.chmod(0o640)
    finally:
        os.umask(usual)


def test_a_taken_port_is_a_readable_refusal(tmp_path: Path) -> None:
    """It names the port and what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = ringside_process("serve", "--port", port, RINGSIDE_DATA=str(tmp_path))
    assert refused.returncode == 1
    assert f"Port {port}" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("host", ["nope.invalid", "192.0.2.1"])
def test_a_host_that_is_not_this_machine_s_is_refused_with_advice_on_the_host(tmp_path: Path, host: str) -> None:
    """No name of anything, and an address of the documentation's networks: another port would not help."""
    refused = ringside_process("serve", "--host", host, "--port", "0", RINGSIDE_DATA=str(tmp_path), COLUMNS="200")
    assert refused.returncode == 1
    assert f"Nothing can listen on {host}" in refused.stderr
    assert "choose another --host" in refused.stderr
    assert "--port" not in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_port_that_is_taken_meanwhile_is_the_same_refusal() -> None:
    """Two services may both be bound to a port while they prepare their tables; one of them listens."""
    with serve._listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with serve._listen("127.0.0.1", port) as second:
            serve._let_connections_wait(first)
            with pytest.raises(Failed, match=rf"Port {port} on 127\.0\.0\.1 cannot be used: Address already in use"):
                serve._let_connections_wait(second)


def test_a_data_folder_in_use_is_a_readable_refusal(tmp_path: Path) -> None:
    """A second service is refused; a command shares the first one's engine."""
    data = {"RINGSIDE_DATA": str(tmp_path)}
    with running_service(data):
        refused = ringside_process("serve", "--port", "0", **data)
        assert (refused.returncode, "in use" in refused.stderr) == (1, True)
        assert ringside("audit", **data).returncode == 0


@pytest.mark.parametrize("variables", [{}, {"RINGSIDE_DYNAMODB_URL": "embedded"}, {"RINGSIDE_BODY_TIMEOUT": "0.5"}])
def test_no_test_starts_a_service_or_command_on_the_checkout_s_own_data(variables: dict[str, str]) -> None:
    """`make run` may be serving it meanwhile, and a test would upgrade its table."""
    with pytest.raises(ValueError, match="give RINGSIDE_DATA a folder"):
        ringside_process("audit", **variables)
    with pytest.raises(ValueError, match="give RINGSIDE_DATA a folder"), running_service(variables):
        pass


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"RINGSIDE_MAX_IN_FLIGHT": "many"}, "RINGSIDE_MAX_IN_FLIGHT"),
        ({"RINGSIDE_DYNAMODB_URL": "ftp://x"}, "RINGSIDE_DYNAMODB_URL"),
        ({"RINGSIDE_DYNAMODB_URL": "http://127.0.0.1:9", "RINGSIDE_SECRETS": "short"}, "RINGSIDE_SECRETS"),
        ({"RINGSIDE_DYNAMODB_URL": "http://127.0.0.1:9"}, "RINGSIDE_SECRETS"),
        ({"RINGSIDE_TABEL": "x"}, "RINGSIDE_TABLE"),
    ],
)
def test_a_wrong_setting_is_named(variables: dict[str, str], named: str, tmp_path: Path) -> None:
    """The refusal names the variable and says what to write."""
    refused = ringside_process("serve", "--port", "0", RINGSIDE_DATA=str(tmp_path), **variables)
    assert refused.returncode == 1
    assert named in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_table_with_other_keys_is_refused(default_engine: RunningEngine, table_name: str) -> None:
    """Both by `table check` and by `serve`, with what is different."""
    client = boto3.client(
        "dynamodb",
        endpoint_url=default_engine.url,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
    )
    client.create_table(
        TableName=table_name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    variables = on_table(default_engine.url, table_name, RINGSIDE_SECRETS=SECRET)
    for command in (("table", "check"), ("serve", "--port", "0")):
        refused = ringside(*command, **variables)
        assert refused.returncode == 1
        assert "its keys are id (hash)" in refused.stderr


def test_an_engine_that_does_not_answer_is_a_readable_refusal() -> None:
    """It says which setting to look at."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        refused = ringside_process("table", "check", RINGSIDE_DYNAMODB_URL=url, RINGSIDE_SECRETS=SECRET)
    assert refused.returncode == 1
    assert "RINGSIDE_DYNAMODB_URL" in refused.stderr


def test_help_teaches_the_settings(tmp_path: Path) -> None:
    """`serve --help` describes every variable."""
    shown = ringside_process("serve", "--help", RINGSIDE_DATA=str(tmp_path)).stdout
    assert [name for name in map(variable, Settings.model_fields) if name not in shown] == []


def test_the_schema_is_printed(tmp_path: Path) -> None:
    assert "type Query" in ringside("schema", RINGSIDE_DATA=str(tmp_path)).stdout


def test_a_bad_user_id_gets_no_token(tmp_path: Path) -> None:
    refused = ringside("token", "--user", "", RINGSIDE_DATA=str(tmp_path))
    assert (refused.returncode, refused.stdout) == (1, "")


def test_a_manifest_is_made_of_files_that_fit_the_schema(tmp_path: Path) -> None:
    """What the command prints, the service starts with; a file that would not run is named, with the reason."""
    data = {"RINGSIDE_DATA": str(tmp_path)}
    good, bad = tmp_path / "good.graphql", tmp_path / "bad.graphql"
    good.write_text("query Type { __typename }")
    bad.write_text("{ nobody { id } }")
    made = ringside("manifest", str(good), **data)
    assert read_manifest(_written(tmp_path / "manifest.json", made.stdout)) == {
        hash_of(good.read_text()): good.read_text()
    }
    refused = ringside("manifest", str(good), str(bad), **data)
    assert refused.returncode == 1
    assert f"{bad} is not a valid document: Cannot query field 'nobody'" in refused.stderr


DEAR = "query Dear { boards(first: 100) { nodes { leaderboard(first: 100) { nodes { rank wins losses } } } } }"


def test_a_manifest_has_no_document_that_the_limits_would_always_refuse(tmp_path: Path) -> None:
    """By the settings of the environment, which may allow more; they are read without making a secret."""
    data = {"RINGSIDE_DATA": str(tmp_path / "none")}
    dear = _written(tmp_path / "dear.graphql", DEAR)
    refused = ringside("manifest", str(dear), **data)
    assert refused.returncode == 1
    assert f"{dear} is not a valid document: This operation asks for up to " in refused.stderr
    allowed = ringside("manifest", str(dear), RINGSIDE_MAX_COMPLEXITY="1000000", **data)
    assert (allowed.returncode, allowed.stderr) == (0, "")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_manifest_with_a_document_that_is_not_valid_is_refused_at_the_start(tmp_path: Path, workers: str) -> None:
    """It may come from a client's compiler. One sentence names the document, whatever number of processes serves."""
    text = "{ nobody { id } }"
    manifest = _written(tmp_path / "manifest.json", json.dumps({f"sha256:{hash_of(text)}": text}))
    refused = ringside_process(
        "serve", "--port", "0", "--workers", workers,
        RINGSIDE_DATA=str(tmp_path / "data"), RINGSIDE_TRUSTED_DOCUMENTS=str(manifest),
    )  # fmt: skip
    assert refused.returncode == 1
    (message,) = refused.stderr.splitlines()
    assert message.startswith(f"The manifest's document {hash_of(text)} is not valid: Cannot query field 'nobody'")


def _written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def test_a_name_that_the_terminal_s_encoding_lacks_is_escaped(tmp_path: Path) -> None:
    """A list has a name in any language, and a terminal some encoding: what was done is told, and has not failed."""
    words = tmp_path / "words.csv"
    words.write_text("term,definition\n词,word\n", encoding="utf-8")
    data = {"RINGSIDE_DATA": str(tmp_path / "data"), "PYTHONIOENCODING": "ascii"}
    imported = ringside_process("import", "words", str(words), "--list", "词汇", **data)
    assert (imported.returncode, imported.stdout) == (0, "1 words added to \\u8bcd\\u6c47, 0 existed already.\n")
