"""Fixtures: the service with the settings of production, watched while it is attacked."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import httpx
import pytest

from tests.attack.raw_http import resident_bytes
from tests.service import Service, running_service

PRODUCTION = {
    "RINGSIDE_SECRETS": "a secret that is long enough to be one in production",
    "RINGSIDE_INTROSPECTION": "off",
    "RINGSIDE_LOG": "info,json",
}
LARGEST_MEMORY = 250_000_000
PAUSE = 0.02


@dataclass
class Watch:
    """What a service answered to the question whether it lives, and its memory, during a test."""

    service: Service
    statuses: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        with httpx.Client(base_url=self.service.url, timeout=300) as http:
            while True:
                self.statuses.append(http.get("/livez").status_code)
                self.memory.append(resident_bytes(self.service.process.pid))
                if self.ended.wait(PAUSE):
                    return


@pytest.fixture(scope="session")
def production(demo_data: Callable[[], str]) -> Iterator[Service]:
    """The service as operators run it, with demo data; one for all tests."""
    with running_service({"RINGSIDE_DATA": demo_data(), **PRODUCTION}, ["--demo"]) as service:
        yield service


@pytest.fixture
def attacked(production: Service) -> Iterator[Service]:
    """The same: throughout the test it answers /livez, its memory stays small, and it logs no traceback."""
    watch = Watch(production)
    watching = threading.Thread(target=watch.look)
    watching.start()
    try:
        yield production
    finally:
        watch.ended.set()
        watching.join()
    assert set(watch.statuses) == {200}
    assert max(watch.memory) < LARGEST_MEMORY
    assert [line for line in production.lines if "Traceback" in line or '"exception"' in line] == []
