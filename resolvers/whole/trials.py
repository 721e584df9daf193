"""Trying hold rules on comments that are there. Members who have a role here by which they are never held are left out.

What roles a token gave is stored nowhere: the comments of members who have one by that alone are judged like others.
"""

import asyncio

from datastore.comments import records
from datastore.comments.hold_rules import HoldRules
from datastore.comments.records import Comment
from datastore.dynamo import Window, unlimited
from datastore.refusals import InvalidInput
from resolvers.comments.holding import HoldRuleInput, holding_rule, parse_rules
from resolvers.comments.judging import Judge
from resolvers.comments.visibility import ShownHeld, show_held
from resolvers.members.suspensions import Suspensions
from resolvers.requests.context import Context, Role, Services

MOST_PREVIEWED = 500
PREVIEW_RATE = "20/minute"
_NEVER_HELD = frozenset({Role.MODERATOR, Role.EDITOR, Role.ADMIN})


async def preview_hold_rules(
    ctx: Context, /, *, rules: list[HoldRuleInput], of: int = MOST_PREVIEWED
) -> list[ShownHeld]:
    """Which of the site's latest comments these rules would have held when they were posted; newest first."""
    viewer = ctx.with_role(Role.MODERATOR)
    judge = Judge(HoldRules(parse_rules(rules, ("rules",))))
    if not 1 <= of <= MOST_PREVIEWED:
        raise InvalidInput(f"`of` is 1 to {MOST_PREVIEWED:,}.", path=("of",))
    ctx.services.rates.hit(PREVIEW_RATE, "hold rules", viewer.id)
    with unlimited():  # bounded by `of`
        page = await records.read_latest_comments(ctx.table, None, Window(of, ctx.services.seal))
        return [
            show_held(comment, rule)
            for comment in page.nodes
            if (rule := await rule_for_posted(ctx.services, judge, comment)) is not None
        ]


async def rule_for_posted(services: Services, judge: Judge, comment: Comment) -> str | None:
    """The rule that would have held a comment when it was posted, if its author is now what they were then."""
    await asyncio.sleep(0)  # other requests have their turn between two texts
    if services.get(Suspensions).roles_of(comment.author) & _NEVER_HELD:
        return None
    author = await services.profiles.load(comment.author) if judge.asks_for_guests else None
    is_guest = author is not None and author.is_guest
    return await holding_rule(services.table, judge, comment, before=comment.ulid, is_guest=is_guest)
