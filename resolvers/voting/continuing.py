"""What a visitor has begun on boards goes on as the member's who signs in (`datastore.voting.continuing`)."""

from typing import Final

from datastore.dynamo import gather_or_cancel
from datastore.people.profiles import Profile
from datastore.refusals import InvalidInput
from datastore.values.seal import Forged
from datastore.voting import boards, continuing
from resolvers.people.visibility import load_member
from resolvers.requests.context import Context, Services
from resolvers.voting.settling import BoardCache
from resolvers.voting.visits import open_visit

_RATE: Final = "20/minute"
"""Each looks at every board."""
_AT_ONCE = 8
"""Boards that are looked at together. A site has a few."""


async def continue_visit(ctx: Context, /, *, visit: str) -> Profile:
    """Go on as the viewer with what the visitor of a visit has begun. Safe to repeat."""
    member = ctx.member()
    ctx.services.rates.hit(_RATE, "continue", member.id)
    await continue_walks(ctx.services, visitor_of(ctx, visit), member.id)
    profile = await load_member(ctx, member.id)
    await ctx.unit.store_receipt(ctx.table, profile)
    return profile


def visitor_of(ctx: Context, visit: str) -> str:
    """The visitor whom a visit's token stands for, on pages of its own origin; InvalidInput anywhere else."""
    try:
        opened = open_visit(ctx.services.seal, visit)
    except Forged:
        raise InvalidInput("This is no token of a visit, or it was altered.", path=("input", "visit")) from None
    if not ctx.page_origin or not opened.is_of(ctx.page_origin):
        raise InvalidInput("A visit counts only on pages of the origin that it was begun on.", path=("input", "visit"))
    if opened.expires_at <= ctx.now().timestamp():
        raise InvalidInput("This visit has expired.", path=("input", "visit"))
    return opened.visitor


async def continue_walks(services: Services, visitor: str, member: str) -> None:
    """Let a member go on with a visitor's walk over each board."""
    cache = services.get(BoardCache)

    async def go_on(board: str) -> None:
        if await continuing.continue_walk(services.table, visitor, member, board, services.clock()):
            cache.votes_voided(member, board)
            cache.settler(board).begin()  # the member may see the results now: who listens to them looks again

    await gather_or_cancel(map(go_on, await boards.every_slug(services.table)), _AT_ONCE)
