"""What a viewer sees of comments: every comment becomes a `ShownComment`, or a page of them, before a field shows it.

Everybody sees published comments. One that is held is seen by its author and by moderators, who alone change comments
of others. If it has replies, all others see a stub in its place, as they do where a comment with replies was deleted.
Pages are read for the viewer and counted in the same way, so none has holes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Final, NewType

from datastore.comments import changes, helpful, pages, records, threads
from datastore.comments.changes import Decisions, RefusedDecision
from datastore.comments.pages import CommentPage
from datastore.comments.planner import CommentCounts, Filter
from datastore.comments.records import ChangedComment, Comment, MemberComments, Status
from datastore.dynamo import Page, PageRequest, Window
from datastore.people.profiles import Profile
from datastore.refusals import NotFound
from datastore.values.ids import is_ulid
from resolvers.comments.counts import CountsCache
from resolvers.loading import batched
from resolvers.requests.context import BothWaysWindow, Context, NodeOf, Role, Services, Viewer
from resolvers.values.node_ids import node_id

# ── who may ──

AS_STORED: Final[Mapping[str, str]] = {
    "CommentAnswer": "It belongs to a comment that the viewer sees.",
    "Comment.helpful": "It is a number of members, and nobody's name.",
    "Comment.viewerFoundHelpful": "It is the viewer's own mark.",
    "CommentStatistics": "It counts published comments.",
    "RatingCount": "It counts published comments.",
    "LanguageCount": "It counts published comments.",
    "ProductStanding": "It counts published comments.",
    "Challenge": "It says nothing about anybody.",
    "HoldRules": "Whatever reads them begins with the role of a moderator.",
    "HoldRule": "It is shown with the others.",
    "RefusedComment": "It repeats an id that the moderator gave.",
}
"""What fields show without passing here, and why that gives nothing away."""

ShownComment = NewType("ShownComment", Comment)
ShownPage = NewType("ShownPage", CommentPage)
ShownMemberPage = NewType("ShownMemberPage", MemberComments)


@dataclass(frozen=True, slots=True)
class ShownReplies(Page[ShownComment]):
    """A page of the replies to a comment."""

    thread: tuple[str, str] | None = None
    """The comment's product and id; None if there is no thread."""


NO_SUCH_COMMENT = "There is no such comment, or it was deleted."
CommentId = Annotated[str, NodeOf("Comment")]


def may_change(viewer: Viewer, comment: Comment) -> bool:
    return not comment.removed and (viewer.is_user(comment.author) or viewer.may(Role.MODERATOR))


def may_see(viewer: Viewer, comment: Comment) -> bool:
    return comment.held is None or may_change(viewer, comment)


# ── comments ──


async def load_comment(ctx: Context, key: str, *, held: bool = True) -> Comment | None:
    """The comment of a node's key, whether or not the viewer may see it, or its stub. Held ones can be left out."""
    product, _, ulid = key.rpartition("#")
    if not is_ulid(ulid) or not product or "#" in product:
        return None
    return await pages.read_comment(ctx.table, product, ulid, held=held)


async def comment(ctx: Context, /, *, id: CommentId) -> ShownComment | None:  # noqa: A002 - the argument's public name
    found = await load_comment(ctx, id, held=ctx.viewer.is_signed_in)
    if found is not None and not may_see(ctx.viewer, found):
        found = await load_comment(ctx, id, held=False) if found.threaded else None
    return None if found is None else ShownComment(found)


async def load_visible_comment(ctx: Context, key: str, argument: str = "comment") -> Comment:
    """The comment that a mutation names; NotFound if it is gone, or the viewer may not see it."""
    found = await load_comment(ctx, key)
    if found is None or found.removed or not may_see(ctx.viewer, found):
        raise NotFound(NO_SUCH_COMMENT, path=("input", argument))
    return found


def show_published(comment: Comment) -> ShownComment:
    """A comment from where only published ones are."""
    return ShownComment(comment)


async def show_answer(ctx: Context, changed: ChangedComment) -> ShownComment:
    """What the viewer has changed. A receipt leads to the comment as it is now; NotFound if it is not to be seen."""
    comment = changed.comment
    if comment is None:
        (comment,) = await pages.read_comments(ctx.table, [(changed.product, changed.ulid)])
        if comment is None or not may_see(ctx.viewer, comment):
            raise NotFound(NO_SUCH_COMMENT)
    return ShownComment(comment)


# ── decisions ──


@dataclass(frozen=True, slots=True)
class ShownDecisions:
    """The comments that were decided as they are now, and the others."""

    comments: Sequence[ShownComment]
    refused: tuple[RefusedDecision, ...]


async def show_decisions(ctx: Context, decisions: Decisions) -> ShownDecisions:
    """Those that somebody deleted since are left out, and what a former moderator may not see any more."""
    places = [(product, ulid) for product, _, ulid in (key.rpartition("#") for key in decisions.decided)]
    found = await pages.read_comments(ctx.table, places)
    visible = [ShownComment(each) for each in found if each is not None and may_see(ctx.viewer, each)]
    return ShownDecisions(visible, decisions.refused)


@dataclass(frozen=True, slots=True)
class ShownHeld:
    """A comment that rules would have held, and the name of the first one."""

    comment: ShownComment
    held_by: str


def show_held(comment: Comment, rule: str) -> ShownHeld:
    """To moderators, who see every comment."""
    return ShownHeld(ShownComment(comment), rule)


# ── pages ──


async def read_page(ctx: Context, comment_filter: Filter, counts: CommentCounts, request: PageRequest) -> ShownPage:
    """The published comments of a product, and the stubs between them, if the page has no filter."""
    page = await pages.read_page(ctx.table, comment_filter, counts, request)
    if not any(comment.removed for comment in page.nodes):
        return ShownPage(page)
    nodes = await _with_own_held(ctx, page.nodes)
    return ShownPage(CommentPage.of(page, nodes, filter=page.filter, report=page.report))


async def read_helpful_page(
    ctx: Context, comment_filter: Filter, counts: CommentCounts, request: PageRequest
) -> ShownPage:
    """The published comments of a product, the most helpful ones first."""
    return ShownPage(await helpful.read_helpful_page(ctx.table, comment_filter, counts, request))


async def _with_own_held(ctx: Context, comments: Sequence[Comment | None]) -> list[Comment | None]:
    """The comments, with the held one in place of a stub where the viewer may see it."""
    stubs = [comment for comment in comments if comment is not None and comment.removed]
    if not stubs or not ctx.viewer.is_signed_in:
        return list(comments)
    held = dict(zip(stubs, await threads.read_held(ctx.table, stubs), strict=True))
    seen = {stub: comment for stub, comment in held.items() if comment is not None and may_see(ctx.viewer, comment)}
    return [comment if comment is None else seen.get(comment, comment) for comment in comments]


async def member_comments(ctx: Context, member: Profile, /, *, window: BothWaysWindow) -> ShownMemberPage:
    """A member's published comments; all of them for the member and for moderators."""
    with_held = ctx.viewer.may(Role.MODERATOR) or ctx.viewer.is_user(member.user)
    return ShownMemberPage(await records.read_member_comments(ctx.table, member.user, window, with_held=with_held))


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


# ── threads ──


class OwnHeldReplies:
    """The viewers' own replies that wait or were rejected: one read for all threads of a page."""

    def __init__(self, services: Services) -> None:
        self.of = services.cache.each("own_held_replies", partial(threads.read_own_held, services.table))


async def replies(ctx: Context, comment: ShownComment, /, *, window: Window) -> ShownReplies:
    """The published replies to a top-level comment; after the last one the viewer's held ones.

    Without a thread no published ones are read. Members' held ones take one read for all threads of a page.
    """
    request = window.open(f"replies:{comment.product}:{comment.ulid}")
    page, held = await asyncio.gather(_published_replies(ctx, comment, request), _own_held_replies(ctx, comment))
    end = [] if page.has_next_page else held[-request.size :]
    return replace(page, items=(*page.items, *((one.ulid, ShownComment(one)) for one in end)))


async def _published_replies(ctx: Context, comment: Comment, request: PageRequest) -> ShownReplies:
    if not comment.threaded:
        return ShownReplies.cut([], request)
    page = await threads.read_replies(ctx.table, comment, request)
    return ShownReplies.of(page, map(ShownComment, page.nodes), thread=(comment.product, comment.ulid))


async def _own_held_replies(ctx: Context, comment: Comment) -> list[Comment]:
    # Nor for an event of a stream, which would be a read for each of those who listen: pages have them.
    if comment.root is not None or not ctx.viewer.is_member or ctx.event_id is not None:
        return []
    held = await ctx.services.get(OwnHeldReplies).of.load(ctx.viewer.id) or []
    place = (comment.product, comment.ulid)
    return [one for one in held if (one.product, one.root) == place and ctx.viewer.is_user(one.author)]


@batched
async def reply_count(ctx: Context, comments: Sequence[ShownComment], /) -> list[int]:
    """How many published replies each comment has; those of a page are read in one batch."""
    keys = [(comment.product, comment.ulid) for comment in comments if comment.threaded]
    counted = dict(zip(keys, await _reply_counts(ctx, keys), strict=True))
    return [counted.get((comment.product, comment.ulid), 0) for comment in comments]


async def _reply_counts(ctx: Context, keys: Sequence[tuple[str, str]]) -> list[int]:
    found = await ctx.services.reads("threads", threads.read_threads).load_many(keys) if keys else []
    return [0 if thread is None else thread.replies for thread in found]


def thread(_: Context, comment: ShownComment, /) -> str | None:
    """The id of the comment in whose thread a reply stands, whose stub is there if it is gone itself."""
    return None if comment.root is None else node_id("Comment", f"{comment.product}#{comment.root}")


def in_reply_to_id(_: Context, comment: ShownComment, /) -> str | None:
    """The id of what a reply answers, which may be gone: nothing is read."""
    return None if comment.reply_to is None else node_id("Comment", f"{comment.product}#{comment.reply_to}")


@batched
async def in_reply_to(ctx: Context, comments: Sequence[ShownComment], /) -> list[ShownComment | None]:
    """What replies answer; None for other comments, and where the answered reply is gone."""
    keys = [
        None if comment.reply_to is None else (comment.product, comment.reply_to, comment.reply_to != comment.root)
        for comment in comments
    ]
    answered = list(dict.fromkeys(key for key in keys if key is not None))
    if not answered:
        return [None] * len(comments)
    found = await ctx.services.reads("answered_comments", threads.read_answered).load_many(answered)
    shown = dict(zip(answered, await _with_own_held(ctx, found), strict=True))
    by_place = [None if key is None else shown[key] for key in keys]
    return [None if comment is None else ShownComment(comment) for comment in by_place]


# ── fields ──


async def waiting(ctx: Context, page: ModerationPage, /) -> int:
    return await changes.count_queue(ctx.table, page.status)


async def total_count(ctx: Context, page: ShownPage | ShownMemberPage | ShownReplies, /) -> int:
    """The current number of comments in the page's list."""
    if isinstance(page, MemberComments):
        return await records.count_member_comments(ctx.table, page.author, with_held=page.with_held)
    if isinstance(page, ShownReplies):
        return sum(await _reply_counts(ctx, [page.thread] if page.thread else []))
    exact = await ctx.services.get(CountsCache).exact(page.filter.product)
    return exact.matching(page.filter)


def viewer_can_edit(ctx: Context, comment: ShownComment, /) -> bool:
    return may_change(ctx.viewer, comment)


def revision(_: Context, comment: ShownComment, /) -> int:
    return comment.revision or 0


def removed(_: Context, comment: ShownComment, /) -> bool:
    return bool(comment.removed)


def moderation_note(ctx: Context, comment: ShownComment, /) -> str | None:
    """For the author and moderators."""
    return comment.note if may_change(ctx.viewer, comment) else None


def held_by(ctx: Context, comment: ShownComment, /) -> str | None:
    """For moderators: who knows the rule can write around it."""
    return comment.held_by if ctx.viewer.may(Role.MODERATOR) else None


async def report_reasons(ctx: Context, comment: ShownComment, /) -> list[str] | None:
    """The reasons that members gave; for moderators."""
    if not ctx.viewer.may(Role.MODERATOR):
        return None
    reports = await ctx.services.reads("reports", changes.read_reports).load((comment.product, comment.ulid))
    return list(reports.reasons.values()) if reports is not None else []
