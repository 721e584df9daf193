"""Pages of comments: a product's, a member's, the site's latest ones; and the stream of a product's new ones."""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from datastore.comments import pages, records
from datastore.comments.pages import ReadReport
from datastore.comments.planner import Filter
from datastore.comments.records import Answer, Comment, Status
from datastore.dynamo import PageRequest, Window, metered
from datastore.refusals import InvalidInput
from datastore.values.ids import first_id, is_ulid
from resolvers.comments import visibility
from resolvers.comments.counts import CountsCache
from resolvers.comments.rules import parse_filter, validate_product
from resolvers.live.feed import Arrival, ResumePoint, Source
from resolvers.loading import batched
from resolvers.people import visibility as member_visibility
from resolvers.people.identities import look_again
from resolvers.requests.context import AnyId, BothWaysWindow, Context
from resolvers.values.node_ids import parse_node_key

# ── a product's comments ──


class CommentOrder(StrEnum):
    """In which order a product's comments are shown."""

    NEWEST = "NEWEST"
    HELPFUL = "HELPFUL"


async def comments_page(
    ctx: Context,
    /,
    *,
    product: AnyId,
    window: BothWaysWindow,
    languages: list[str] | None = None,
    ratings: list[int] | None = None,
    verified: bool | None = None,
    order: CommentOrder = CommentOrder.NEWEST,
) -> visibility.ShownPage:
    """A page; on request the answer also tells how it was read. A cursor of another filter is refused unread."""
    comment_filter = parse_filter(product, languages, ratings, verified=verified)
    if order is CommentOrder.HELPFUL and not window.forward:
        raise InvalidInput("The most helpful comments are read forwards only: use `first` and `after`.", path=("last",))
    request = window.open(comment_filter.scope if order is CommentOrder.NEWEST else f"{comment_filter.scope}\n{order}")
    if not ctx.explain:
        return await _read_page(ctx, comment_filter, request, order)
    began = time.perf_counter()
    with metered() as spent:
        page = await _read_page(ctx, comment_filter, request, order)
    milliseconds = round((time.perf_counter() - began) * 1000, 2)
    explanation = _explanation(comment_filter, page.report, units=spent.read_units, milliseconds=milliseconds)
    ctx.notes.setdefault("plan", []).append(explanation)
    return page


async def _read_page(
    ctx: Context, comment_filter: Filter, request: PageRequest, order: CommentOrder
) -> visibility.ShownPage:
    counts = ctx.services.get(CountsCache).recent(comment_filter)
    if order is CommentOrder.NEWEST:
        return await visibility.read_page(ctx, comment_filter, counts, request)
    return await visibility.read_helpful_page(ctx, comment_filter, counts, request)


def _explanation(comment_filter: Filter, report: ReadReport, *, units: float, milliseconds: float) -> dict[str, Any]:
    return {
        "product": comment_filter.product,
        "languages": comment_filter.languages,
        "ratings": comment_filter.ratings,
        "verified": comment_filter.verified,
        "considered": [
            {"path": plan.path, "queries": len(plan.reads), "cost": round(plan.cost, 2), "exact": plan.exact}
            for plan in report.considered
        ],
        "chosen": report.chosen.path,
        "queries": report.queries,
        "rounds": report.rounds,
        "itemsRead": report.read,
        "readUnits": units,
        "engineMilliseconds": milliseconds,
    }


@batched
async def authors(ctx: Context, comments: Sequence[visibility.ShownComment], /) -> list[member_visibility.ShownProfile]:
    return await member_visibility.authors(ctx, [comment.author for comment in comments])


@batched
async def answerers(ctx: Context, answers: Sequence[Answer], /) -> list[member_visibility.ShownProfile | None]:
    """Who wrote the site's answers; None for an API key, and for an editor who is no member any more."""
    users = list({answer.by for answer in answers if answer.by is not None})
    shown = dict(zip(users, await member_visibility.members(ctx, users), strict=True))
    return [None if answer.by is None else shown[answer.by] for answer in answers]


# ── latest ──


async def latest_comments(
    ctx: Context, /, *, window: Window, status: Status | None = None
) -> visibility.ModerationPage:
    """The whole site's comments, newest first; for moderators."""
    counted = status or Status.PENDING
    return await visibility.read_for_moderators(
        ctx, counted, lambda: records.read_latest_comments(ctx.table, status, window)
    )


# ── arrivals ──


async def comment_posted(
    ctx: Context, /, *, product: AnyId, after: str | None = None
) -> AsyncGenerator[visibility.ShownComment]:
    """Comments as they become visible: from now on, or since the last event that the client received."""
    product = validate_product(product, ("product",))
    # A client that reconnects repeats its query, and says in the header what it has received since.
    known = await _load_resume_point(ctx, ctx.last_event or after, product)
    resume_point = known or ResumePoint(ctx.new_id())
    table, longest = ctx.services.table, timedelta(seconds=ctx.services.policy.request_seconds)

    async def read_arrivals(past: str, up_to: str) -> tuple[list[Arrival[Comment]], str]:
        comments, reached = await pages.read_arrivals(table, product, past, up_to)
        return [Arrival(position, comment) for position, comment in comments], reached

    source = Source(read_arrivals, ctx.services.clock, longest)
    topic = ctx.services.live.arrivals(
        ("comments", product), source, resume_point, ctx.address, resumed=known is not None
    )
    async with aclosing(topic) as arrivals:
        async for arrival in arrivals:
            ctx.event_id = arrival.resume_after
            look_again(ctx)
            yield visibility.show_published(arrival.record)


_FIRST = datetime(1971, 1, 1, tzinfo=UTC)
_OLDER = timedelta(seconds=2)
"""How much older a page may be than the moment that it names: another's write was under way, or was not read yet."""


async def _load_resume_point(ctx: Context, text: str | None, product: str) -> ResumePoint | None:
    """What an event's id says was told; a comment's id, or a moment, says it of what arrived up to then."""
    if not text:
        return None
    with suppress(ValueError):
        return ResumePoint.parse(text)
    with suppress(ValueError):
        moment = min(_parse_moment(text), ctx.now())
        return ResumePoint.after(first_id(max(moment, _FIRST) - _OLDER))
    try:
        key = parse_node_key("Comment", text)
    except InvalidInput:
        key = ""
    comment_product, _, ulid = key.rpartition("#")
    if comment_product != product or not is_ulid(ulid):
        raise InvalidInput(
            "`after` is the id of an event of this stream, or of a comment that it brought, or a moment with its zone.",
            path=("after",),
        )
    comment = await visibility.load_comment(ctx, key)
    return ResumePoint.after(comment.arrived or ulid if comment is not None else ulid)


def _parse_moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("A moment has its zone.")
    return moment
