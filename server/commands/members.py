"""Commands about who may sign in as what: `member`, `apikey`, and `token` for development."""

from datetime import timedelta
from typing import Annotated

import typer

from datastore.dynamo import BadKey
from datastore.members import api_keys as api_key_store
from datastore.members import suspensions as suspension_store
from datastore.members.api_keys import ApiKey, IssuedKey
from datastore.members.suspensions import MemberRoles
from datastore.people import identities as identity_store
from datastore.people.identities import SignInMethod, of_address, of_issuer
from datastore.refusals import NotFound
from resolvers.members.api_keys import LONGEST_DAYS, issue
from resolvers.people.identities import Members
from resolvers.requests.context import Role, Services
from resolvers.values.texts import is_email_address
from server import Failed
from server.auth.tokens import mint
from server.commands import err, out
from server.commands.running import known_member, require_used, run_with_services
from server.settings import Settings

app = typer.Typer()

# ── members ──

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
    stored = tuple(role.value for role in Role if role in roles and role is not Role.MEMBER)
    if is_email_address(member):
        if await services.get(Members).known(of_address(member)) is None:
            if not stored:
                raise Failed(f"Nobody signs in by {member}, so there is no role to take away.")
            out.print(f"Nobody has signed in by {member} yet: a new member has this from their first sign-in on.")
        user = await services.get(Members).introduce(of_address(member))
    else:
        user = await known_member(services, member)
        profile = await services.profiles.load(user)
        if profile is not None and profile.is_guest:
            raise Failed(f"{member} is a guest, who has no roles: they have to sign in with an address first.")
    given = MemberRoles(user, stored)
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


# ── API keys ──
# The commands work on the table itself, so the first key needs no other sign-in.

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
    issued = run_with_services(lambda services: _create(services, name, roles, days), begins_table=True)
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
    expires = f"expires {key.expires_at:%Y-%m-%d}" if key.expires_at else "never expires"
    used = f"last used {key.last_used_at:%Y-%m-%d %H:%M} UTC" if key.last_used_at else "never used"
    return f"{key.prefix}  {key.name}  {', '.join(key.roles)}  created {key.created_at:%Y-%m-%d}, {expires}, {used}"


# ── tokens ──


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
    if settings.embedded and not Settings.from_environment().secrets:  # those of the data folder, which may be mistyped
        require_used(settings.data)
    try:
        minted = mint(settings, user, name=name, email=email, roles=role or (), lifetime=timedelta(hours=hours))
    except ValueError as wrong:
        raise Failed(str(wrong)) from None
    print(minted)
