"""Pages of a product's comments."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from datastore.comments import ReadReport
from datastore.comments.planner import Filter
from datastore.dynamo import metered
from resolvers.comments.counts import CountsCache
from resolvers.comments.rules import parse_filter
from resolvers.comments.visibility import ShownComment, ShownPage, read_page
from resolvers.loading.batched import batched
from resolvers.people import visibility as members
from resolvers.requests.context import AnyId, BothWaysWindow, Context


async def comments_page(
    ctx: Context,
    /,
    *,
    product: AnyId,
    window: BothWaysWindow,
    languages: list[str] | None = None,
    ratings: list[int] | None = None,
) -> ShownPage:
    """A page; on request the answer also tells how it was read. A cursor of another filter is refused unread."""
    comment_filter = parse_filter(product, languages, ratings)
    request = window.open(comment_filter.scope)
    counts = ctx.services.get(CountsCache).recent(comment_filter)
    if not ctx.explain:
        return await read_page(ctx, comment_filter, counts, request)
    began = time.perf_counter()
    with metered() as spent:
        page = await read_page(ctx, comment_filter, counts, request)
    milliseconds = round((time.perf_counter() - began) * 1000, 2)
    explanation = _explanation(comment_filter, page.report, units=spent.read_units, milliseconds=milliseconds)
    ctx.notes.setdefault("plan", []).append(explanation)
    return page


def _explanation(comment_filter: Filter, report: ReadReport, *, units: float, milliseconds: float) -> dict[str, Any]:
    return {
        "product": comment_filter.product,
        "languages": comment_filter.languages,
        "ratings": comment_filter.ratings,
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
async def authors(ctx: Context, comments: Sequence[ShownComment], /) -> list[members.ShownProfile]:
    return await members.authors(ctx, [comment.author for comment in comments])
