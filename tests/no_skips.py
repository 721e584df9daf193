"""Where CI=true nothing is skipped: a missing engine or browser is a failure there, on other machines a reason."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

EVERYTHING = os.environ.get("CI") == "true"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that skips itself, or whose fixture does."""
    report = yield
    return _kept(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that skips itself."""
    report = yield
    return _kept(report)


def _kept(report: Report) -> Report:
    if EVERYTHING and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"Skipped, and where CI=true nothing is: {report.longrepr}"
    return report
