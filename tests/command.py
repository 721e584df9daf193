"""A command of the command line, run in this process: a new one takes two seconds to import what it needs."""

import contextlib
import io
import logging
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock, Thread

import structlog

from server.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
_TIMEOUT = 300.0
_ONE_AT_A_TIME = Lock()
"""The environment and the standard streams are the whole process's."""


def on_table(url: str, name: str, **more: str) -> dict[str, str]:
    """The settings of a process on an engine's table. Without RINGSIDE_SECRETS it has one that signs nothing else."""
    return {"RINGSIDE_DYNAMODB_URL": url, "RINGSIDE_TABLE": name, "RINGSIDE_SECRETS": "s" * 48, **more}


def environment(**variables: str) -> dict[str, str]:
    """This process's environment with these settings, and no others.

    They name a data folder or an engine: without either a command uses `.ringside/`, the developer's own.
    """
    if not variables.get("RINGSIDE_DATA") and variables.get("RINGSIDE_DYNAMODB_URL", "embedded") == "embedded":
        raise ValueError("give RINGSIDE_DATA a folder of the test's own, or RINGSIDE_DYNAMODB_URL an engine's address")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RINGSIDE_")}
    return {**inherited, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **variables}


def ringside_process(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the command line as a process of its own; `ringside` does without one.

    It begins again if an engine of its own did not answer in time at its start: nothing was done then.
    """
    patience = time.monotonic() + _TIMEOUT
    while True:
        done = subprocess.run(
            [sys.executable, "-m", "server", *arguments],
            env=environment(**variables),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        is_slow = "RINGSIDE_DYNAMODB_URL" not in variables and "did not answer within" in done.stderr
        if not is_slow or time.monotonic() > patience:
            return done


def ringside(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command with these settings and no others, in a thread of its own: it may have an event loop of its own.

    `serve` handles signals, which only a process's main thread may. A test of what a process does, such as starting,
    ending or being killed, uses `ringside_process`, too.
    """
    if arguments[0] == "serve":
        return ringside_process(*arguments, **variables)
    return ringside_given(b"", *arguments, **variables)


def ringside_given(content: bytes, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The same for a command that reads standard input."""
    source, out, err, codes = _stream(content), _stream(), _stream(), list[int]()

    def run() -> None:
        with _variables(environment(**variables)), _streams(source, out, err):
            codes.append(_exit_code(arguments, err))

    with _ONE_AT_A_TIME:
        thread = Thread(target=run)
        thread.start()
        thread.join()
    return subprocess.CompletedProcess(arguments, codes[0], _text(out), _text(err))


def _exit_code(arguments: tuple[str, ...], err: io.TextIOWrapper) -> int:
    try:
        main(arguments)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=err)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:  # noqa: BLE001 - what the interpreter does with it
        traceback.print_exc(file=err)
        return 1
    return 0


def _stream(content: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


@contextlib.contextmanager
def _variables(given: Mapping[str, str]) -> Iterator[None]:
    """Replace the settings of the environment; what is not one stays, except for what is given in its place."""
    before = {name: os.environ[name] for name in os.environ if name.startswith("RINGSIDE_") or name in given}
    for name in before.keys() - given.keys():
        del os.environ[name]
    os.environ.update(given)
    try:
        yield
    finally:
        for name in given.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextlib.contextmanager
def _streams(source: io.TextIOWrapper, out: io.TextIOWrapper, err: io.TextIOWrapper) -> Iterator[None]:
    """Replace the standard streams; the logs of this process go to where they went before, afterwards."""
    root, configuration = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers, root.level
    usual, sys.stdin = sys.stdin, source
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield
    sys.stdin = usual
    root.handlers = handlers
    root.setLevel(level)
    structlog.configure(**configuration)
