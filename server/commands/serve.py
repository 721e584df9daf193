"""`ringside serve`: prepares the table and serves it, in this process or in several."""

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, nullcontext
from ipaddress import ip_network
from time import monotonic, sleep
from typing import Annotated, Any, cast

import typer
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from datastore.dynamo import DynamoError, Table
from resolvers.requests.context import Services
from server import Failed
from server.commands import err, out
from server.commands.files import discard_standard_output
from server.commands.running import engine_for, load_settings
from server.commands.table import seed_demo
from server.engine import scheduled_backups
from server.engine.table import open_checked_table
from server.http.hosts import default_hosts
from server.http.process import GRACE_SECONDS, WORKER_SECONDS, tune_process
from server.http.protocol import ServerConfig, limit_unaccepted_data, listeners, raise_file_limit
from server.mail.message import EmailTemplates
from server.settings import PREFIX, Settings, settings_help
from server.telemetry import shared_metrics

app = typer.Typer()

_log = logging.getLogger("uvicorn.error")

RESTART_SECONDS = 5.0
"""Between two attempts to start a worker beside others that serve."""


@app.command(epilog=f"[bold]Settings[/bold], from the environment:\n\n{settings_help()}")
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 chooses a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the port.")] = 1,
    demo: Annotated[
        bool | None, typer.Option("--demo/--no-demo", help="Add the demo data, unless it is there.", show_default=False)
    ] = None,
) -> None:
    """Starts the service. Without settings it runs an embedded engine, with its data in .ringside/."""
    settings = load_settings()
    EmailTemplates(settings.email_templates)  # which may be broken
    if settings.trusted_documents and workers > 1:
        from server.execution.documents import Documents  # a supervisor without trusted documents needs no schema

        Documents.of(settings, settings.trusted_documents)  # workers that cannot use it would start again and again
    if os.environ.get("FORWARDED_ALLOW_IPS") and not settings.trusted_proxies:
        err.print(f"FORWARDED_ALLOW_IPS has no effect: set {PREFIX}TRUSTED_PROXIES instead.", style="yellow")
    raise_file_limit()
    listening = _listen(host, port)
    limit_unaccepted_data(listening, settings.body_timeout)
    with engine_for(settings, share=False) as reachable:
        # After its own shutdown uvicorn raises the signal again: leaving by an exception stops the engine too.
        _handle_signals(lambda *_: sys.exit(0))
        own = own_address(host, listening.getsockname()[1])
        public_url = settings.public_url if "public_url" in settings.model_fields_set else own
        hosts = settings.allowed_hosts or default_hosts(host, public_url)
        is_demo = settings.demo if demo is None else demo
        served = reachable.model_copy(update={"demo": is_demo, "allowed_hosts": hosts, "public_url": public_url})
        with asyncio.Runner(loop_factory=uvicorn_config(served, None, workers).get_loop_factory()) as runner:
            try:
                runner.run(_serve(settings, served, listening, own, demo=bool(demo), alone=workers == 1))
            except asyncio.CancelledError:  # by a signal
                sys.exit(0)
        if workers > 1:
            with _scheduled_backups(settings):
                _serve_by_many(served, listening, workers)


def _scheduled_backups(settings: Settings) -> AbstractContextManager[object]:
    """The schedule of backups, if the settings want one, of the engine that this process runs."""
    if settings.backup_hours is None or not settings.embedded:
        return nullcontext()
    return scheduled_backups(settings.data, settings.backup_hours * 3600)


async def _serve(
    settings: Settings, served: Settings, listening: socket.socket, address: str, *, demo: bool, alone: bool
) -> None:
    """Prepare the table; if no other process serves, also serve with the same connection to it."""
    async with AsyncExitStack() as stack:
        with _cancelled_by_signals():
            table = await stack.enter_async_context(open_checked_table(served, create=settings.embedded))
            if demo:
                await _add_demo_data(table, settings)
            server = _server(served, table) if alone else None
        _let_connections_wait(listening)
        _tell_systemd()
        tell_address(address)
        if server is not None:
            with _scheduled_backups(settings):
                await server.serve(sockets=listeners(listening))


@contextmanager
def _cancelled_by_signals() -> Iterator[None]:
    """Let signals cancel this task, because uvloop drops an exception that a handler raises within a callback of it."""
    loop, task = asyncio.get_running_loop(), cast("asyncio.Task[None]", asyncio.current_task())
    before = _handle_signals(lambda *_: loop.call_soon_threadsafe(task.cancel))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _handle_signals(handler: Callable[..., object]) -> dict[signal.Signals, Any]:
    """Handle the signals that end a service; return the handlers that they had."""
    return {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}


async def _add_demo_data(table: Table, settings: Settings) -> None:
    services = Services(table, settings.seal(), settings.policy())
    try:
        await seed_demo(services)
    except DynamoError as error:
        # A slow engine, such as moto, may time out here and can still serve.
        message = f"The demo data is incomplete ({error}); `ringside demo` adds the rest."
        err.print(message, style="yellow")
    finally:
        await services.close()


def _server(served: Settings, table: Table) -> uvicorn.Server:
    from server.app import application  # the supervisor of several workers never needs it

    server = uvicorn.Server(uvicorn_config(served, application(served, table), 1))
    tune_process()
    return server


def _serve_by_many(settings: Settings, listening: socket.socket, workers: int) -> None:
    # Workers read their settings from the environment: with the engine's address they do not start one of their own.
    os.environ[f"{PREFIX}DYNAMODB_URL"] = settings.dynamodb_url
    os.environ[f"{PREFIX}SECRETS"] = ",".join(secret.get_secret_value() for secret in settings.secrets)
    os.environ[f"{PREFIX}INTROSPECTION"] = settings.introspection.value
    os.environ[f"{PREFIX}ALLOWED_HOSTS"] = ",".join(settings.allowed_hosts)
    os.environ[f"{PREFIX}PUBLIC_URL"] = settings.public_url
    os.environ[f"{PREFIX}DEMO"] = str(settings.demo).lower()
    with shared_metrics():
        config = uvicorn_config(settings, "server.app:from_environment", workers)
        supervisor = _Workers(config, sockets=listeners(listening))
        supervisor.run()
    if supervisor.cannot_start:
        raise Failed("No worker could start: the lines above say why.")


class _Workers(Multiprocess):
    """Once one of them has served, one that cannot start does not end the others: the table may soon answer again."""

    cannot_start = False
    _have_served = False

    def keep_subprocess_alive(self) -> None:
        if self.should_exit.is_set():  # by a signal
            return
        for process in self.processes:
            process.child_conn.close()  # it has its own end: the wait for its answer ends when it does
        super().keep_subprocess_alive()
        if not self.should_exit.is_set():
            self._have_served = self._have_served or any(process.is_ready() for process in self.processes)
        elif self._have_served:
            self.should_exit.clear()
            # As uvicorn's own lines are: a print fails once nobody reads it, and would end the healthy workers.
            _log.warning("The service goes on, and starts another process in %.0f s.", RESTART_SECONDS)
            self._start_again()
        else:
            self.cannot_start = True

    def _start_again(self) -> None:
        """Replace the processes that could not start, after a pause; a signal comes first."""
        end = monotonic() + RESTART_SECONDS
        while monotonic() < end:
            if self.signal_queue:
                return
            sleep(0.1)
        for index, process in enumerate(self.processes):
            if process.exitcode == STARTUP_FAILURE:
                self.processes[index] = Process(self.config, self.sockets)
                self.processes[index].start()


def uvicorn_config(settings: Settings, served: object, workers: int) -> ServerConfig:
    return ServerConfig(
        served,
        settings,
        factory=isinstance(served, str),
        workers=workers,
        log_config=None,
        access_log=False,
        server_header=False,
        ws_max_size=settings.max_body_bytes,
        ws_per_message_deflate=False,  # it takes 41 KB for each socket, and CPU for each listener anew
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(_as_seen(settings.trusted_proxies)),
        timeout_keep_alive=settings.idle_timeout,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_worker_healthcheck=WORKER_SECONDS,
    )


def _as_seen(networks: Sequence[str]) -> Iterator[str]:
    """The networks; those of IPv4 also as a socket names them that listens on all addresses of both kinds."""
    for network in map(ip_network, networks):
        yield f"{network}"
        if network.version == 4:  # noqa: PLR2004 - of the internet protocol
            yield f"::ffff:{network.network_address}/{96 + network.prefixlen}"


def own_address(host: str, port: int) -> str:
    """The address that this machine's browsers open. A service that listens on all addresses is there as well."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - nothing listens because of this comparison
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        raise _unusable(host, port, error) from None
    listening.set_inheritable(True)
    return listening


def _let_connections_wait(listening: socket.socket) -> None:
    """From now on connections wait until the service accepts them."""
    try:
        listening.listen()
    except OSError as error:  # another process was bound to the port too, and began to listen first
        host, port, *_ = listening.getsockname()
        raise _unusable(host, port, error) from None


def tell_address(address: str) -> None:
    try:
        out.print(f"Ringside answers on {address}/graphql (open it for the explorer)")
    except OSError:  # its disk is full: requests are answered all the same
        discard_standard_output()


def _tell_systemd() -> None:
    """Tell a systemd that waits for it (Type=notify) that the engine runs and requests will be answered."""
    if not (path := os.environ.pop("NOTIFY_SOCKET", "")):
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
            notified.sendto(b"READY=1", f"\0{path[1:]}" if path.startswith("@") else path)
    except OSError as error:
        err.print(f"systemd waits at {path} and could not be told of the start: {error.strerror}.", style="yellow")


def _unusable(host: str, port: int, error: OSError) -> Failed:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return Failed(
            f"Nothing can listen on {host}: {error.strerror}. Correct it, or choose another --host: 127.0.0.1 is for "
            "this machine only, 0.0.0.0 for all networks."
        )
    return Failed(
        f"Port {port} on {host} cannot be used: {error.strerror}. Stop its listener, or choose another --port."
    )
