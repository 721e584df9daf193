"""What a viewer sees of comments: every comment becomes a `ShownComment`, or a page of them, before a field shows it.

Everybody sees published comments. One that is held is seen by its author and by moderators, who alone change comments
of others. Pages are read for the viewer and counted in the same way, so none has holes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NewType

from datastore.comments import changes, pages, records
from datastore.comments.pages import CommentPage
from datastore.comments.planner import CommentCounts, Filter
from datastore.comments.records import Comment, MemberComments, Reports, Status
from datastore.dynamo import Page, PageRequest, Reads, Window
from datastore.refusals import NotFound
from datastore.values.ids import is_ulid
from resolvers.comments.counts import CountsCache
from resolvers.requests.context import Context, NodeOf, Role, Services, Viewer

# ── who may ──

AS_STORED: Final[Mapping[str, str]] = {
    "CommentStatistics": "It counts published comments.",
    "RatingCount": "It counts published comments.",
    "LanguageCount": "It counts published comments.",
    "ProductStanding": "It counts published comments.",
}
"""What fields show without passing here, and why that gives nothing away."""

ShownComment = NewType("ShownComment", Comment)
ShownPage = NewType("ShownPage", CommentPage)
ShownMemberPage = NewType("ShownMemberPage", MemberComments)

NO_SUCH_COMMENT = "There is no such comment, or it was deleted."
CommentId = Annotated[str, NodeOf("Comment")]


def may_change(viewer: Viewer, comment: Comment) -> bool:
    return viewer.is_user(comment.author) or viewer.may(Role.MODERATOR)


def may_see(viewer: Viewer, comment: Comment) -> bool:
    return comment.held is None or may_change(viewer, comment)


# ── comments ──


async def load_comment(ctx: Context, key: str, *, held: bool = True) -> Comment | None:
    """The comment of a node's key, whether or not the viewer may see it. Held ones can be left out."""
    product, _, ulid = key.rpartition("#")
    if not is_ulid(ulid) or not product or "#" in product:
        return None
    return await pages.read_comment(ctx.table, product, ulid, held=held)


async def comment(ctx: Context, /, *, id: CommentId) -> ShownComment | None:  # noqa: A002 - the argument's public name
    found = await load_comment(ctx, id, held=ctx.viewer.is_signed_in)
    return ShownComment(found) if found is not None and may_see(ctx.viewer, found) else None


async def load_visible_comment(ctx: Context, key: str) -> Comment:
    """The comment that a mutation names; NotFound unless the viewer may see it."""
    found = await load_comment(ctx, key)
    if found is None or not may_see(ctx.viewer, found):
        raise NotFound(NO_SUCH_COMMENT, path=("input", "comment"))
    return found


def show_published(comment: Comment) -> ShownComment:
    """A comment from where only published ones are."""
    return ShownComment(comment)


async def show_answer(_: Context, comment: Comment) -> ShownComment:
    """The answer to a mutation, which has shown the viewer the comment, or let them write it."""
    return ShownComment(comment)


# ── pages ──


async def read_page(ctx: Context, comment_filter: Filter, counts: CommentCounts, request: PageRequest) -> ShownPage:
    """The published comments of a product."""
    return ShownPage(await pages.read_page(ctx.table, comment_filter, counts, request))


async def read_member_page(ctx: Context, member: str, window: Window) -> ShownMemberPage:
    """A member's published comments; all of them for the member and for moderators."""
    with_held = ctx.viewer.may(Role.MODERATOR) or ctx.viewer.is_user(member)
    return ShownMemberPage(await records.read_member_comments(ctx.table, member, window, with_held=with_held))


@dataclass(frozen=True, slots=True)
class ModerationPage(Page[Comment]):
    """A page for moderators, and the status of the comments that are counted beside it."""

    status: Status = Status.PENDING


async def read_for_moderators(
    ctx: Context, status: Status, read: Callable[[], Awaitable[Page[Comment]]]
) -> ModerationPage:
    """A page of any comments; NotAllowed for anybody but moderators."""
    ctx.with_role(Role.MODERATOR)
    page = await read()
    return ModerationPage.of(page, page.nodes, status=status)


# ── fields ──


async def waiting(ctx: Context, page: ModerationPage, /) -> int:
    return await changes.count_queue(ctx.table, page.status)


async def total_count(ctx: Context, page: ShownPage | ShownMemberPage, /) -> int:
    """The current number of comments in the page's list."""
    if isinstance(page, MemberComments):
        return await records.count_member_comments(ctx.table, page.author, with_held=page.with_held)
    exact = await ctx.services.get(CountsCache).exact(page.filter.product)
    return exact.count(page.filter.languages, page.filter.ratings)


def viewer_can_edit(ctx: Context, comment: ShownComment, /) -> bool:
    return may_change(ctx.viewer, comment)


def moderation_note(ctx: Context, comment: ShownComment, /) -> str | None:
    """For the author and moderators."""
    return comment.note if may_change(ctx.viewer, comment) else None


async def report_reasons(ctx: Context, comment: ShownComment, /) -> list[str] | None:
    """The reasons that members gave; for moderators."""
    if not ctx.viewer.may(Role.MODERATOR):
        return None
    reports = await ctx.services.get(report_reads).load((comment.product, comment.ulid))
    return list(reports.reasons.values()) if reports is not None else []


def report_reads(services: Services) -> Reads[tuple[str, str], Reports]:
    """Reports by product and comment, read in one batch for a page."""

    async def read(keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Reports]:
        return await changes.read_reports(services.table, keys)

    return services.cache.batches("reports", read)
