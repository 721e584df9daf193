"""`ringside apikey`: create, list, revoke. It works on the table itself, so the first key needs no other sign-in."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from datastore.dynamo import BadKey
from datastore.members import api_keys as api_key_store
from datastore.members.api_keys import ApiKey, IssuedKey
from datastore.refusals import NotFound
from resolvers.members.api_keys import LONGEST_DAYS, issue
from resolvers.requests.context import Services
from server import Failed
from server.commands import err, out
from server.commands.running import run_with_services

app = typer.Typer()
api_keys = typer.Typer(help="API keys, by which machines sign in.", no_args_is_help=True)
app.add_typer(api_keys, name="apikey")


@api_keys.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    roles: Annotated[
        list[str], typer.Option("--role", help="member, moderator, editor or admin. Repeat it for several roles.")
    ],
    days: Annotated[
        int | None, typer.Option(help=f"Days until it expires, 1 to {LONGEST_DAYS:,}; without it, never.")
    ] = None,
) -> None:
    """Creates an API key and prints it: Authorization: Bearer <key>. It is shown only once."""
    issued = run_with_services(lambda services: _create(services, name, roles, days))
    err.print(f"{_line(issued.api_key)}\nOnly a hash of the key is stored: save the key now.")
    print(issued.secret)


async def _create(services: Services, name: str, roles: list[str], days: int | None) -> IssuedKey:
    now = services.clock()
    issued = issue(name, roles, days, now)
    await api_key_store.store_api_key(services.table, issued, services.unit())
    return issued


@api_keys.command("list")
def list_keys() -> None:
    """Lists the API keys, newest first. The first column shows how a key begins."""
    for line in run_with_services(_lines):
        out.print(line)


async def _lines(services: Services) -> list[str]:
    return [_line(key) async for key in api_key_store.all_api_keys(services.table)]


@api_keys.command()
def revoke(
    key: Annotated[str, typer.Argument(help="How the key begins, as `ringside apikey list` shows it.")],
) -> None:
    """Revokes an API key. It is refused everywhere within a minute."""
    revoked = run_with_services(lambda services: _revoke(services, key))
    out.print(f"Revoked: {_line(revoked)}")


async def _revoke(services: Services, prefix: str) -> ApiKey:
    try:
        key_id = api_key_store.id_of_prefix(prefix)
        return await api_key_store.revoke_api_key(services.table, key_id, services.unit())
    except (BadKey, NotFound):
        raise Failed(
            f"No key begins with {prefix[:20]!r}: it may have been revoked. `ringside apikey list` shows all keys."
        ) from None


def _line(key: ApiKey) -> str:
    expires = f"expires {_day(key.expires_at)}" if key.expires_at else "never expires"
    used = f"last used {key.last_used_at:%Y-%m-%d %H:%M} UTC" if key.last_used_at else "never used"
    return f"{key.prefix}  {key.name}  {', '.join(key.roles)}  created {_day(key.created_at)}, {expires}, {used}"


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"
