"""How many comments there are: one function per field, and what a process keeps of the counts."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from datastore.comments import Comment, CommentPage, counts
from datastore.comments.counts import Leader
from datastore.comments.planner import NO_CENSUS, RATINGS, CommentCounts, Filter
from datastore.dynamo import DynamoError, Page, Window
from datastore.dynamo.budgets import unhurried
from resolvers.comments.rules import filter_of
from resolvers.context import AnyId, Context
from resolvers.loading.fresh import Together
from resolvers.loading.loader import Kept

if TYPE_CHECKING:
    from resolvers.context import Services

KEPT_FOR = 45.0
"""Seconds for which the planner goes by counts it has read; they decide a page's price, not its comments."""
SETTLED_EVERY = 2.0
MOST_SETTLED_AT_ONCE = 100
_log = structlog.get_logger("ringside.comments")


@dataclass(frozen=True, slots=True)
class RatingCount:
    """How many comments gave a rating."""

    rating: int
    count: int


@dataclass(frozen=True, slots=True)
class LanguageCount:
    """How many comments are in a language."""

    language: str
    count: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """A product's comments in numbers, as a whole or in one language."""

    product: str
    language: str | None
    census: CommentCounts

    @property
    def _taken(self) -> tuple[str, ...] | None:
        return None if self.language is None else (self.language,)

    @property
    def total(self) -> int:
        return self.census.count(self._taken)

    @property
    def average(self) -> float | None:
        total = self.total
        stars = sum(rating * self.census.count(self._taken, (rating,)) for rating in RATINGS)
        return stars / total if total else None

    @property
    def histogram(self) -> list[RatingCount]:
        return [RatingCount(rating, self.census.count(self._taken, (rating,))) for rating in reversed(RATINGS)]

    @property
    def languages(self) -> list[LanguageCount]:
        every = self._taken or tuple(self.census.counts)
        rows = [LanguageCount(language, self.census.count((language,))) for language in every]
        return sorted((row for row in rows if row.count), key=lambda row: (-row.count, row.language))


async def total_count(ctx: Context, page: CommentPage, /) -> int:
    """How many comments the page's filter takes, now."""
    census = await ctx.services.get(Counts).exact(page.filter.product)
    return census.count(page.filter.languages, page.filter.ratings)


async def comment_statistics(ctx: Context, /, *, product: AnyId, language: str | None = None) -> Statistics:
    wanted = filter_of(product, None if language is None else [language], None)
    census = await ctx.services.get(Counts).exact(wanted.product)
    return Statistics(wanted.product, wanted.languages[0] if wanted.languages else None, census)


async def top_products(ctx: Context, /, *, window: Window) -> Page[Leader]:
    """Best first; at most two seconds behind what was posted."""
    request = counts.leaders_request(window)
    await ctx.services.get(Counts).settle_all()
    return await counts.leaders(ctx.table, request)


async def statistics_of(ctx: Context, leader: Leader, /) -> Statistics:
    return Statistics(leader.product, None, await ctx.services.get(Counts).exact(leader.product))


class Counts:
    """What one process knows and does about counts: recent ones, and leaders to settle."""

    def __init__(self, services: Services) -> None:
        self._house = services
        self._kept: Kept[str, CommentCounts] = Kept(self._read, seconds=KEPT_FOR)
        self._now: Together[str, CommentCounts] = Together(self._read_now)
        self._to_settle: set[str] = set()
        self._settling: dict[str, asyncio.Task[None]] = {}
        self._looked = float("-inf")

    # ── counts ──

    async def _read(self, products: Sequence[str]) -> Mapping[str, CommentCounts]:
        found = await asyncio.gather(
            *(counts.census(self._house.table, product, consistent=False) for product in products)
        )
        return dict(zip(products, found, strict=True))

    async def _read_now(self, products: Sequence[str]) -> Mapping[str, CommentCounts]:
        found = await asyncio.gather(*(counts.census(self._house.table, product) for product in products))
        for product, census in zip(products, found, strict=True):
            self._kept.put(product, census)
        return dict(zip(products, found, strict=True))

    async def recent(self, wanted: Filter) -> CommentCounts:
        """Counts good enough to plan by; none at all where there is nothing to choose."""
        if wanted.languages is None and wanted.ratings is None:
            return NO_CENSUS
        return await self._kept.load(wanted.product) or NO_CENSUS

    async def exact(self, product: str) -> CommentCounts:
        """The counts as they are now."""
        return await self._now.load(product) or NO_CENSUS

    def written(self, old: Comment | None, new: Comment | None) -> None:
        """Takes notice of a change that this process has made."""
        product = next(one.product for one in (new, old) if one is not None)
        known = self._kept.at_hand(product)
        if known is not None and (known[0] is None or known[0].count() < _FEW):
            self._kept.forget(product)
        if _five_stars(old) != _five_stars(new):
            self.settle_soon(product)

    # ── leaders ──

    def settle_soon(self, product: str) -> None:
        """Settles a product now, or two seconds after it was settled last."""
        self._to_settle.add(product)
        if product not in self._settling:
            task = asyncio.get_running_loop().create_task(self._settle(product), context=contextvars.Context())
            self._settling[product] = task
            task.add_done_callback(lambda _: self._settling.pop(product, None))

    async def _settle(self, product: str) -> None:
        while product in self._to_settle:
            self._to_settle.discard(product)
            try:
                await counts.settle(self._house.table, product)
            except DynamoError as error:
                # The mark in the table stays: the next write or look settles it.
                _log.warning("a product could not be settled", product=product, reason=str(error))
            await asyncio.sleep(SETTLED_EVERY)

    async def settle_all(self) -> None:
        """Settles what any process left unsettled; looked for at most every two seconds."""
        now = asyncio.get_running_loop().time()
        if now < self._looked + SETTLED_EVERY:
            return
        self._looked = now
        waiting = await counts.unsettled(self._house.table)
        for product in waiting[MOST_SETTLED_AT_ONCE:]:
            self.settle_soon(product)
        with unhurried():
            settled = (counts.settle(self._house.table, one) for one in waiting[:MOST_SETTLED_AT_ONCE])
            await asyncio.gather(*settled)

    async def close(self) -> None:
        """Settles what waits; what cannot be settled now is marked in the table."""
        for task in tuple(self._settling.values()):
            task.cancel()
        await asyncio.gather(*self._settling.values(), return_exceptions=True)
        for product in self._to_settle:
            try:
                await counts.settle(self._house.table, product)
            except DynamoError:
                return


_FEW = 200


def _five_stars(one: Comment | None) -> bool:
    return one is not None and one.held is None and one.rating == RATINGS[-1]
