"""A member's comments, and the latest ones of the whole site."""

from __future__ import annotations

from datastore import comments as comments_store
from datastore.comments import Comment, MemberComments, Status
from datastore.dynamo import Page, Window
from datastore.people import Profile
from resolvers.context import BothWaysWindow, Context
from resolvers.viewer import Role


async def member_comments(ctx: Context, member: Profile, /, *, window: BothWaysWindow) -> MemberComments:
    """Published ones; all of them for the member and for moderators."""
    with_held = ctx.viewer.may(Role.MODERATOR) or ctx.viewer.is_user(member.user)
    return await comments_store.read_member_comments(ctx.table, member.user, window, with_held=with_held)


async def latest_comments(ctx: Context, /, *, window: Window, status: Status | None = None) -> Page[Comment]:
    """The whole site's comments, newest first; for moderators."""
    ctx.with_role(Role.MODERATOR)
    return await comments_store.read_latest_comments(ctx.table, status, window)
