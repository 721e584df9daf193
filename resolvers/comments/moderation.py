"""Moderation: the queue, members' reports, and decisions."""

from __future__ import annotations

from datastore import comments as comments_store
from datastore.changes.kinds import Ground
from datastore.comments import Comment, Decision, Status
from datastore.dynamo import Page, Window, optimistic
from resolvers.comments.rules import LONGEST_REASON, validate_text
from resolvers.comments.visibility import CommentId, ShownComment, load_visible_comment, read_for_moderators
from resolvers.comments.writing import change_comment, check_rate, revised
from resolvers.requests.context import Context
from resolvers.requests.viewer import Role

# ── reading ──


async def moderation_queue(ctx: Context, /, *, window: Window, status: Status = Status.PENDING) -> Page[ShownComment]:
    """Comments that need a decision, oldest first."""
    return await read_for_moderators(ctx, lambda: comments_store.read_queue(ctx.table, status, window))


# ── writing ──


async def report_comment(ctx: Context, /, *, comment: CommentId, reason: str) -> Comment:
    """Report a comment to the moderators. It stays visible until they decide: no report hides a comment by itself."""
    member = ctx.member()
    reason = validate_text(reason, "reason", LONGEST_REASON)
    await check_rate(ctx, "report")

    async def report(reported: Comment) -> Comment:
        if reported.held is not None:  # it needs a moderator's decision already
            await ctx.unit.store_receipt(ctx.table, reported, about=reported.author)
            return reported
        await comments_store.report_comment(ctx.table, ctx.unit, reported, member.id, reason)
        return reported

    return await optimistic(lambda: load_visible_comment(ctx, comment), report)


async def moderate_comment(
    ctx: Context,
    /,
    *,
    comment: CommentId,
    status: Status,
    note: str | None = None,
    ground: Ground | None = None,
) -> Comment:
    """A moderator's decision. It clears the comment's reports; a held comment that is published arrives now."""
    ctx.with_role(Role.MODERATOR)
    if note is not None:
        note = validate_text(note, "note", LONGEST_REASON)

    def moderated(old: Comment) -> Comment:
        held = None if status is Status.PUBLISHED else status
        arrived = ctx.new_id() if old.held and not held else old.arrived
        return revised(old, held=held, arrived=arrived, note=old.note if note is None else note)

    return await change_comment(ctx, comment, moderated, decision=Decision(ground, note))
