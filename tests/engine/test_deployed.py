"""The deployment files' commands, environments and probes, run as processes: what an orchestrator would run.

Only the addresses differ, and the ports: DynamoDB's is that of the tests' engine. `.ci/container.py` runs the image.
"""

import asyncio
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from server.engine.process import find_binary
from tests.command import ringside_process
from tests.deployment_files import UNITS, cron_jobs, pod_specs, resource, template
from tests.engines import RunningEngine, engine_program
from tests.generated import ROOT
from tests.mail_server import Mailbox, mail_server_beside
from tests.service import running_service
from tests.waiting import LONGEST, until

pytestmark = pytest.mark.soak

SECRET = "a secret of a deployment that is only rehearsed"
MEMBER_QUERY = {"query": "{ events(first: 1) { nodes { id } } viewer { name } }"}
POD = "10.4.3.2:8000"
"""The host that probes and load balancers name: the container's own address, not the site's."""


def composed(file: str) -> dict[str, Any]:
    return {
        name: service | {"environment": {key: expanded(str(value)) for key, value in service["environment"].items()}}
        for name, service in yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["services"].items()
        if "environment" in service
    }


def expanded(value: str) -> str:
    """A value with the defaults of its variables, and a secret where one is demanded."""
    return re.sub(r"\$\{\w+(:-|:\?)([^}]*)\}", lambda found: found[2] if found[1] == ":-" else SECRET, value)


def of_image() -> list[str]:
    """The arguments that the image gives to `ringside` if a deployment names none."""
    found = re.findall(r"^CMD (\[.*\])", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    command: list[str] = yaml.safe_load(found[-1])
    return command


def serving(command: Sequence[str]) -> list[str]:
    """The arguments after `serve`, without the port, which the tests choose."""
    assert command[0] == "serve"
    return re.sub(r" ?--port \d+", "", " ".join(command[1:])).split()


def done(process: subprocess.CompletedProcess[str]) -> str:
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture
def at_engine(default_engine: RunningEngine, table_name: str) -> dict[str, str]:
    """What replaces the address of DynamoDB."""
    return {"RINGSIDE_DYNAMODB_URL": default_engine.url, "RINGSIDE_TABLE": table_name}


@pytest.fixture
def mail(tmp_path: Path) -> Iterator[str]:
    with mail_server_beside(Mailbox(), tmp_path) as address:
        yield address


def answers(url: str) -> None:
    """A member's first query, by the address that the site's proxy would use."""
    answer = httpx.post(f"{url}/graphql", json=MEMBER_QUERY, timeout=60).json()
    assert "errors" not in answer, answer


def ready(url: str, **headers: str) -> None:
    """Wait until the service says so: on a busy machine its engine may miss the two seconds that a check has."""
    asyncio.run(until(lambda: httpx.get(url, headers=headers, timeout=60).status_code == 200, f"{url} is ready"))


def test_compose_creates_its_table_and_serves_it(at_engine: dict[str, str]) -> None:
    """The table's container runs again at each start, and finds its work done."""
    services = composed("compose.yaml")
    for _ in range(2):
        table = services["table"]
        done(ringside_process(*table["command"], **table["environment"] | at_engine))
    service = services["ringside"]
    with running_service(service["environment"] | at_engine, serving(service["command"])) as started:
        answers(started.url)
        ready(f"{started.url}/readyz")


def test_compose_with_the_embedded_engine_makes_a_backup_that_can_be_restored(tmp_path: Path, mail: str) -> None:
    """Also the guide's line for cron, beside the service. What came after the backup is gone."""
    (service,) = composed("compose.embedded.yaml").values()
    variables = service["environment"] | {
        "RINGSIDE_DYNAMODB_URL": "embedded",
        "RINGSIDE_DATA": str(tmp_path),
        "RINGSIDE_SMTP_URL": mail,
    }
    with running_service(variables, serving(of_image())) as started:
        answers(started.url)
        folder = tmp_path / "backups"
        backups = asyncio.run(until(lambda: sorted(folder.glob("*.db")), "there is a backup", pause=0.1))
        done(ringside_process("emails", **variables))
        done(ringside_process("demo", **variables))
    done(ringside_process("restore", str(backups[-1]), **variables))
    with running_service(variables, serving(of_image())) as started:
        answer = httpx.post(
            f"{started.url}/graphql", json={"query": "{ events(first: 1) { nodes { id } } }"}, timeout=60
        ).json()
        assert answer["data"]["events"]["nodes"] == []


def test_kubernetes_probes_and_jobs_fit_the_service(at_engine: dict[str, str], mail: str) -> None:
    """The kubelet names the pod's own address as the host; what the route makes public is there."""
    variables = resource("ConfigMap")["data"] | {"RINGSIDE_SECRETS": SECRET} | at_engine
    done(ringside_process("table", "create", **variables))
    (container,) = pod_specs()[0]["containers"]
    with running_service(variables, serving(container.get("args", of_image()))) as started:
        for kind in ("startup", "liveness", "readiness"):
            path = container[f"{kind}Probe"]["httpGet"]["path"]
            ready(f"{started.url}{path}", Host=POD)
        scraped = resource("Deployment")["spec"]["template"]["metadata"]["annotations"]["prometheus.io/path"]
        assert "ringside_" in httpx.get(f"{started.url}{scraped}", headers={"Host": POD}, timeout=60).text
        answers(started.url)
        route = resource("HTTPRoute")["spec"]
        for public in route["rules"][0]["matches"]:
            path, host = public["path"]["value"], {"Host": route["hostnames"][0]}
            answer = httpx.get(f"{started.url}{path}", headers=host, timeout=60)
            assert answer.status_code != 421, public
            assert answer.status_code < 500, public
        for job in cron_jobs():
            (worker,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
            done(ringside_process(*worker["args"], **variables, RINGSIDE_SMTP_URL=mail))


def test_ecs_tasks_run_and_are_healthy(at_engine: dict[str, str], mail: str) -> None:
    """The health check's own command finds the service, and fails once that is gone."""
    stack = template("ecs.cloudformation.yaml")
    defaults = {name: each["Default"] for name, each in stack["Parameters"].items() if "Default" in each}
    parameters = defaults | {
        "PublicUrl": "https://ringside.example.org",
        "TrustedProxies": "10.0.0.0/24,10.0.1.0/24",
        "SigningSecrets": SECRET,
        "SmtpUrl": mail,
        "AWS::Region": "eu-central-1",
    }
    tasks = stack["Resources"]
    (service,), (daily,) = (tasks[name]["Properties"]["ContainerDefinitions"] for name in ("ServiceTask", "DailyTask"))

    def variables(container: Mapping[str, Any]) -> dict[str, str]:
        plain = {each["Name"]: each["Value"] for each in container["Environment"]}
        secret = {each["Name"]: each["ValueFrom"] for each in container["Secrets"]}
        values = {name: parameters.get(value, value) for name, value in (plain | secret).items()}
        return values | at_engine

    done(ringside_process("table", "create", **variables(service)))
    with running_service(variables(service), serving(service.get("Command", of_image()))) as started:
        kind, python, *arguments = service["HealthCheck"]["Command"]
        assert (kind, python) == ("CMD", "python")
        check = [sys.executable, *(each.replace("http://127.0.0.1:8000", started.url) for each in arguments)]
        asyncio.run(until(lambda: subprocess.run(check, check=False).returncode == 0, "the task is healthy"))
        ready(f"{started.url}/readyz", Host=POD)
        answers(started.url)
        done(ringside_process(*daily["Command"], **variables(daily)))
    assert subprocess.run(check, capture_output=True, check=False).returncode != 0


def test_systemd_units_share_one_engine(tmp_path: Path, mail: str) -> None:
    """The daily unit uses the engine of the service, in the same folder."""
    binary = find_binary(tmp_path)
    assert binary is not None

    def parsed(unit: str) -> tuple[list[str], dict[str, str]]:
        (file,) = (each for each in UNITS if each.name == unit)
        text = file.read_text(encoding="utf-8")
        values = dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE))
        values |= {"RINGSIDE_ENGINE_BINARY": str(binary), "RINGSIDE_SMTP_URL": mail}
        values["RINGSIDE_DATA"] = values["RINGSIDE_DATA"].replace("%S", str(tmp_path))
        (command,) = re.findall(r"^ExecStart=/opt/ringside/bin/ringside (.*)$", text, re.MULTILINE)
        return shlex.split(command), values

    (tmp_path / "ringside").mkdir()
    command, variables = parsed("ringside.service")
    with running_service(variables, serving(command)) as started:
        answers(started.url)
        daily, environment_of_daily = parsed("ringside-daily.service")
        done(ringside_process(*daily, **environment_of_daily))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["notify", "\0ringside-notify-{}"])
def test_the_service_tells_systemd_of_its_start_once_it_holds_the_engine(
    tmp_path: Path, workers: int, name: str
) -> None:
    """Once, by whichever kind of socket: until then systemd starts no unit that comes after it."""
    engine_program("dynoxide", tmp_path)
    path = name.format(os.getpid()) if name.startswith("\0") else str(tmp_path / name)
    variables = {"RINGSIDE_DATA": str(tmp_path / "data"), "NOTIFY_SOCKET": path.replace("\0", "@")}
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as systemd, ThreadPoolExecutor() as receiver:
        systemd.bind(path)
        systemd.settimeout(LONGEST)
        told = receiver.submit(lambda: (systemd.recv(100), (tmp_path / "data" / "lock").read_text().split()[0]))
        with running_service(variables, ["--workers", f"{workers}"]) as started:
            assert told.result() == (b"READY=1", f"{started.process.pid}")
        systemd.setblocking(False)
        with pytest.raises(BlockingIOError):
            systemd.recv(100)


def test_a_service_that_cannot_reach_systemd_says_so_and_serves(tmp_path: Path) -> None:
    """Such as one whose variable is left over from a unit that is gone."""
    engine_program("dynoxide", tmp_path)
    variables = {"RINGSIDE_DATA": str(tmp_path / "data"), "NOTIFY_SOCKET": str(tmp_path / "gone")}
    with running_service(variables) as started:
        ready(f"{started.url}/readyz")
    assert any("could not be told of the start" in line for line in started.lines)
