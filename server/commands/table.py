"""`ringside table`: create, check, upgrade."""

from __future__ import annotations

import asyncio

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from datastore import layout
from datastore.dynamo import Table, declaration
from datastore.receipts import Once
from resolvers.context import Services
from server.commands import err, out
from server.commands.running import engine_for, run_with_services
from server.failures import Failed
from server.settings import Settings
from server.table import open_engine

app = typer.Typer()
tables = typer.Typer(help="Create, check and upgrade the table.", no_args_is_help=True)
app.add_typer(tables, name="table")


@tables.command()
def create() -> None:
    """Creates the table with its indexes and time to live, unless it exists."""
    settings = Settings.load()

    async def create_once(reachable: Settings) -> bool:
        async with open_engine(reachable) as table:
            created = await declaration.create(table)
            if created:
                await layout.ensure_layout(table)
            return created

    with engine_for(settings) as reachable:
        created = asyncio.run(create_once(reachable))
    out.print(f"The table {settings.table} {'was created' if created else 'exists already'}.")


@tables.command()
def check() -> None:
    """Checks that the table has the keys, indexes and layout it needs, and that its engine has transactions."""

    async def nothing(_: Services) -> None: ...

    run_with_services(nothing)
    out.print("The table is ready for the service.")


@tables.command()
def upgrade() -> None:
    """Upgrades a table of an earlier release to this release's layout, then audits it. Safe under traffic.

    Run it again after an interruption, and once more when the last process of the earlier release has stopped: it then
    moves what that process wrote meanwhile. Exit code 1 if the audit finds a breach; the table is upgraded even then.
    """
    moved, broken = run_with_services(_upgrade, older=True)
    out.print(f"The table has layout {layout.CURRENT_LAYOUT}. {moved:,} items were moved or checked.")
    for breach in broken:
        err.print(breach, style="red")
    if broken:
        raise Failed("The upgrade is complete, but not all checks passed. `ringside audit` repeats them.")


async def _upgrade(services: Services) -> tuple[int, list[str]]:
    """The number of items that were moved, and the breaches that the audit finds."""
    from server.audit import breaches

    moved = await upgrade_with_progress(services.table, services.once())
    return moved, [breach async for breach in breaches(services)]


async def upgrade_with_progress(table: Table, once: Once | None = None) -> int:
    """Upgrade the table and show the progress; return how many items were moved. `once` is the layout's."""
    moved = 0
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("Upgrading the table", total=None)

        def advance(part: str, items: int) -> None:
            nonlocal moved
            moved += items
            bar.update(task, description=f"Upgrading the table: {part}, {moved:,} items")

        await layout.upgrade(table, advance, once)
    return moved
