"""Who has to solve a challenge before they comment: guests, and members until one of their comments is published."""

from __future__ import annotations

from datastore.comments.hold_rules import has_published
from resolvers.people.challenges import Challenge, new_challenge, require_solution
from resolvers.requests.context import Context, Role


async def challenge(ctx: Context, /) -> Challenge | None:
    """A new challenge for what the viewer may want to do; None if nothing is asked of them."""
    return new_challenge(ctx) if await _is_asked(ctx) else None


async def require_challenge(ctx: Context, solution: str | None) -> None:
    """ChallengeNeeded if a comment of the viewer needs a solution and this is none."""
    if await _is_asked(ctx):
        await require_solution(ctx, solution)


async def _is_asked(ctx: Context) -> bool:
    asked, viewer = ctx.services.policy.challenge, ctx.viewer
    if not asked or viewer.may(Role.MODERATOR) or viewer.may(Role.EDITOR):
        return False
    if "guests" in asked and (viewer.is_guest or not viewer.is_signed_in):
        return True
    if "first" not in asked or not viewer.is_member:
        return False
    return viewer.proven is not None or not await has_published(ctx.table, viewer.id)
