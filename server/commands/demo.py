"""`ringside demo`: adds the demo data."""

from __future__ import annotations

import typer

from resolvers.requests.context import Services
from server.commands import out
from server.commands.running import run_with_services

app = typer.Typer()


@app.command()
def demo() -> None:
    """Adds the demo data, except for parts that are already there."""
    run_with_services(seed_demo, begins_table=True)


async def seed_demo(services: Services) -> None:
    from server.demo import seed  # `ringside serve` needs it only if it is to add the data

    async for line in seed(services):
        out.print(line)
