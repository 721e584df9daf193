"""Who may see and change a comment, and loading one for a viewer."""

from __future__ import annotations

from typing import Annotated

from datastore import comments as comments_store
from datastore.comments import Comment
from datastore.ids import is_ulid
from datastore.refusals import NotFound
from resolvers.context import Context, NodeOf
from resolvers.viewer import Role, Viewer

NO_SUCH_COMMENT = "There is no such comment, or it was deleted."
CommentId = Annotated[str, NodeOf("Comment")]


def may_change(viewer: Viewer, comment: Comment) -> bool:
    return viewer.is_user(comment.author) or viewer.may(Role.MODERATOR)


def may_see(viewer: Viewer, comment: Comment) -> bool:
    return comment.held is None or may_change(viewer, comment)


async def load_comment(ctx: Context, key: str, *, held: bool = True) -> Comment | None:
    """The comment of a node's key, whether or not the viewer may see it. Held ones can be left out."""
    product, _, ulid = key.rpartition("#")
    if not is_ulid(ulid) or not product or "#" in product:
        return None
    return await comments_store.read_comment(ctx.table, product, ulid, held=held)


async def load_visible_comment(ctx: Context, key: str) -> Comment:
    """The comment that a mutation names; NotFound unless the viewer may see it."""
    comment = await load_comment(ctx, key)
    if comment is None or not may_see(ctx.viewer, comment):
        raise NotFound(NO_SUCH_COMMENT, path=("input", "comment"))
    return comment


async def check_rate(ctx: Context, action: str) -> None:
    """RateLimited if the viewer did this too often."""
    if (limit := ctx.services.policy.comment_rate) is not None:
        ctx.services.rates.hit(limit, f"comments:{action}", ctx.viewer.id)
