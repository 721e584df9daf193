"""`ringside audit`: checks what is stored."""

from __future__ import annotations

import typer

from resolvers.requests.context import Services
from server import Failed
from server.audit import breaches
from server.commands import err, out
from server.commands.running import run_with_services

app = typer.Typer()


@app.command()
def audit() -> None:
    """Checks the invariants of the stored data; exit code 1 if one is broken."""
    broken = run_with_services(_find_breaches)
    for breach in broken:
        err.print(breach, style="red")
    if broken:
        raise Failed("Not all checks passed.")
    out.print("All checks passed.")


async def _find_breaches(services: Services) -> list[str]:
    return [breach async for breach in breaches(services)]
