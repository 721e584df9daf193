"""The service as an operator runs it: a separate process on a free port of 127.0.0.1."""

import asyncio
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from queue import Empty, Queue

from tests.command import ROOT, environment, ringside
from tests.waiting import LONGEST

PASSING = ("did not answer within", "is locked by a process that does not respond")
"""What a service says that may start a moment later: its engine is slow, or the one before it is about to end."""
_ADDRESS = re.compile(r"http://[\d.]+:\d+")


@dataclass
class Service:
    """A running service: its address, its settings and its output."""

    process: subprocess.Popen[str]
    url: str
    variables: Mapping[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def token(self, user: str, *arguments: str) -> str:
        """A bearer token that this service accepts."""
        return ringside("token", "--user", user, *arguments, **self.variables).stdout.strip()

    def stop(self, number: int = signal.SIGTERM, timeout: float = LONGEST) -> int:
        """Sends the signal and waits; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout)


@contextmanager
def running_service(variables: Mapping[str, str], arguments: Sequence[str] = ()) -> Iterator[Service]:
    """Runs `ringside serve` with these variables until the block ends."""
    service, reader = _started(variables, arguments)
    process = service.process
    try:
        yield service
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
        reader.join(LONGEST)
        if process.stdout is not None:
            process.stdout.close()


async def start_service(variables: Mapping[str, str], stack: ExitStack, arguments: Sequence[str] = ()) -> Service:
    """Runs the service without blocking the event loop, until the stack is closed."""
    return await asyncio.to_thread(stack.enter_context, running_service(variables, arguments))


def _started(variables: Mapping[str, str], arguments: Sequence[str]) -> tuple[Service, threading.Thread]:
    """Again, as an orchestrator does: a process ends if the engine does not answer for ten seconds at its start.

    Or if an engine whose service was killed has not ended within six.
    """
    patience = time.monotonic() + LONGEST
    while True:
        process = subprocess.Popen(
            [sys.executable, "-m", "server", "serve", "--port", "0", *arguments],
            env=environment(**variables),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output: Queue[str] = Queue()
        lines: list[str] = []
        reader = threading.Thread(target=_read, args=(process, output, lines), daemon=True)
        reader.start()
        try:
            return Service(process, _wait_for_address(process, output, lines, reader), variables, lines), reader
        except NotStarted as ended:
            if time.monotonic() > patience or not any(reason in f"{ended}" for reason in PASSING):
                raise


def _read(process: subprocess.Popen[str], output: Queue[str], lines: list[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip())
        output.put(line)


class NotStarted(AssertionError):
    """The service ended at its start; the message is its output."""


def _wait_for_address(
    process: subprocess.Popen[str], output: Queue[str], lines: list[str], reader: threading.Thread
) -> str:
    """The address that the service prints, once it accepts requests."""
    url = ""
    while True:
        try:
            line = output.get(timeout=0.5)
        except Empty:
            if process.poll() is not None:
                reader.join(LONGEST)
                raise NotStarted("the service ended at its start:\n" + "\n".join(lines)) from None
            continue
        if found := _ADDRESS.search(line):
            url = url or found[0]
        if "startup complete" in line:
            return url
