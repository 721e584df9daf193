"""A pytest plugin that runs the tests of a list in the list's order, and writes down which one is running.

RINGSIDE_CHOSEN=folder python -m pytest -p tests.planted.chosen tests/engine/test_x.py
"""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ["RINGSIDE_CHOSEN"])
PLACES = {test: place for place, test in enumerate((FOLDER / "tests").read_text(encoding="utf-8").splitlines())}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in PLACES])
    items[:] = sorted((item for item in items if item.nodeid in PLACES), key=lambda item: PLACES[item.nodeid])


def pytest_runtest_logstart(nodeid: str) -> None:
    (FOLDER / "running").write_text(nodeid, encoding="utf-8")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        (FOLDER / "failed").write_text(report.nodeid, encoding="utf-8")
