"""The commands of `ringside`."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
from uvicorn.supervisors import Multiprocess

from datastore.dynamo import DynamoError, declaration
from datastore.layout import CURRENT_LAYOUT
from datastore.refusals import Refusal
from datastore.whole_table import ImportRefused
from resolvers.context import Services
from resolvers.viewer import Role
from server.app import UnusableTable, application, open_engine, policy, validate_table
from server.auth.tokens import mint
from server.commands import (
    Failed,
    api_keys,
    comments,
    contenders,
    emails,
    engine_for,
    err,
    jobs,
    members,
    migration,
    out,
    pickem,
    run_with_services,
    vocabulary,
    voting,
    webhooks,
    whole_table,
)
from server.commands import table as table_commands
from server.commands.backup import backup, restore
from server.commands.execution import explain
from server.commands.files import STANDARD, read_text, write_text
from server.commands.transfer.file import BadExport
from server.engine import BackupFailed, BackupSchedule, EngineRefused
from server.execution.documents import BadManifest
from server.http.connection_limits import ConnectionLimits, limit_unaccepted_data, listeners, raise_file_limit
from server.http.hosts import default_hosts
from server.http.protocol import ServerConfig
from server.process_tuning import tune_process
from server.settings import PREFIX, BadSettings, Settings, settings_help
from server.telemetry import shared_metrics

GRACE_SECONDS = 20
app = typer.Typer(rich_markup_mode="rich")
imports = typer.Typer(help="Import data from files. Existing data is left alone.", no_args_is_help=True)
exports = typer.Typer(help="Export data to files.", no_args_is_help=True)
migrations = typer.Typer(help="Migrate data from another layout.", no_args_is_help=True)
app.add_typer(table_commands.tables, name="table")
app.add_typer(imports, name="import")
app.add_typer(exports, name="export")
app.add_typer(migrations, name="migrate")
app.add_typer(voting.boards, name="board")
app.add_typer(api_keys.api_keys, name="apikey")
app.add_typer(webhooks.webhooks, name="webhooks")
app.command("score")(pickem.score)
app.add_typer(emails.emails, name="emails")
app.command("daily", help="The older name of `ringside emails`.")(emails.send)
app.command("jobs")(jobs.jobs)
app.command()(explain)
app.command()(backup)
app.command()(restore)


_EXPECTED = (
    BackupFailed, BadExport, BadManifest, BadSettings, EngineRefused, Failed, ImportRefused, UnusableTable,
)  # fmt: skip


@migrations.callback()
def _migrate() -> None:
    """Makes `legacy` a subcommand; Typer drops the name of a command that is the only one."""


def expected_failure(failure: Exception) -> str | None:
    """What to tell the operator about a failure; None if it is a bug."""
    if isinstance(failure, _EXPECTED):
        return str(failure)
    if isinstance(failure, Refusal):
        return failure.message
    if isinstance(failure, DynamoError):
        return f"The table could not be used: {failure}"
    return None


@app.command(epilog=f"[bold]Settings[/bold], from the environment:\n\n{settings_help()}")
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 chooses a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the port.")] = 1,
    demo: Annotated[bool, typer.Option("--demo/--no-demo", help="Add the demo data, unless it is there.")] = False,
) -> None:
    """Starts the service. Without settings it runs an embedded engine, with its data in .ringside/."""
    settings = Settings.load()
    if os.environ.get("FORWARDED_ALLOW_IPS") and not settings.trusted_proxies:
        err.print(f"FORWARDED_ALLOW_IPS has no effect: set {PREFIX}TRUSTED_PROXIES instead.", style="yellow")
    raise_file_limit()
    listening = _listen(host, port)
    limit_unaccepted_data(listening, settings.body_timeout)
    with engine_for(settings, share=False) as reachable:
        for number in (signal.SIGTERM, signal.SIGINT):
            # After its own shutdown uvicorn raises the signal again: leaving by an exception stops the engine too.
            signal.signal(number, lambda *_: sys.exit(0))
        hosts = settings.allowed_hosts or default_hosts(host, settings.public_url)
        served = reachable.model_copy(update={"demo": demo or settings.demo, "allowed_hosts": hosts})
        address = f"http://{host}:{listening.getsockname()[1]}/graphql"
        with asyncio.Runner(loop_factory=uvicorn_config(served, None, workers).get_loop_factory()) as runner:
            runner.run(_serve(settings, served, listening, address, alone=workers == 1))
        if workers > 1:
            with _scheduled_backups(settings):
                _serve_by_many(served, listening, workers)


def _scheduled_backups(settings: Settings) -> AbstractContextManager[object]:
    """The schedule of backups, if the settings want one, of the engine that this process runs."""
    if settings.backup_hours is None or not settings.embedded:
        return nullcontext()
    return BackupSchedule(settings.data, settings.backup_hours * 3600)


async def _serve(settings: Settings, served: Settings, listening: socket.socket, address: str, *, alone: bool) -> None:
    """Prepares the table; if no other process serves, also serves with the same connection to it."""
    async with open_engine(served) as table:
        if settings.embedded:
            await declaration.create(table)
        layout = await validate_table(table, older=settings.embedded)
        if layout.version < CURRENT_LAYOUT:
            await table_commands.upgrade_with_progress(table)
        if served.demo:
            try:
                await _seed_demo(Services(table, settings.seal(), policy(settings)))
            except DynamoError as error:
                # A slow engine, such as moto, may time out here and can still serve.
                message = f"The demo data is incomplete ({error}); `ringside demo` adds the rest."
                err.print(message, style="yellow", markup=False)
        listening.listen()  # from now on connections wait until the service accepts them
        out.print(f"Ringside answers on [link]{address}[/link] (open it in a browser for the explorer)")
        if alone:
            server = uvicorn.Server(uvicorn_config(served, application(served, table), 1))
            tune_process()
            with _scheduled_backups(settings):
                await server.serve(sockets=listeners(listening))


def _serve_by_many(settings: Settings, listening: socket.socket, workers: int) -> None:
    # Workers read their settings from the environment: with the engine's address they do not start one of their own.
    os.environ[f"{PREFIX}DYNAMODB_URL"] = settings.dynamodb_url
    os.environ[f"{PREFIX}SECRETS"] = ",".join(secret.get_secret_value() for secret in settings.secrets)
    os.environ[f"{PREFIX}INTROSPECTION"] = settings.introspection.value
    os.environ[f"{PREFIX}ALLOWED_HOSTS"] = ",".join(settings.allowed_hosts)
    os.environ[f"{PREFIX}DEMO"] = str(settings.demo).lower()
    with shared_metrics():
        config = uvicorn_config(settings, "server.app:from_environment", workers)
        Multiprocess(config, sockets=listeners(listening)).run()


def uvicorn_config(settings: Settings, served: object, workers: int) -> ServerConfig:
    return ServerConfig(
        served,
        ConnectionLimits.of(settings),
        factory=isinstance(served, str),
        workers=workers,
        log_config=None,
        access_log=False,
        server_header=False,
        ws_max_size=settings.max_body_bytes,
        ws_per_message_deflate=False,  # it takes 41 KB for each socket, and CPU for each listener anew
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_keep_alive=settings.idle_timeout,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        raise Failed(
            f"Port {port} on {host} cannot be used: {error.strerror}. Stop its listener, or choose another --port."
        ) from None
    listening.set_inheritable(True)
    return listening


@app.command()
def token(
    user: Annotated[str, typer.Option(help="The member's id.")],
    name: Annotated[str | None, typer.Option(help="The name that others see.")] = None,
    email: Annotated[str | None, typer.Option(help="The first e-mail address of the profile.")] = None,
    role: Annotated[list[Role] | None, typer.Option(help="Repeat it for several roles.")] = None,
    hours: Annotated[float, typer.Option(min=0.01, max=24 * 365, help="Hours until it expires.")] = 24.0,
) -> None:
    """Prints a bearer token signed with this deployment's secret: Authorization: Bearer <token>."""
    settings = Settings.load()
    try:
        minted = mint(settings, user, name=name, email=email, roles=role or (), lifetime=timedelta(hours=hours))
    except ValueError as wrong:
        raise Failed(str(wrong)) from None
    print(minted)


@app.command()
def demo() -> None:
    """Adds the demo data, except for the parts that are there already."""
    run_with_services(_seed_demo)


async def _seed_demo(services: Services) -> None:
    from server.demo import seed

    async for line in seed(services):
        out.print(line)


@app.command()
def schema(
    file: Annotated[Path, typer.Argument(help="The file to write; - prints.", allow_dash=True)] = STANDARD,
) -> None:
    """Prints the schema in GraphQL's schema definition language."""
    from schema import schema as ringside_schema

    write_text(file, ringside_schema.as_str() + "\n")


@app.command()
def manifest(
    files: Annotated[list[Path], typer.Argument(help="Files, each with a GraphQL document; - reads standard input.")],
    out_file: Annotated[Path, typer.Option("--out", help="The file to write; - prints.", allow_dash=True)] = STANDARD,
) -> None:
    """Prints the manifest of trusted documents for these files, all of which must fit the schema and the limits."""
    from schema import schema as ringside_schema
    from server.execution.documents import Documents, InvalidOperation, write_manifest

    texts = [read_text(file) for file in files]
    for file, text in zip(files, texts, strict=True):
        try:
            Documents(ringside_schema._schema, manifest={"": text})  # noqa: SLF001 - Strawberry keeps graphql-core's schema there
        except InvalidOperation as invalid:
            raise Failed(f"{file} is not a valid document: {invalid}") from None
    write_text(out_file, write_manifest(texts))


@app.command()
def audit() -> None:
    """Checks the invariants of the stored data; exit code 1 if one is broken."""
    from server.audit import breaches

    async def find_breaches(services: Services) -> list[str]:
        return [breach async for breach in breaches(services)]

    broken = run_with_services(find_breaches)
    for breach in broken:
        err.print(breach, style="red", markup=False)
    if broken:
        raise Failed(f"{len(broken)} checks failed.")
    out.print("All checks passed.")


imports.command("all")(whole_table.import_all)
exports.command("all")(whole_table.export_all)
app.command()(whole_table.copy)
imports.command("events")(pickem.import_events)
exports.command("member")(members.export_member)
exports.command("events")(pickem.export_events)
imports.command("words")(vocabulary.words)
imports.command("contenders")(contenders.import_contenders)
migrations.command("legacy")(migration.legacy)
imports.command("comments")(comments.import_comments)
exports.command("votes")(voting.export_votes)
exports.command("comments")(comments.export_comments)
