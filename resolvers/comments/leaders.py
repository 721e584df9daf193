"""Products by their five-star comments, and the task that keeps their ranking up to date."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog

from datastore import comments as comments_store
from datastore.comments import Comment, CommentChange, Leader
from datastore.comments.planner import RATINGS
from datastore.dynamo import DynamoError, Page, SingleFlight, Window, shared_context, within_deadline
from resolvers.comments.counts import CountsCache, Statistics
from resolvers.context import Context, Services

SETTLE_SECONDS = 2.0
MOST_SETTLED_AT_ONCE = 100
_log = structlog.get_logger("ringside.comments")


async def top_products(ctx: Context, /, *, window: Window) -> Page[Leader]:
    """Best first, at most two seconds old. A cursor of another list is refused before anything is settled."""
    request = comments_store.leaders_request(window)
    await ctx.services.get(LeaderSettler).settle_all()
    return await comments_store.read_leaders_page(ctx.table, request)


async def leader_statistics(ctx: Context, leader: Leader, /) -> Statistics:
    return Statistics(leader.product, None, await ctx.services.get(CountsCache).exact(leader.product))


class LeaderSettler:
    """Brings products' places in the ranking up to date with their counts, each at most every two seconds."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._to_settle: set[str] = set()
        self._settling: SingleFlight[str, None] = SingleFlight(shared_context)
        self._sweeps: SingleFlight[None, None] = SingleFlight(shared_context)
        self._swept_at = float("-inf")

    def comment_changed(self, change: CommentChange) -> None:
        """Settle the product of a change that this process made, if it moved the number of five-star comments."""
        comment = change.new or change.old
        if comment is not None and _counts_five_stars(change.old) != _counts_five_stars(change.new):
            self.settle_soon(comment.product)

    def settle_soon(self, product: str) -> None:
        """Settle a product now, or two seconds after it was last settled."""
        self._to_settle.add(product)
        self._settling.begin(product, partial(self._settle_repeatedly, product))

    async def _settle_repeatedly(self, product: str) -> None:
        while product in self._to_settle:
            self._to_settle.discard(product)
            await self._settle(product)
            await asyncio.sleep(SETTLE_SECONDS)

    async def _settle(self, product: str) -> None:
        try:
            await comments_store.settle_product(self._services.table, product)
        except DynamoError as error:
            # Its counts stay marked in the table, so the next write or sweep settles it.
            _log.warning("a product could not be settled", product=product, reason=str(error))
        except Exception:  # noqa: BLE001 - a fault with one product must not end the settling of others
            _log.exception("a product could not be settled", product=product)

    async def settle_all(self) -> None:
        """Settle what any process left unsettled, at most every two seconds."""
        if None in self._sweeps or asyncio.get_running_loop().time() >= self._swept_at + SETTLE_SECONDS:
            await within_deadline(self._sweeps.run(None, self._sweep))

    async def _sweep(self) -> None:
        """Settle every marked product. One that cannot be settled keeps its mark and does not stop the others."""
        self._swept_at = asyncio.get_running_loop().time()
        unsettled = await comments_store.read_unsettled_products(self._services.table)
        for product in unsettled[MOST_SETTLED_AT_ONCE:]:
            self.settle_soon(product)
        await asyncio.gather(*map(self._settle, unsettled[:MOST_SETTLED_AT_ONCE]))

    async def close(self) -> None:
        """Settle the products that wait. One that cannot be settled now stays marked in the table."""
        await self._sweeps.close()
        await self._settling.close()
        for product in self._to_settle:
            try:
                await comments_store.settle_product(self._services.table, product)
            except DynamoError:
                return


def _counts_five_stars(comment: Comment | None) -> bool:
    return comment is not None and comment.held is None and comment.rating == RATINGS[-1]
