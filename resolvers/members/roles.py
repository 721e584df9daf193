"""Giving members roles and taking them away. A token may give its bearer others, which end with the token."""

from __future__ import annotations

from functools import partial

from datastore.dynamo import optimistic
from datastore.members import suspensions as suspension_store
from datastore.members.suspensions import MemberRoles
from datastore.people.profiles import Profile
from datastore.refusals import Conflict, InvalidInput, NotAllowed
from resolvers.members.suspensions import Suspensions, roles_in
from resolvers.people.visibility import load_member
from resolvers.requests.context import Context, Role, UserId


async def set_roles(ctx: Context, /, *, user: UserId, roles: list[str]) -> Profile:
    """Give a member these roles and no others. A key or a token that leaks must not give its finder a role for good."""
    ctx.member()
    session = ctx.with_role(Role.ADMIN).session
    if session is None or session.origin is not None:
        raise NotAllowed("Roles are given by an admin who has signed in on this service's own page, /sign-in.")
    member = await load_member(ctx, user)
    if member.is_guest:
        raise Conflict("A guest has no roles: they have to sign in with an address first.", path=("input", "user"))
    given = MemberRoles(member.user, parse_roles(roles))
    is_own = ctx.viewer.is_user(member.user) and Role.ADMIN not in roles_in(given)

    async def give(besides: MemberRoles | None) -> None:
        if is_own and besides is None:
            raise Conflict("You are the last admin: make another one first.", path=("input", "roles"))
        await suspension_store.set_roles(ctx.table, ctx.unit, member, given, besides=besides if is_own else None)

    await optimistic(partial(suspension_store.another_admin, ctx.table, member.user), give)
    ctx.services.get(Suspensions).roles_changed(given)
    return member


def parse_roles(texts: list[str]) -> tuple[str, ...]:
    """Each role once, in the order of `Role`; every member has the role member without being given it."""
    if unknown := [text for text in texts if text not in set(Role)]:
        known = ", ".join(Role)
        raise InvalidInput(f"{unknown[0][:40]!r} is not a role. The roles are {known}.", path=("input", "roles"))
    return tuple(role.value for role in Role if role in texts and role is not Role.MEMBER)
