"""The embedded DynamoDB engine: found, started, kept alive, ended with the service.

| promise                                     | kept by                                                             |
|---------------------------------------------|---------------------------------------------------------------------|
| one service per data folder                 | a lock that the engine inherits: it is free when the engine is gone |
| no engine outlives its service, kill -9 too | a pipe that nobody but the service holds open: `LIFELINE`           |
| an engine that dies is back, same address   | `Engine._keep_alive`, on a port that stays reserved                 |
| an acknowledged write is on the disk        | dynoxide syncs SQLite's log before it answers a write               |

docs/decisions/embedded-engine.md has what was weighed and measured.
"""

import asyncio
import fcntl
import importlib.util
import os
import platform
import shutil
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from anyio.from_thread import start_blocking_portal

log = structlog.get_logger("ringside.engine")

DYNOXIDE: Final = "1.2.1"
CHECKOUT: Final = Path(__file__).resolve().parents[1] / "deploy" / "engine"
LAST_RESORT: Final = Path(__file__).resolve().with_name("last_resort.py")

GRACE: Final = 5.0
GLANCE: Final = 0.01
LONGEST_ANSWER: Final = 5.0
LONGEST_PAUSE: Final = 5.0
STEADY: Final = 30.0

# The shell that becomes the engine. The service keeps the other end of stdin and never writes, so the watcher's `read`
# returns when the service closes it or dies, in whatever way; then the group is told to end, and made to after GRACE.
# PR_SET_PDEATHSIG would be shorter, but it follows the thread that forked instead of the process, exists on Linux only
# and needs code between fork and exec. The watcher stays in the engine's process group: as long as it lives, the
# system gives the engine's number to nobody else, so no signal meets a stranger. The lock arrives as stdout, because
# a shell can name descriptors up to 9 only; the engine keeps it, the watcher lets it go.
LIFELINE: Final = f"""
umask 077
exec 3<&0 4>&1 </dev/null >/dev/null
(trap '' TERM; read -r _ <&3; kill -TERM -$$; sleep {GRACE:.0f}; kill -KILL -$$) 4>&- 2>/dev/null &
exec "$@" 3<&-
"""

# Answered by whatever speaks DynamoDB; no engine checks the signature.
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


class EngineRefused(Exception):
    """There is no engine for this data folder: the message says why, and what to do."""


class EngineInUse(EngineRefused):
    """Another process runs the engine of this data folder, at `url`."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__(message)
        self.url = url


@dataclass(frozen=True, slots=True)
class Program:
    """How to start an engine on a port, and how long it may take until it answers."""

    name: str
    command: Callable[[int], Sequence[str]]
    patience: float = 10.0


@asynccontextmanager
async def embedded(data: Path, binary: Path | None = None, program: Program | None = None) -> AsyncIterator["Engine"]:
    """Run the engine of a data folder as long as the block does."""
    async with _folder(data) as lock:
        with _reserved_port() as port:
            engine = Engine(program or choose(data, binary), data, lock, port)
            await engine.start()
            try:
                yield engine
            finally:
                await engine.stop()


@contextmanager
def beside(data: Path, binary: Path | None = None, program: Program | None = None) -> Iterator["Engine"]:
    """Do the same where no event loop runs, as in the supervisor of several workers: the engine gets a thread's."""
    running = embedded(data, binary, program)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(running) as engine:
        yield engine


def choose(data: Path, binary: Path | None = None) -> Program:
    """Return dynoxide if its program is here, or else moto's server, which is slow and forgets."""
    if found := find_binary(data, binary):
        return dynoxide(found, table_file(data))
    remedy = (
        "To have it, run `npm ci --prefix deploy/engine` in a checkout or "
        f"`npm install --prefix {data} dynoxide@{DYNOXIDE}` elsewhere, or let RINGSIDE_ENGINE_BINARY name its program."
    )
    if table_file(data).exists():
        raise EngineRefused(f"{table_file(data)} was written by dynoxide, whose program is not found. {remedy}")
    if not all(map(importlib.util.find_spec, ("moto", "flask", "flask_cors"))):
        raise EngineRefused(
            f"The engine dynoxide is not found. {remedy} Or `pip install 'ringside[moto]'` for an engine that is slow "
            "and forgets, or set RINGSIDE_DYNAMODB_URL to the address of any other."
        )
    log.warning("moto stands in for dynoxide, which is not found: slow, and all is forgotten at the end", remedy=remedy)
    return moto()


def find_binary(data: Path, given: Path | None = None) -> Path | None:
    """Return dynoxide's program: the one given, npm's in the checkout or in the data folder, or the one on PATH."""
    if given:
        if not (given.is_file() and os.access(given, os.X_OK)):
            raise EngineRefused(f"RINGSIDE_ENGINE_BINARY is {given}, which cannot be run. Name dynoxide's program.")
        return given
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())
    package = Path("node_modules", "@dynoxide", f"{sys.platform}-{machine}", "dynoxide")
    below_its_parent = Path("node_modules", "dynoxide") / package
    places = [folder / place for folder in (CHECKOUT, data) for place in (package, below_its_parent)]
    return next((place for place in (*places, *_on_path()) if os.access(place, os.X_OK)), None)


def _on_path() -> Iterator[Path]:
    if found := shutil.which("dynoxide"):
        yield Path(found)


def table_file(data: Path) -> Path:
    """Return the file that holds the table."""
    return data / "table.db"


def dynoxide(binary: Path, file: Path) -> Program:
    """Return DynamoDB on SQLite: it answers some 20 ms after its start, and a kill -9 loses nothing acknowledged."""

    def command(port: int) -> Sequence[str]:
        return str(binary), "serve", "--host", "127.0.0.1", "--port", str(port), "--db-path", str(file)

    return Program("dynoxide", command)


def moto() -> Program:
    """Return the last resort."""
    # Without -P the folder server/ would come first on its path, and graphql.py hide graphql.
    return Program("moto", lambda port: (sys.executable, "-P", str(LAST_RESORT), str(port)), patience=60.0)


class Engine:
    """An engine in its own process; its address outlives it."""

    def __init__(self, program: Program, data: Path, lock: int, port: int) -> None:
        self.name = program.name
        self.url = f"http://127.0.0.1:{port}"
        self._program = program
        self._port = port
        self._lock = lock
        self._log = data / "engine.log"
        self._lifeline = -1
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The number of its process, which changes when it has to be started again."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start it, and see that it answers."""
        _note_holder(self._lock, self.url)
        await self._spawn()
        self._keeper = asyncio.create_task(self._keep_alive())

    async def stop(self) -> None:
        """Let go of the lifeline, as a dying service would, and wait until the process is gone."""
        if self._keeper:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
        await self._end()

    async def _keep_alive(self) -> None:
        pause = 0.0
        while True:
            started = time.monotonic()
            if self._process:
                code = await self._process.wait()
                log.warning("engine died", engine=self.name, code=code, said=self._last_words())
            await self._end()
            pause = 0.0 if time.monotonic() - started > STEADY else min(2 * pause + 0.1, LONGEST_PAUSE)
            await asyncio.sleep(pause)
            try:
                await self._spawn()
            except EngineRefused as refusal:
                log.error("engine does not come back", engine=self.name, reason=str(refusal))  # noqa: TRY400 - no trace
            else:
                log.warning("engine is back", engine=self.name, pid=self.pid)

    async def _spawn(self) -> None:
        theirs, self._lifeline = os.pipe()
        try:
            with self._log.open("wb") as words:
                self._process = await asyncio.create_subprocess_exec(
                    "/bin/sh", "-c", LIFELINE, "engine", *self._program.command(self._port),
                    stdin=theirs,
                    stdout=self._lock,
                    stderr=words,
                    # A Ctrl-C in the terminal is the service's to hear: it drains first and ends the engine last.
                    start_new_session=True,
                    env={name: value for name, value in os.environ.items() if not name.startswith("RINGSIDE_")},
                )  # fmt: skip
        finally:
            os.close(theirs)
        try:
            await self._until_it_answers(self._process)
        except BaseException:
            await self._end()
            raise

    async def _until_it_answers(self, process: asyncio.subprocess.Process) -> None:
        last = time.monotonic() + self._program.patience
        while not await _answers(self._port):
            if process.returncode is not None:
                raise EngineRefused(f"{self.name} ended at its start ({process.returncode}): {self._last_words()}")
            if time.monotonic() > last:
                raise EngineRefused(
                    f"{self.name} does not answer within {self._program.patience:.0f} s: {self._last_words()}"
                )
            await asyncio.sleep(GLANCE)

    async def _end(self) -> None:
        """End the process if it runs, and its watcher in any case."""
        process, self._process = self._process, None
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        if process is None:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-5:]) or "it left no word"


async def _answers(port: int) -> bool:
    """Whether DynamoDB is spoken on the port."""
    try:
        async with asyncio.timeout(LONGEST_ANSWER):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(PROBE)
                answer = await reader.read()
            finally:
                writer.close()
    except OSError:  # a TimeoutError is one
        return False
    return b'"TableNames"' in answer


@contextmanager
def _reserved_port() -> Iterator[int]:
    """Yield a free port of loopback that stays free for the engine, also between its death and its return.

    On Linux a socket that is bound but never listens keeps a port out of the system's lottery, and two that both allow
    the reuse of the address may still share it. Elsewhere the port is only known to have been free a moment ago.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        if sys.platform != "linux":
            holder.close()
        yield port


@asynccontextmanager
async def _folder(data: Path) -> AsyncIterator[int]:
    """Make the data folder and take its lock. Nothing unlocks it: it is free once all who hold the file are gone."""
    lock = _lock_file(data)
    try:
        await _take(lock, data)
        yield lock
    finally:
        os.close(lock)


def _lock_file(data: Path) -> int:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(data / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as failure:
        raise EngineRefused(
            f"The data folder {data} cannot be used: {failure.strerror}. Let RINGSIDE_DATA name one you can write to."
        ) from failure


async def _take(lock: int, data: Path) -> None:
    """Take the lock, or say who has it. An engine whose service was killed may hold it for the length of its grace."""
    last = time.monotonic() + GRACE + 1
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, url = _holder(lock)
            if time.monotonic() > last or _alive(pid):
                raise EngineInUse(
                    f"The data folder {data} is in use by process {pid}. Stop that one, or let RINGSIDE_DATA name a "
                    f"folder for this one, or set RINGSIDE_DYNAMODB_URL={url} to share its engine.",
                    url,
                ) from None
            await asyncio.sleep(GLANCE)
        else:
            return


def _note_holder(lock: int, url: str) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()} {url}".encode(), 0)


def _holder(lock: int) -> tuple[int, str]:
    pid, _, url = os.pread(lock, 200, 0).decode(errors="replace").partition(" ")
    return int(pid) if pid.isdecimal() else 0, url


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0
