"""The stream of a product's comments as they become visible."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import timedelta

from datastore import comments as comments_store
from datastore.comments import Comment
from datastore.refusals import InvalidInput
from datastore.values.ids import is_ulid
from resolvers.comments.rules import validate_product
from resolvers.comments.visibility import ShownComment, load_comment, show_published
from resolvers.live.feed import Arrival, Source
from resolvers.live.resume_point import ResumePoint
from resolvers.requests.context import AnyId, Context
from resolvers.values.node_ids import parse_node_key


async def comment_posted(ctx: Context, /, *, product: AnyId, after: str | None = None) -> AsyncGenerator[ShownComment]:
    """Comments as they become visible: from now on, or since the last event that the client received."""
    product = validate_product(product, ("product",))
    # A client that reconnects repeats its query, and says in the header what it has received since.
    known = await _load_resume_point(ctx, ctx.last_event or after, product)
    resume_point = known or ResumePoint(ctx.new_id())
    table, longest = ctx.services.table, timedelta(seconds=ctx.services.policy.request_seconds)

    async def read_arrivals(past: str, up_to: str) -> tuple[list[Arrival[Comment]], str]:
        comments, reached = await comments_store.read_arrivals(table, product, past, up_to)
        return [Arrival(position, comment) for position, comment in comments], reached

    source = Source(read_arrivals, ctx.services.clock, longest)
    topic = ctx.services.live.arrivals(
        ("comments", product), source, resume_point, ctx.address, resumed=known is not None
    )
    async with aclosing(topic) as arrivals:
        async for arrival in arrivals:
            ctx.event_id = arrival.resume_after
            yield show_published(arrival.record)


async def _load_resume_point(ctx: Context, text: str | None, product: str) -> ResumePoint | None:
    """What an event's id says was told; a comment's id says it of what arrived up to that comment."""
    if not text:
        return None
    with suppress(ValueError):
        return ResumePoint.parse(text)
    try:
        key = parse_node_key("Comment", text)
    except InvalidInput:
        key = ""
    comment_product, _, ulid = key.rpartition("#")
    if comment_product != product or not is_ulid(ulid):
        raise InvalidInput(
            "`after` is the id of an event of this stream, or of a comment that it brought.", path=("after",)
        )
    comment = await load_comment(ctx, key)
    return ResumePoint.after(comment.arrived or ulid if comment is not None else ulid)
