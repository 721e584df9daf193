"""`ringside webhooks deliver`: delivers what waits for webhooks, once."""

from __future__ import annotations

import typer

from resolvers.requests.context import Services
from server.commands import err, out
from server.commands.running import run_with_services
from server.webhooks import Counts, Deliverer, open_sender

app = typer.Typer()
webhooks = typer.Typer(help="Webhooks: deliver what waits for them.", no_args_is_help=True)
app.add_typer(webhooks, name="webhooks")


@webhooks.callback()
def _group() -> None:
    """Keeps `deliver` a command of its own."""


@webhooks.command()
def deliver() -> None:
    """Sends what is due to webhooks, then exits. For cron, where no process serves."""
    counts = run_with_services(_deliver)
    out.print(f"{counts.delivered} delivered, {counts.failed} to be tried again, {counts.dead} given up.")


async def _deliver(services: Services) -> Counts:
    async with open_sender(services.policy.webhook_networks) as sender:
        deliverer = Deliverer(services, sender)
        try:
            with err.status("Delivering"):
                await deliverer.drain()
        finally:
            await deliverer.close()
    return deliverer.counts
