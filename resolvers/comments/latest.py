"""A member's comments, and the latest ones of the whole site."""

from __future__ import annotations

from datastore import comments as comments_store
from datastore.comments import Status
from datastore.dynamo import Page, Window
from datastore.people.profiles import Profile
from resolvers.comments.visibility import ShownComment, ShownMemberPage, read_for_moderators, read_member_page
from resolvers.requests.context import BothWaysWindow, Context


async def member_comments(ctx: Context, member: Profile, /, *, window: BothWaysWindow) -> ShownMemberPage:
    return await read_member_page(ctx, member.user, window)


async def latest_comments(ctx: Context, /, *, window: Window, status: Status | None = None) -> Page[ShownComment]:
    """The whole site's comments, newest first; for moderators."""
    return await read_for_moderators(ctx, lambda: comments_store.read_latest_comments(ctx.table, status, window))
