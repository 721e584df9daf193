"""An engine as a process: started, probed, restarted when it dies, stopped."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from server.engine import folder
from server.engine.programs import EngineRefused, Program

log = structlog.get_logger("ringside.engine")

STOP_TIMEOUT: Final = 5.0
POLL_SECONDS: Final = 0.01
PROBE_TIMEOUT: Final = 5.0
MAX_RESTART_PAUSE: Final = 5.0
STABLE_SECONDS: Final = 30.0

# The shell that becomes the engine. The service holds the other end of stdin and never writes to it, so the watcher's
# `read` returns when the service closes it or dies for any reason. Then the process group gets SIGTERM, and after
# STOP_TIMEOUT SIGKILL. PR_SET_PDEATHSIG would be shorter, but it follows the thread that forked instead of the process,
# exists only on Linux and needs code between fork and exec. The watcher stays in the engine's process group: while it
# lives, the system does not reuse the engine's PID, so no signal reaches an unrelated process. The lock is passed as
# stdout, because a shell can only name descriptors up to 9; the engine keeps it open, the watcher closes it.
LIFELINE: Final = f"""
umask 077
exec 3<&0 4>&1 </dev/null >/dev/null
(trap '' TERM; read -r _ <&3; kill -TERM -$$; sleep {STOP_TIMEOUT:.0f}; kill -KILL -$$) 4>&- 2>/dev/null &
exec "$@" 3<&-
"""

# Any DynamoDB server answers this; none of the local engines checks the signature.
PROBE: Final = b"\r\n".join((
    b"POST / HTTP/1.1",
    b"Host: 127.0.0.1",
    b"Connection: close",
    b"Content-Type: application/x-amz-json-1.0",
    b"X-Amz-Target: DynamoDB_20120810.ListTables",
    b"X-Amz-Date: 20260101T000000Z",
    b"Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/dynamodb/aws4_request,SignedHeaders=,Signature=0",
    b"Content-Length: 2",
    b"",
    b"{}",
))  # fmt: skip


class Engine:
    """An engine in its own process. Its address stays the same when the process is restarted."""

    def __init__(self, program: Program, data: Path, lock: int, address: tuple[str, int]) -> None:
        self.name = program.name
        self.url = "http://{}:{}".format(*address)
        self._program = program
        self._address = address
        self._lock = lock
        self._log = data / "engine.log"
        self._lifeline = -1
        self._process: asyncio.subprocess.Process | None = None
        self._monitor: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The PID, which changes when the engine is restarted."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the process and wait until it answers."""
        await self._spawn()
        folder.record_holder(self._lock, f"{os.getpid()} {self.url}")
        self._monitor = asyncio.create_task(self._keep_alive())

    async def stop(self) -> None:
        """Close the lifeline, as a dying service would, and wait until the process is gone."""
        folder.record_holder(self._lock, "")
        if self._monitor:
            self._monitor.cancel()
            with suppress(asyncio.CancelledError):
                await self._monitor
        await self._terminate()

    async def _keep_alive(self) -> None:
        pause = 0.0
        while True:
            started = time.monotonic()
            if self._process:
                code = await self._process.wait()
                log.warning("engine died", engine=self.name, code=code, output=self._last_output())
            await self._terminate()
            pause = 0.0 if time.monotonic() - started > STABLE_SECONDS else min(2 * pause + 0.1, MAX_RESTART_PAUSE)
            await asyncio.sleep(pause)
            try:
                await self._spawn()
            except (EngineRefused, OSError) as failure:  # such as too many open files
                log.error("engine did not restart", engine=self.name, reason=str(failure))  # noqa: TRY400 - no trace
            else:
                log.warning("engine restarted", engine=self.name, pid=self.pid)

    async def _spawn(self) -> None:
        child_stdin, self._lifeline = os.pipe()
        try:
            with _private_file(self._log) as output:
                self._process = await asyncio.create_subprocess_exec(
                    "/bin/sh", "-c", LIFELINE, "engine", *self._program.command(*self._address),
                    stdin=child_stdin,
                    stdout=self._lock,
                    stderr=output,
                    # Only the service gets a terminal's Ctrl-C: it drains first and stops the engine last.
                    start_new_session=True,
                    env={name: value for name, value in os.environ.items() if not name.startswith("RINGSIDE_")},
                )  # fmt: skip
        finally:
            os.close(child_stdin)
        try:
            await self._wait_until_ready(self._process)
        except BaseException:
            await self._terminate()
            raise

    async def _wait_until_ready(self, process: asyncio.subprocess.Process) -> None:
        deadline = time.monotonic() + self._program.startup_timeout
        while not await _is_ready(self._address):
            if process.returncode is not None:
                raise EngineRefused(f"{self.name} exited at startup ({process.returncode}): {self._last_output()}")
            if time.monotonic() > deadline:
                raise EngineRefused(
                    f"{self.name} did not answer within {self._program.startup_timeout:.0f} s: {self._last_output()}"
                )
            await asyncio.sleep(POLL_SECONDS)

    async def _terminate(self) -> None:
        """Stop the process if it is running, and its watcher in any case."""
        process, self._process = self._process, None
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        if process is None:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()

    def _last_output(self) -> str:
        try:
            lines = self._log.read_text(errors="replace").strip().splitlines()
        except OSError:  # it was removed
            return "its log cannot be read"
        return " / ".join(lines[-5:]) or "it printed nothing"


def _private_file(path: Path) -> BinaryIO:
    """Return an emptied file that only its owner can read, even if it existed before."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "wb")


async def _is_ready(address: tuple[str, int]) -> bool:
    """Whether a DynamoDB server answers at the address."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection(*address)
            try:
                writer.write(PROBE)
                answer = await reader.read()
            finally:
                writer.close()
    except OSError:  # a TimeoutError is one
        return False
    return b'"TableNames"' in answer
