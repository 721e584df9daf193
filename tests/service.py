"""The service as an operator runs it: a process of its own, on a free port of 127.0.0.1, ended by its pid."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue

ROOT = Path(__file__).resolve().parents[1]
_ADDRESS = re.compile(r"http://[\d.]+:\d+")
_PATIENCE = 60.0


@dataclass
class Service:
    """A running service: where it answers, what it was told and what it wrote, how to end it."""

    process: subprocess.Popen[str]
    url: str
    variables: Mapping[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def token(self, user: str, *arguments: str) -> str:
        """A bearer token that this service takes."""
        return ringside("token", "--user", user, *arguments, **self.variables).stdout.strip()

    def stop(self, number: int = signal.SIGTERM, patience: float = 30.0) -> int:
        """Sends the signal and waits for the end; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(patience)


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without settings of ours, and these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RINGSIDE_")}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **variables}


def ringside(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command of the command line, run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "server", *arguments],
        env=environment(**variables),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )


@contextmanager
def running_service(variables: Mapping[str, str], arguments: Sequence[str] = ()) -> Iterator[Service]:
    """`ringside serve` with these variables, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "server", "serve", "--port", "0", *arguments],
        env=environment(**variables),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said: Queue[str] = Queue()
    lines: list[str] = []
    reader = threading.Thread(target=_read, args=(process, said, lines), daemon=True)
    reader.start()
    service = Service(process, _address(process, said, lines), variables, lines)
    try:
        yield service
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        reader.join(5)
        if process.stdout is not None:
            process.stdout.close()


async def started(variables: Mapping[str, str], stack: ExitStack) -> Service:
    """The same for a test that has other things to do meanwhile; it ends with the stack."""
    return await asyncio.to_thread(stack.enter_context, running_service(variables))


def _read(process: subprocess.Popen[str], said: Queue[str], lines: list[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip())
        said.put(line)


def _address(process: subprocess.Popen[str], said: Queue[str], lines: list[str]) -> str:
    """The address it says it answers on, once it does."""
    url = ""
    while True:
        try:
            line = said.get(timeout=0.5)
        except Empty:
            if process.poll() is not None:
                raise AssertionError("the service ended at its start:\n" + "\n".join(lines)) from None
            continue
        if found := _ADDRESS.search(line):
            url = url or found[0]
        if "startup complete" in line:
            return url
