"""`ringside member`: roles, which makes the first admin; and moving to another issuer."""

from __future__ import annotations

from typing import Annotated

import typer

from datastore.members import suspensions as suspension_store
from datastore.members.suspensions import MemberRoles
from datastore.people import identities as identity_store
from datastore.people.identities import SignInMethod, of_address, of_issuer
from resolvers.people.identities import Members
from resolvers.requests.context import Role, Services
from resolvers.values.texts import is_email_address
from server import Failed
from server.commands import out
from server.commands.running import known_member, run_with_services

app = typer.Typer()
members = typer.Typer(
    help="Members: the first admin, and another issuer of those who sign in by a provider.", no_args_is_help=True
)
app.add_typer(members, name="member")


@members.command()
def role(
    member: Annotated[str, typer.Argument(help="The address that they sign in by, or their `id` as the API shows it.")],
    roles: Annotated[
        list[Role] | None,
        typer.Option("--role", help="moderator, editor or admin. Repeat it for several roles; without it, none."),
    ] = None,
) -> None:
    """Gives a member these roles and no others. Every process knows within a minute.

    An address that nobody signs in by gets a member, who joins at their first sign-in.
    """
    given = run_with_services(lambda services: _set_roles(services, member, roles or []))
    out.print(f"{member} has the roles {', '.join(given)}." if given else f"{member} has no role.")


async def _set_roles(services: Services, member: str, roles: list[Role]) -> tuple[str, ...]:
    if is_email_address(member):
        user = await services.get(Members).introduce(of_address(member))
    else:
        user = await known_member(services, member)
    given = MemberRoles(user, tuple(role.value for role in Role if role in roles and role is not Role.MEMBER))
    await suspension_store.set_roles(services.table, services.unit(), given, given)
    return given.roles


@members.command()
def issuer(
    old: Annotated[str, typer.Argument(help="The RINGSIDE_OIDC_ISSUER by which members have signed in.")],
    new: Annotated[str, typer.Argument(help="The one by which they sign in from now on, as the same `sub`.")],
) -> None:
    """Lets those who signed in by one provider sign in by another, which calls them the same. Safe to repeat."""
    moved, taken = run_with_services(lambda services: _move(services, old, new))
    out.print(f"{moved:,} members sign in by {new} now.")
    if taken:
        raise Failed(f"{taken:,} others do not: whom {new} calls the same has signed in here as another member.")


async def _move(services: Services, old: str, new: str) -> tuple[int, int]:
    moved = taken = 0
    async for identity in identity_store.identities_by_issuer(services.table, SignInMethod.PROVIDER, old):
        shown = of_issuer(identity.method, new, identity.subject)
        if await identity_store.move_identity(services.table, identity, shown, services.unit()):
            moved += 1
        else:
            taken += 1
    return moved, taken
