"""Whether the tests find a planted bug: those that execute its lines run until one fails, the cheapest first."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.planted.bugs import Bug, Gone
from tests.planted.records import Record

ROOT: Final = Path(__file__).resolve().parents[2]
INSTALLED: Final = (
    ".venv", "deploy/engine/node_modules", "tests/node/node_modules", "explorer/node_modules",
    "server/http/pages/explorer",
)  # fmt: skip
LONGEST_TEST: Final = 120.0
"""After so many seconds, and twenty times what the test took, it hangs: the bug is found."""


@dataclass(frozen=True)
class Result:
    """What became of a bug: found by a test, not found, or gone from the code."""

    bug: str
    outcome: str
    tests: int
    test: str = ""
    seconds: int = 0


def copy_tree(to: Path) -> None:
    """Copy the files that git knows of, and link to what is installed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)
    for name in INSTALLED:
        with suppress(FileExistsError):
            (to / name).symlink_to((ROOT / name).resolve())


def find(bug: Bug, record: Record, tree: Path, minutes: float) -> Result:
    """Plant the bug in the tree and run the tests that execute its lines, for some minutes at most."""
    try:
        tests = record.tests_of(bug.path, bug.lines(tree))
    except Gone as gone:
        return Result(bug.name, f"gone: {gone}", 0)
    cheapest = sorted(tests, key=lambda test: ("[lagging" in test, record.seconds.get(test, 0.0), test))
    began = time.monotonic()
    failed, outcome = "", "not found"
    left = cheapest
    while left:
        with bug.planted(tree):
            failed, outcome = _run(tree, left, record, began + minutes * 60 - time.monotonic())
        if failed not in left or outcome != "found" or _run(tree, [failed], record, LONGEST_TEST)[1] == "not found":
            break
        # It fails without the bug too, for instance beside a load.
        left = left[left.index(failed) + 1 :]
        failed, outcome = "", "not found"
    return Result(bug.name, outcome, len(tests), failed, round(time.monotonic() - began))


def _run(tree: Path, tests: Sequence[str], record: Record, seconds: float) -> tuple[str, str]:
    """Run these tests until one fails; return it and "found", "not found", or "not found in time"."""
    folder = tree / ".chosen"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "tests").write_text("\n".join(tests), encoding="utf-8")
    files = sorted({test.split("::")[0] for test in tests})
    with (tree / "output.log").open("a", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-x", "--tb=short", "--show-capture=no", "-p", "no:cacheprovider",
             "-p", "tests.planted.chosen", *files],
            cwd=tree, env={**os.environ, "RINGSIDE_CHOSEN": str(folder)}, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    outcome = _watch(process, folder, record, seconds)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    name = folder / ("failed" if outcome == "found" else "running")
    return (name.read_text(encoding="utf-8") if outcome.startswith("found") and name.exists() else ""), outcome


def _watch(process: subprocess.Popen[bytes], folder: Path, record: Record, seconds: float) -> str:
    ends = time.monotonic() + seconds
    running, since = "", time.monotonic()
    while process.poll() is None:
        time.sleep(0.5)
        with suppress(FileNotFoundError):
            if (now := (folder / "running").read_text(encoding="utf-8")) != running:
                running, since = now, time.monotonic()
        if running and time.monotonic() - since > max(LONGEST_TEST, 20 * record.seconds.get(running, 0.0)):
            return "found: hangs"
        if time.monotonic() > ends:
            return "not found in time"
    return "not found" if process.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else "found"
