"""With CI=true a skipped test is a failure: there every engine and browser must be installed."""

import os
from collections.abc import Generator
from typing import TypeVar

import pytest

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

CI = os.environ.get("CI") == "true"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """For a test that skips itself, or whose fixture does."""
    report = yield
    return _fail_if_skipped(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """For a module that skips itself."""
    report = yield
    return _fail_if_skipped(report)


def _fail_if_skipped(report: Report) -> Report:
    if CI and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"Skipped, which is a failure with CI=true: {report.longrepr}"
    return report
