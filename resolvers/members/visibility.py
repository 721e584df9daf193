"""What a viewer sees of suspensions, roles and API keys: fields show a `ShownSuspension`, which is made here."""

from collections.abc import Mapping
from typing import Final, NewType

from datastore.members import suspensions as suspension_store
from datastore.members.suspensions import Suspension
from resolvers.members.suspensions import Suspensions
from resolvers.people.visibility import ShownProfile
from resolvers.requests.context import Context, Role

AS_STORED: Final[Mapping[str, str]] = {
    "ApiKey": "For admins: each query and mutation begins with their role.",
    "SignedIn": "For whoever has just shown who they are.",
    "Query.signInMethods": "What everybody may sign in by, which the page of sign-in shows anyway.",
}
"""What fields show without passing here, and why that gives nothing away."""

ShownSuspension = NewType("ShownSuspension", Suspension)


async def suspension(ctx: Context, profile: ShownProfile, /) -> ShownSuspension | None:
    """For the member and moderators; None once it has ended."""
    if not (ctx.viewer.may(Role.MODERATOR) or ctx.viewer.is_user(profile.user)):
        return None
    found = await ctx.services.reads("suspensions", suspension_store.read_suspensions).load(profile.user)
    return ShownSuspension(found) if found is not None and found.holds_at(ctx.now()) else None


def roles(ctx: Context, profile: ShownProfile, /) -> list[str] | None:
    """For the member and admins; the member is told of those with which they act in the way they signed in."""
    given = ctx.services.get(Suspensions).roles_of(profile.user)
    if ctx.viewer.is_user(profile.user):
        by = ctx.viewer.session
        acts = by is None or ctx.services.policy.gives_roles(by.origin)
        given = ctx.viewer.roles | given if acts else ctx.viewer.roles
    elif not ctx.viewer.may(Role.ADMIN):
        return None
    return [role.value for role in Role if role in given | {Role.MEMBER}]
