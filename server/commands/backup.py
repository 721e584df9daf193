"""`ringside backup` and `ringside restore`: the embedded engine's table as one file."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from anyio.from_thread import start_blocking_portal

from server import Failed
from server.commands import err, out
from server.commands.files import named_input, named_output, progress_bar
from server.commands.running import load_settings
from server.engine import EngineInUse, back_up, locked_folder, required_binary, run_engine
from server.engine.backup import staged_copy
from server.engine.folder import install
from server.engine.table import open_checked_table
from server.settings import Settings

app = typer.Typer()


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; - writes to standard output.", allow_dash=True)],
) -> None:
    """Backs up the embedded engine's table, even while the service runs: the file is the table at one moment.

    The file is checked before it gets its name. It does not contain the secret, RINGSIDE_DATA/secret.
    """
    settings = _embedded_settings("backup")
    with progress_bar("backing up") as bar, named_output(file) as named:
        size = back_up(settings.data, named, lambda left, pages: bar(pages - left, pages))
    err.print(f"{size:,} bytes written.")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A backup; - reads standard input.", allow_dash=True)],
) -> None:
    """Replaces the embedded engine's table with a backup. The service must be stopped.

    The backup is checked first. What it replaces is kept in a folder of RINGSIDE_DATA/replaced: delete that when
    you no longer need it.
    """
    settings = _embedded_settings("restore")
    with named_input(file) as named:
        if not named.is_file():
            raise Failed(f"There is no file {file}.")
        replaced = _restore(settings, named)
    out.print("The table was restored." + (f" The one that it replaces is kept in {replaced}." if replaced else ""))


def _restore(settings: Settings, file: Path) -> Path | None:
    """Replace the table in this thread: an interruption ends that before it gives the folder's lock back."""
    lock = locked_folder(settings.data)
    try:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(lock):
            return _replace(settings, file)
    except EngineInUse as in_use:
        raise Failed(
            f"A restore replaces the table, which process {in_use.pid} serves. Stop that process first."
        ) from None


def _replace(settings: Settings, file: Path) -> Path | None:
    """Replace the table; where the one before is kept."""
    with staged_copy(settings.data, file) as folder:
        with run_engine(folder, required_binary(settings.data, settings.engine_binary)) as engine:
            staged = settings.model_copy(update={"dynamodb_url": engine.url})
            asyncio.run(_validate(staged))
        return install(settings.data, folder)


async def _validate(staged: Settings) -> None:
    """UnusableTable unless this release can serve the table."""
    async with open_checked_table(staged):
        pass


def _embedded_settings(command: str) -> Settings:
    settings = load_settings()
    if not settings.embedded:
        raise Failed(
            f"`ringside {command}` is for the embedded engine, and RINGSIDE_DYNAMODB_URL names another one. "
            "Use `ringside export all` and `ringside import all`, or the backups of that engine."
        )
    return settings
