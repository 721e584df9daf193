"""What members found helpful: marking a comment, how many did, and the reads of both."""

from collections.abc import Sequence

from datastore.comments import helpful as store
from datastore.comments.helpful import Helpful
from datastore.comments.records import ChangedComment, Comment
from datastore.dynamo import optimistic
from datastore.refusals import Conflict, InvalidInput, NotAllowed
from resolvers.comments.visibility import CommentId, ShownComment, load_visible_comment
from resolvers.comments.writing import check_rate
from resolvers.loading import batched
from resolvers.requests.context import Context

# ── marking ──

_COMMENT = ("input", "comment")


async def mark_helpful(ctx: Context, /, *, comment: CommentId, helpful: bool) -> ChangedComment:
    """Say that a comment of somebody else is helpful, once, or take it back."""
    member = ctx.member()
    await check_rate(ctx, "mark")

    async def mark(found: Comment) -> ChangedComment:
        if member.is_user(found.author):
            raise NotAllowed("You cannot mark your own comment.", path=_COMMENT)
        if found.root is not None:
            raise InvalidInput("A reply cannot be marked: mark the comment that it answers.", path=_COMMENT)
        if found.held is not None:
            raise Conflict("The comment is not public, so it cannot be marked.", path=_COMMENT)
        return ChangedComment.to(await store.mark_helpful(ctx.table, ctx.unit, found, member.id, helpful=helpful))

    return await optimistic(lambda: load_visible_comment(ctx, comment), mark, idempotent=True)


# ── fields ──


@batched
async def helpful_count(ctx: Context, comments: Sequence[ShownComment], /) -> list[int]:
    """How many members found each comment helpful; those of a page are read in one batch."""
    numbers = await _numbers(ctx, comments)
    return [number.number if (number := numbers.get((one.product, one.ulid))) else 0 for one in comments]


@batched
async def viewer_found_helpful(ctx: Context, comments: Sequence[ShownComment], /) -> list[bool]:
    """Whether the viewer marked each comment."""
    if not ctx.viewer.is_member:
        return [False] * len(comments)
    numbers = await _numbers(ctx, comments)
    keys = [(ctx.viewer.id, *place) for place in numbers]
    found = await ctx.services.reads("helpful_marks", store.read_marks).load_many(keys) if keys else []
    own = {place: mark for place, mark in zip(numbers, found, strict=True) if mark is not None}
    places = [(one.product, one.ulid) for one in comments]
    return [store.is_counted(own.get(place), numbers.get(place)) for place in places]


async def _numbers(ctx: Context, comments: Sequence[ShownComment]) -> dict[tuple[str, str], Helpful]:
    """The numbers of the comments that anybody has marked."""
    keys = [(one.product, one.ulid) for one in comments if one.marked]
    found = await ctx.services.reads("helpful_numbers", store.read_numbers).load_many(keys) if keys else []
    return {key: number for key, number in zip(keys, found, strict=True) if number is not None}
