"""Fixtures: engines, a table for each test, the service in this process or in one of its own, its clients."""

import fcntl
import functools
import gc
import os
import shutil
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aioboto3
import botocore.session
import pytest
from hypothesis import settings as hypothesis_settings
from websockets.asyncio.client import connect

from datastore.dynamo import RateLimit, Table, open_table, retries
from datastore.dynamo.declaration import create
from datastore.whole.layout import ensure_layout
from resolvers.members import api_keys, sessions
from server import app, audit
from server.auth import identification, oidc_client
from server.engine import folder, process
from server.engine import table as engine_table
from server.settings import Settings
from tests.client import Client, serving
from tests.engines import (
    ReachableEngine,
    RunningEngine,
    default_engine,
    engine,
    engine_pair,
    engine_program,
    pytest_generate_tests,
    table_name,
)
from tests.examples import examples
from tests.no_skips import pytest_make_collect_report, pytest_runtest_makereport
from tests.service import Service, running_service
from tests.waiting import LONGEST

__all__ = [
    "default_engine",
    "engine",
    "engine_pair",
    "pytest_generate_tests",
    "pytest_make_collect_report",
    "pytest_runtest_makereport",
    "table_name",
]

# By default hypothesis fails an example that takes longer than 0.2 s, which any may do on a busy machine.
hypothesis_settings.register_profile("ringside", deadline=None, max_examples=examples(100))
hypothesis_settings.load_profile("ringside")

# A service opens one client; tests open thousands, and each would read the SDK's models anew: 0.1 s of CPU.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)

# Nor would it make more than one session. Those with credentials of their own are for engines, and all alike.
_made, _kept = aioboto3.Session, functools.cache(aioboto3.Session)
aioboto3.Session = lambda **given: (_kept if "aws_access_key_id" in given else _made)(**given)

# Each client would read all authorities that the machine trusts: 20 ms of CPU.
_make_context = ssl.create_default_context


@functools.cache
def _kept_context(_trusted: str | None, **given: Any) -> ssl.SSLContext:
    return _make_context(**given)


def _context(*purpose: ssl.Purpose, **given: Any) -> ssl.SSLContext:
    return _make_context(*purpose, **given) if purpose else _kept_context(os.environ.get("SSL_CERT_FILE"), **given)


ssl.create_default_context = _context

# The garbage collector took a sixth of the CPU: most of what it looked at stays, as `pytest_collection_finish` says.
gc.set_threshold(20_000, 10, 10)

# A busy machine may need longer than a service has to begin, an engine to end, or a provider to say who signs in, or
# than a client waits for a pong.
for _module in (app, engine_table):
    vars(_module)["START_SECONDS"] = LONGEST
vars(folder)["LOCK_TIMEOUT"] = LONGEST
vars(oidc_client)["FETCH_SECONDS"] = LONGEST
_defaults = connect.__init__.__kwdefaults__
assert _defaults is not None
_defaults.update(open_timeout=LONGEST, ping_interval=None, close_timeout=60)

# A test may start processes, each of which would compile the service's modules for a second if nobody kept them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

DAY = 86_400
IN_MEMORY = tuple(Path(__file__).with_name(folder) for folder in ("unit", "property"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `quick` what needs no engine and is not `slow`, before the run's own choice of marks."""
    for item in items:
        if any(map(item.path.is_relative_to, IN_MEMORY)) and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.quick)


def pytest_collection_finish() -> None:
    """The tests stay, and all that they import: the garbage collector need not look there."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    """Let no day end (UTC) in the middle of a test: what it did today it would look for among tomorrow's."""
    if (left := DAY - time.time() % DAY) < 120:
        time.sleep(left)


SECRET = "a secret that is long enough to be one, in tests"


def settings_for(engine: ReachableEngine, table_name: str, **more: object) -> Settings:
    """Settings with a timeout that a busy machine keeps, and room for a test's many requests of one address."""
    given: dict[str, Any] = {"request_timeout": 60.0, "max_in_flight": 512, **more}
    return Settings(dynamodb_url=engine.url, table=table_name, secrets=(SECRET,), introspection="on", **given)


@pytest.fixture(autouse=True)
def brief_pauses_of_the_audit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the test's engine lags: no index of the others is behind, only a settling may be, on a busy machine."""
    if "engine" not in request.fixturenames or request.getfixturevalue("engine").name != "lagging":
        monkeypatch.setattr(audit, "PAUSE_SECONDS", 0.4)


@pytest.fixture
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open sockets, and what a process knows of sessions and keys, are looked at ten times a second."""
    for module, name in ((sessions, "KNOWN_SECONDS"), (api_keys, "KNOWN_SECONDS"), (identification, "CHECK_SECONDS")):
        monkeypatch.setattr(module, name, 0.1)


@pytest.fixture
def only_port(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets embedded engines use this port alone, which need not be one that browsers refuse."""
    return lambda port: monkeypatch.setattr(process, "BAD_PORTS", (port,))


@pytest.fixture
def nothing_logged_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trouble that another test has met is logged again, and then not once more, however long this test takes."""
    monkeypatch.setattr(retries, "_logged", RateLimit(1, 86_400.0))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder that does not exist yet, on a machine that has dynoxide."""
    engine_program("dynoxide", tmp_path)
    return tmp_path / "data"


@pytest.fixture
def settings(default_engine: RunningEngine, table_name: str) -> Settings:
    """Settings of a service on the default engine."""
    return settings_for(default_engine, table_name)


@asynccontextmanager
async def create_table(name: str, url: str) -> AsyncIterator[Table]:
    async with open_table(name, url=url) as table:
        await create(table)
        await ensure_layout(table)
        yield table
        await table.client.delete_table(TableName=name)


@pytest.fixture
async def table(engine: RunningEngine, table_name: str) -> AsyncIterator[Table]:
    """An empty table, on each of the engines."""
    async with create_table(table_name, engine.url) as table:
        yield table


@pytest.fixture
async def one_table(default_engine: RunningEngine, table_name: str) -> AsyncIterator[Table]:
    """An empty table on one engine, the default one, for tests that do not depend on the engine."""
    async with create_table(table_name, default_engine.url) as table:
        yield table


@pytest.fixture
async def client(table: Table, engine: RunningEngine) -> AsyncIterator[Client]:
    """An anonymous visitor of the service, on each of the engines."""
    async with serving(settings_for(engine, table.name), table) as visitor:
        yield visitor


@pytest.fixture
async def one_client(one_table: Table, settings: Settings) -> AsyncIterator[Client]:
    """An anonymous visitor of the service on one engine, the default one."""
    assert one_table.name == settings.table
    async with serving(settings, one_table) as visitor:
        yield visitor


@pytest.fixture
async def impatient(one_table: Table, settings: Settings) -> AsyncIterator[Client]:
    """The same of a service whose requests end after ten seconds, for tests that wait for that."""
    async with serving(settings.model_copy(update={"request_timeout": 10.0}), one_table) as visitor:
        yield visitor


@pytest.fixture(scope="session")
def demo_data(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """Make a data folder with the demo's data, a copy of one: to fill it takes half of the CPU of a test's service."""
    whole_run = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        whole_run = whole_run.parent
    filled, is_filled = whole_run / "demo", whole_run / "demo-is-filled"
    with (whole_run / "demo.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_filled.exists():
            with running_service({"RINGSIDE_DATA": str(filled)}, ["--demo"]) as service:
                assert service.stop() == 0
            is_filled.touch()

    def copied() -> str:
        return str(shutil.copytree(filled, tmp_path_factory.mktemp("demo") / "data"))

    return copied


@pytest.fixture(scope="session")
def service(demo_data: Callable[[], str]) -> Iterator[Service]:
    """The service with its demo data in a process of its own, as `make run` starts it; one for all tests."""
    with running_service({"RINGSIDE_DATA": demo_data(), "RINGSIDE_REQUEST_TIMEOUT": "60"}, ["--demo"]) as service:
        yield service
