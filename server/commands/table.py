"""`ringside table`, which creates and checks it, and `ringside demo`, which adds the demo data."""

import asyncio

import typer

from datastore.dynamo import declaration
from datastore.whole import layout
from resolvers.requests.context import Services
from server import Failed
from server.commands import out
from server.commands.running import engine_for, load_settings, run_with_services
from server.engine.table import open_unchecked_table
from server.settings import Settings

app = typer.Typer()
tables = typer.Typer(help="Create and check the table.", no_args_is_help=True)
app.add_typer(tables, name="table")


@tables.command()
def create() -> None:
    """Creates the table with its indexes and time to live, unless it exists."""
    settings = load_settings()

    async def create_once(reachable: Settings) -> bool:
        async with open_unchecked_table(reachable) as table:
            created = await declaration.create(table)
            if created:
                await layout.ensure_layout(table)
            return created

    with engine_for(settings) as reachable:
        created = asyncio.run(create_once(reachable))
    out.print(f"The table {settings.table} {'was created' if created else 'exists already'}.")


@tables.command()
def check() -> None:
    """Checks the table's keys, indexes, layout and time to live, and that its engine has transactions."""
    run_with_services(_require_time_to_live)  # the rest is checked when the table is opened
    out.print("The table is ready for the service.")


async def _require_time_to_live(services: Services) -> None:
    if not await declaration.removes_expired_items(services.table):
        raise Failed(
            f"The table {services.table.name} keeps items that have expired, because its time to live is off, as in a "
            "table that was restored. `ringside table create` turns it on and changes nothing else."
        )


@app.command()
def demo() -> None:
    """Adds the demo data, except for parts that are already there."""
    run_with_services(seed_demo, begins_table=True)


async def seed_demo(services: Services) -> None:
    from server.demo import seed  # `ringside serve` needs it only if it is to add the data

    async for line in seed(services):
        out.print(line)
