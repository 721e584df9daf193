"""A pytest plugin that records the lines and branches of the four layers that each test executes in its process.

    RINGSIDE_RECORD=folder python -m pytest -p tests.planted.recorder

Each process of pytest-xdist writes a file of its own into the folder, and how long its tests took into another one. A
test includes its fixtures; what a fixture of the session executes counts for the first test that needs it.
"""

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

LAYERS = ("server", "schema", "resolvers", "datastore")
ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ["RINGSIDE_RECORD"])
PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "main")

recording = coverage.Coverage(
    data_file=FOLDER / f"lines-{PROCESS}",
    branch=True,
    source=[str(ROOT / layer) for layer in LAYERS],
    config_file=False,
)
seconds: dict[str, float] = defaultdict(float)

# Now, before any module of the layers is imported.
recording.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    recording.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        recording.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    recording.stop()
    recording.save()
    (FOLDER / f"seconds-{PROCESS}.json").write_text(json.dumps(seconds), encoding="utf-8")
