"""An engine as a process: started at an address of its own, probed, restarted when it dies, stopped.

The address is on loopback, at a port that browsers refuse to connect to. The engines answer any web page
(`Access-Control-Allow-Origin: *`), accept any credentials, and have no option against either. So they listen only at
bad ports of the Fetch standard (https://fetch.spec.whatwg.org/#bad-port): a browser refuses to connect to those, for
fetches, navigations and WebSockets alike, whatever host name a page uses.
"""

import asyncio
import importlib.util
import os
import platform
import secrets
import shutil
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import BinaryIO, Final

import structlog
from anyio.from_thread import start_blocking_portal

from server.engine.folder import EngineRefused, check_file, has_table, locked_folder, record_holder, table_file
from server.settings.values import BAD_PORTS

# ── programs ──

log = structlog.get_logger("ringside.engine")

DYNOXIDE: Final = "1.2.1"
CHECKOUT: Final = Path(__file__).resolve().parents[2] / "deploy" / "engine"
MOTO_SERVER: Final = Path(__file__).resolve().with_name("moto_server.py")


@dataclass(frozen=True, slots=True)
class Program:
    """How to start an engine on a host's port, and how many seconds it may take to answer."""

    name: str
    command: Callable[[str, int], Sequence[str]]
    startup_timeout: float = 10.0


def choose_program(data: Path, binary: Path | None = None) -> Program:
    """Return dynoxide if its binary is found, otherwise moto's server, which is slow and keeps no data."""
    path = required_binary(data, binary) if has_table(data) else find_binary(data, binary)
    if path:
        return dynoxide(path, table_file(data))
    remedy = _remedy(data)
    if not all(map(importlib.util.find_spec, ("moto", "flask", "flask_cors"))):
        raise EngineRefused(
            f"The engine dynoxide was not found. {remedy} Or run `pip install 'moto[server]'` for an engine that is "
            "slow and keeps no data, or set RINGSIDE_DYNAMODB_URL to the address of another engine."
        )
    log.warning("dynoxide not found, using moto: slow, and all data is lost when it stops", remedy=remedy)
    return moto()


def required_binary(data: Path, given: Path | None = None) -> Path:
    """Return dynoxide's binary, without which nothing can read its tables, nor the copies of the data folder's."""
    if path := find_binary(data, given):
        return path
    raise EngineRefused(f"The table was written by dynoxide, which was not found. {_remedy(data)}")


def _remedy(data: Path) -> str:
    return (
        "To install it, run `make engine` in a checkout or "
        f"`npm install --prefix {data} dynoxide@{DYNOXIDE}` elsewhere, or set RINGSIDE_ENGINE_BINARY to its path."
    )


def find_binary(data: Path, given: Path | None = None) -> Path | None:
    """Return dynoxide's binary: the given one, npm's in the checkout or data folder, next to `ringside`, or on PATH."""
    if given:
        if not (given.is_file() and os.access(given, os.X_OK)):
            raise EngineRefused(f"RINGSIDE_ENGINE_BINARY is {given}, which cannot be run. Set it to dynoxide's path.")
        return given
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())
    package = Path("node_modules", "@dynoxide", f"{sys.platform}-{machine}", "dynoxide")
    below_its_parent = Path("node_modules", "dynoxide") / package
    candidates = [place / file for place in (CHECKOUT, data) for file in (package, below_its_parent)]
    # The interpreter's bin folder is not on PATH if its environment is not activated.
    candidates.append(Path(sys.prefix, "bin", "dynoxide"))
    candidates.append(Path(shutil.which("dynoxide") or "nowhere"))
    return next((file for file in candidates if os.access(file, os.X_OK)), None)


def dynoxide(binary: Path, file: Path) -> Program:
    """Return DynamoDB on SQLite. It answers some 20 ms after its start; kill -9 loses no acknowledged write."""

    def command(host: str, port: int) -> Sequence[str]:
        return str(binary), "serve", "--host", host, "--port", str(port), "--db-path", str(file)

    return Program("dynoxide", command)


def moto() -> Program:
    """Return the fallback engine."""
    # Without -P its folder would come first on sys.path, where its modules could shadow packages of the same name.
    return Program(
        "moto", lambda host, port: (sys.executable, "-P", str(MOTO_SERVER), host, str(port)), startup_timeout=60.0
    )


# ── process ──

STOP_TIMEOUT: Final = 5.0
POLL_SECONDS: Final = 0.01
PROBE_TIMEOUT: Final = 5.0
MAX_RESTART_PAUSE: Final = 5.0
STABLE_SECONDS: Final = 30.0

ENDS_WITH_US: Final = 'umask 077; exec 3<&0 </dev/null; (read -r _ <&3; kill -KILL $$) & exec "$@" 3<&-'
"""The shell that becomes the engine, and a second one that kills it when our end of its input closes.

We never write to it, so the `read` returns when this process is gone, for whatever reason. PR_SET_PDEATHSIG would be
shorter, but it follows the thread that forked instead of the process, exists only on Linux and needs code between fork
and exec. The watching shell is in the engine's process group: while it lives, the system does not reuse the engine's
PID, so no signal reaches another process.
"""

HOSTS: Final = 16 if sys.platform == "linux" else 0
"""How many random addresses of 127.0.0.0/8 are tried. All of it is loopback on Linux, so engines can share a port."""


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

    @property
    def pid(self) -> int | None:
        """The PID, which changes when the engine is restarted."""
        return self._process.pid if self._process else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start the process, wait until it answers, and keep it alive during the block."""
        await self._start()
        record_holder(self._lock, f"{os.getpid()} {self.url}")
        monitor = asyncio.create_task(self._keep_alive())
        try:
            yield
        finally:
            record_holder(self._lock, "")
            monitor.cancel()
            with suppress(asyncio.CancelledError):
                await monitor
            await self._stop()

    async def _keep_alive(self) -> None:
        pause = 0.0
        while True:
            started = time.monotonic()
            if self._process:
                code = await self._process.wait()
                log.warning("engine died", engine=self.name, code=code, output=self._last_output())
            await self._stop()
            pause = 0.0 if time.monotonic() - started > STABLE_SECONDS else min(2 * pause + 0.1, MAX_RESTART_PAUSE)
            await asyncio.sleep(pause)
            try:
                await self._start()
            except (EngineRefused, OSError) as failure:  # such as too many open files
                log.error("engine did not restart", engine=self.name, reason=str(failure))  # noqa: TRY400 - no trace
            else:
                log.warning("engine restarted", engine=self.name, pid=self.pid)

    async def _start(self) -> None:
        child_stdin, self._lifeline = os.pipe()
        try:
            with _emptied(self._log) as output:
                self._process = await asyncio.create_subprocess_exec(
                    "/bin/sh", "-c", ENDS_WITH_US, "engine", *self._program.command(*self._address),
                    stdin=child_stdin,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=output,
                    pass_fds=(self._lock,),
                    # Only the service gets a terminal's Ctrl-C: it drains first and stops the engine last.
                    start_new_session=True,
                    env={name: value for name, value in os.environ.items() if not name.startswith("RINGSIDE_")},
                )  # fmt: skip
        except OSError as failure:
            raise _unusable(failure) from failure
        finally:
            os.close(child_stdin)
        try:
            await self._wait_until_ready(self._process)
        except BaseException:
            await self._stop()
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

    async def _stop(self) -> None:
        """Stop the process if it is running, and the shell that watches in any case."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(TimeoutError, ProcessLookupError):
                process.terminate()
                await asyncio.wait_for(process.wait(), STOP_TIMEOUT)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _last_output(self) -> str:
        try:
            lines = self._log.read_text(errors="replace").strip().splitlines()
        except OSError:  # it was removed
            return "its log cannot be read"
        return " / ".join(lines[-5:]) or "it printed nothing"


def _unusable(failure: OSError) -> EngineRefused:
    """Such as a file of another user, or too many open files."""
    return EngineRefused(
        f"The engine cannot be started: {failure.filename or 'the system refuses'}: {failure.strerror}. This user must "
        "be able to write to all that is in RINGSIDE_DATA."
    )


def _emptied(file: Path) -> BinaryIO:
    """A new or emptied file that only its owner can read."""
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


async def _is_ready(address: tuple[str, int]) -> bool:
    """Whether an HTTP server answers at the address."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection(*address)
            try:
                writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                return (await reader.read(5)) == b"HTTP/"
            finally:
                writer.close()
    except OSError:  # a TimeoutError is one
        return False


@asynccontextmanager
async def run_engine_async(
    data: Path, binary: Path | None = None, program: Program | None = None
) -> AsyncIterator[Engine]:
    """Run the engine of a data folder while the block runs."""
    async with locked_folder(data) as lock:
        file = table_file(data)
        await asyncio.to_thread(check_file, file)
        with reserved_address() as address:
            engine = Engine(program or choose_program(data, binary), data, lock, address)
            try:
                file.parent.mkdir(mode=0o700, exist_ok=True)
            except OSError as failure:
                raise _unusable(failure) from failure
            async with engine.running():
                yield engine


@contextmanager
def run_engine(data: Path, binary: Path | None = None, program: Program | None = None) -> Iterator[Engine]:
    """Do the same without a running event loop, as in the parent of several workers: the engine runs in a thread."""
    engine_context = run_engine_async(data, binary, program)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(engine_context) as engine:
        yield engine


# ── the address ──


@contextmanager
def reserved_address() -> Iterator[tuple[str, int]]:
    """Yield a free loopback address that stays reserved for the engine, even while the engine is down.

    On Linux a socket is bound to it that never listens. It must be the first one there; afterwards it allows address
    reuse, so that the engine may listen there too and no other process takes the address. On other systems the address
    was merely free a moment ago.
    """
    with _first_free() as holder:
        address = holder.getsockname()
        if sys.platform != "linux":
            holder.close()
        yield address


def _first_free() -> socket.socket:
    hosts = ["127.{}.{}.{}".format(*(1 + secrets.randbelow(254) for _ in range(3))) for _ in range(HOSTS)]
    for host, port in product((*hosts, "127.0.0.1"), BAD_PORTS):
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, sys.platform != "linux")
        # dynoxide does not start if anything listens at this port of 127.0.0.1, whatever its own address is.
        if not _is_used(port):
            with suppress(OSError):
                holder.bind((host, port))
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                return holder
        holder.close()
    raise EngineRefused(
        f"None of the ports {', '.join(map(str, sorted(BAD_PORTS)))} is free, and on others web pages could read the "
        "embedded engine's table. Stop what listens on one of them, or set RINGSIDE_DYNAMODB_URL to another engine."
    )


def _is_used(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
