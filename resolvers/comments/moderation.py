"""Moderation: the queue, members' reports, and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datastore import comments as comments_store
from datastore.comments import Comment, Decision, Reports, Status
from datastore.dynamo import Page, Window, optimistic
from datastore.journal import Ground
from resolvers.comments.access import CommentId, check_rate, load_visible_comment, may_change
from resolvers.comments.rules import LONGEST_REASON, validate_text
from resolvers.comments.writing import change_comment, revised
from resolvers.context import Context, Services
from resolvers.loading.loader import Loader
from resolvers.viewer import Role

# ── reading ──


async def moderation_queue(ctx: Context, /, *, window: Window, status: Status = Status.PENDING) -> Page[Comment]:
    """Comments that need a decision, oldest first."""
    ctx.with_role(Role.MODERATOR)
    return await comments_store.read_queue(ctx.table, status, window)


def note(ctx: Context, comment: Comment, /) -> str | None:
    """A moderator's note; for the author and moderators."""
    return comment.note if may_change(ctx.viewer, comment) else None


async def report_reasons(ctx: Context, comment: Comment, /) -> list[str] | None:
    """The reasons that members gave; for moderators."""
    if not ctx.viewer.may(Role.MODERATOR):
        return None
    reports = await ctx.services.get(reports_loader).load((comment.product, comment.ulid))
    return list(reports.reasons.values()) if reports is not None else []


def reports_loader(services: Services) -> Loader[tuple[str, str], Reports]:
    """Reports by product and comment, read in one batch for a page."""

    async def read(keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Reports]:
        return await comments_store.read_reports(services.table, keys)

    loader: Loader[tuple[str, str], Reports] = Loader(read, fresh=True)
    return services.loaders.add("reports", loader)


# ── writing ──


async def report_comment(ctx: Context, /, *, comment: CommentId, reason: str) -> Comment:
    """Report a comment to the moderators. It stays visible until they decide: no report hides a comment by itself."""
    member = ctx.member()
    reason = validate_text(reason, "reason", LONGEST_REASON)
    await check_rate(ctx, "report")

    async def report(reported: Comment) -> Comment:
        if reported.held is not None:  # it needs a moderator's decision already
            await ctx.once.store_receipt(ctx.table, reported, about=reported.author)
            return reported
        await comments_store.report_comment(ctx.table, ctx.once, reported, member.id, reason)
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
