"""The member that a mutation is about."""

from __future__ import annotations

from datastore import people as people_store
from datastore import suspensions as suspension_store
from datastore.dynamo import key_text
from datastore.people import Profile
from datastore.refusals import NotAllowed, NotFound
from resolvers.context import Context


async def load_member(ctx: Context, user: str) -> Profile:
    """The member with this id, by a consistent read; NotFound if there is none."""
    profile = await people_store.read_profile(ctx.table, key_text(user))
    if profile is None:
        raise NotFound("There is no member with this id.", path=("input", "user"))
    return ctx.services.with_name(profile)


async def refuse_admin(ctx: Context, member: Profile, message: str) -> None:
    """NotAllowed for a member who has lately written as an admin."""
    if await suspension_store.is_admin(ctx.table, member.user, ctx.now()):
        raise NotAllowed(message, path=("input", "user"))
