"""What a viewer sees of suspensions, roles and API keys: fields show a `ShownSuspension`, which is made here."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NewType

from datastore.members import suspensions as suspension_store
from datastore.members.suspensions import Suspension
from resolvers.members.signing_in import SignedIn
from resolvers.members.suspensions import Suspensions
from resolvers.people.visibility import ShownProfile, show_changed
from resolvers.requests.context import Context, Role

AS_STORED: Final[Mapping[str, str]] = {
    "ApiKey": "For admins: each query and mutation begins with their role.",
    "Query.signInMethods": "What everybody may sign in by, which the page of sign-in shows anyway.",
}
"""What fields show without passing here, and why that gives nothing away."""

ShownSuspension = NewType("ShownSuspension", Suspension)


@dataclass(frozen=True, slots=True)
class ShownSignIn:
    """Who has just signed in, and their session."""

    user: ShownProfile
    token: str | None
    expires_at: datetime


async def show_signed_in(ctx: Context, answer: SignedIn) -> ShownSignIn:
    """The answer to whoever has shown who they are."""
    return ShownSignIn(await show_changed(ctx, answer.user), answer.token, answer.expires_at)


async def suspension(ctx: Context, profile: ShownProfile, /) -> ShownSuspension | None:
    """For the member and moderators; None once it has ended."""
    if not (ctx.viewer.may(Role.MODERATOR) or ctx.viewer.is_user(profile.user)):
        return None
    found = await ctx.services.reads("suspensions", suspension_store.read_suspensions).load(profile.user)
    return ShownSuspension(found) if found is not None and found.holds_at(ctx.now()) else None


def roles(ctx: Context, profile: ShownProfile, /) -> list[str] | None:
    """For the member and admins; those that a member's token gives them are known to the member alone."""
    given = ctx.services.get(Suspensions).roles_of(profile.user)
    if ctx.viewer.is_user(profile.user):
        given |= ctx.viewer.roles
    elif not ctx.viewer.may(Role.ADMIN):
        return None
    return [role.value for role in Role if role in given | {Role.MEMBER}]
