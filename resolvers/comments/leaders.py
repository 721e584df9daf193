"""Products by their five-star comments, and the task that keeps their ranking up to date."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

import structlog

from datastore import comments as comments_store
from datastore.comments import Comment, CommentChange, Leader
from datastore.comments.planner import RATINGS
from datastore.dynamo import DynamoError, Page, SingleFlight, Window, shared_context
from datastore.refusals import Conflict
from resolvers.comments.counts import CountsCache, Statistics
from resolvers.requests.context import Context, Services

SETTLE_SECONDS = 2.0
MOST_SETTLED_AT_ONCE = 100
LONGEST_WAIT = 0.1
"""Seconds that a reader waits for what is being settled; then the ranking is shown as it is."""
_log = structlog.get_logger("ringside.comments")


async def top_products(ctx: Context, /, *, window: Window) -> Page[Leader]:
    """Best first, at most two seconds old. A cursor of another list is refused before anything is settled.

    The ranking is read while products are settled, and once more if one of them was.
    """
    request = comments_store.leaders_request(window)
    settler = ctx.services.get(LeaderSettler)
    page, was_settled = await asyncio.gather(
        comments_store.read_leaders_page(ctx.table, request), settler.settle_briefly()
    )
    return await comments_store.read_leaders_page(ctx.table, request) if was_settled else page


async def leader_statistics(ctx: Context, leader: Leader, /) -> Statistics:
    return Statistics(leader.product, None, await ctx.services.get(CountsCache).exact(leader.product))


class LeaderSettler:
    """Brings products' places in the ranking up to date with their counts, each at most every two seconds."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._to_settle: set[str] = set()
        self._tasks: SingleFlight[str, None] = SingleFlight(shared_context)
        self._sweeps: SingleFlight[None, None] = SingleFlight(shared_context)
        self._swept_at = float("-inf")
        self._turns = asyncio.Semaphore(MOST_SETTLED_AT_ONCE)
        self._active = 0
        """Products being settled now, and the sweep."""
        self._settled = 0
        self._is_idle = asyncio.Event()

    def comment_changed(self, change: CommentChange) -> None:
        """Settle the product of a change that this process made, if it moved the number of five-star comments."""
        comment = change.new or change.old
        if comment is not None and _counts_five_stars(change.old) != _counts_five_stars(change.new):
            self.settle_soon(comment.product)

    def settle_soon(self, product: str) -> None:
        """Settle a product now, or two seconds after it was last settled."""
        self._to_settle.add(product)
        if product not in self._tasks:
            self._active += 1
            self._tasks.begin(product, partial(self._settle_repeatedly, product))

    async def settle_briefly(self) -> bool:
        """Settle what any process left unsettled, at most every two seconds, and wait a moment for it.

        Returns whether something was settled meanwhile.
        """
        now, settled_before = asyncio.get_running_loop().time(), self._settled
        if None not in self._sweeps and now >= self._swept_at + SETTLE_SECONDS:
            self._swept_at = now
            self._active += 1
            self._sweeps.begin(None, self._sweep)
        if self._active:
            self._is_idle.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_idle.wait(), LONGEST_WAIT)
        return self._settled != settled_before

    async def _settle_repeatedly(self, product: str) -> None:
        """The caller has counted the first turn as active."""
        while True:
            self._to_settle.discard(product)
            try:
                await self._settle(product)
            except asyncio.CancelledError:
                self._to_settle.add(product)  # for `close`
                raise
            finally:
                self._became_inactive()
            await asyncio.sleep(SETTLE_SECONDS)
            if product not in self._to_settle:
                return
            self._active += 1

    async def _settle(self, product: str) -> None:
        try:
            async with self._turns:
                await comments_store.settle_product(self._services.table, product)
            self._settled += 1
        except (DynamoError, Conflict) as error:
            # Its counts stay marked in the table, so the next write or sweep settles it.
            _log.warning("a product could not be settled", product=product, reason=str(error))
        except Exception:  # noqa: BLE001 - a fault with one product must not end the settling of others
            _log.exception("a product could not be settled", product=product)

    async def _sweep(self) -> None:
        """Begin to settle every marked product."""
        try:
            for product in await comments_store.read_unsettled_products(self._services.table):
                self.settle_soon(product)
        except DynamoError as error:
            _log.warning("unsettled products could not be read", reason=str(error))
        finally:
            self._became_inactive()

    def _became_inactive(self) -> None:
        self._active -= 1
        if not self._active:
            self._is_idle.set()

    async def close(self) -> None:
        """Settle the products that wait. One that cannot be settled now stays marked in the table."""
        await self._sweeps.close()
        await self._tasks.close()
        for product in self._to_settle:
            try:
                await comments_store.settle_product(self._services.table, product)
            except DynamoError:
                return


def _counts_five_stars(comment: Comment | None) -> bool:
    return comment is not None and comment.held is None and comment.rating == RATINGS[-1]
