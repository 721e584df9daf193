"""`ringside token`: a bearer token for development."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from resolvers.requests.context import Role
from server import Failed
from server.auth.tokens import mint
from server.settings import Settings

app = typer.Typer()


@app.command()
def token(
    user: Annotated[str, typer.Option(help="What the token calls the member, who is made at the first use.")],
    name: Annotated[str | None, typer.Option(help="The name that others see.")] = None,
    email: Annotated[str | None, typer.Option(help="The first email address of the profile.")] = None,
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
