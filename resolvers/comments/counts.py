"""How many comments there are: statistics, the counts that plan pages, and products by their five-star comments."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf

import structlog

from datastore.comments.changes import CommentChange
from datastore.comments.counts import Leader, read_counts, read_leaders_page, read_unsettled_products, settle_product
from datastore.comments.planner import NO_COUNTS, RATINGS, CommentCounts, Filter
from datastore.comments.records import Comment
from datastore.dynamo import DynamoError, Page, Reads, SingleFlight, Window, shared_context
from datastore.refusals import Conflict
from resolvers.comments.rules import validate_product
from resolvers.live.background import unless_failed
from resolvers.requests.context import AnyId, Context, Services
from resolvers.values.languages import parse_language

# ── counts ──

RECENT_SECONDS = 45.0
"""The age at which counts are read again for planning; they decide what a page costs, not which comments it shows."""
FEW_COMMENTS = 200
"""Below this number one comment more can change the plan of a page."""


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
    """A product's comments in numbers, in all languages or in one."""

    product: str
    language: str | None
    counts: CommentCounts

    @property
    def _counted_languages(self) -> tuple[str, ...] | None:
        return None if self.language is None else (self.language,)

    @property
    def total(self) -> int:
        return self.counts.count(self._counted_languages)

    @property
    def rated(self) -> int:
        return self.counts.count(self._counted_languages, RATINGS)

    @property
    def replies(self) -> int:
        numbers = self.counts.replies
        return sum(numbers.values()) if self.language is None else numbers.get(self.language, 0)

    @property
    def average(self) -> float | None:
        rated = self.rated
        stars = sum(row.rating * row.count for row in self.histogram)
        return stars / rated if rated else None

    @property
    def histogram(self) -> list[RatingCount]:
        return self._by_rating(self.counts)

    @property
    def verified(self) -> int:
        return self.counts.of_verified().count(self._counted_languages)

    @property
    def verified_histogram(self) -> list[RatingCount]:
        return self._by_rating(self.counts.of_verified())

    def _by_rating(self, counts: CommentCounts) -> list[RatingCount]:
        languages = self._counted_languages
        return [RatingCount(rating, counts.count(languages, (rating,))) for rating in reversed(RATINGS)]

    @property
    def languages(self) -> list[LanguageCount]:
        languages = self._counted_languages or tuple(self.counts.counts)
        rows = [LanguageCount(language, self.counts.count((language,))) for language in languages]
        return sorted((row for row in rows if row.count), key=lambda row: (-row.count, row.language))


async def comment_statistics(ctx: Context, /, *, product: AnyId, language: str | None = None) -> Statistics:
    tag = None if language is None else parse_language(language, ("language",))
    product = validate_product(product, ("product",))
    return Statistics(product, tag, await ctx.services.get(CountsCache).exact(product))


async def comment_statistics_of(
    ctx: Context, /, *, products: list[AnyId], language: str | None = None
) -> list[Statistics]:
    """Statistics of many products, in the order asked; all are read at the same time."""
    tag = None if language is None else parse_language(language, ("language",))
    names = [validate_product(product, ("products", str(index))) for index, product in enumerate(products)]
    exact = await ctx.services.get(CountsCache).exact_of(names)
    return [Statistics(product, tag, counts) for product, counts in zip(names, exact, strict=True)]


class CountsCache:
    """The counts of products: current ones for who shows them, the last known ones for planning."""

    def __init__(self, services: Services) -> None:
        self._counts: Reads[str, CommentCounts] = services.cache.each(
            "comment_counts", partial(read_counts, services.table), kept=inf
        )

    def recent(self, comment_filter: Filter) -> CommentCounts:
        """The last known counts, for planning; none for a filter that leaves nothing to plan.

        They are refreshed in the background, and the next page uses them.
        """
        if comment_filter.languages is None and comment_filter.ratings is None and comment_filter.verified is not False:
            return NO_COUNTS
        self._counts.prefetch(comment_filter.product, RECENT_SECONDS)
        return self._counts.known(comment_filter.product, inf) or NO_COUNTS

    async def exact(self, product: str) -> CommentCounts:
        """The current counts."""
        return await self._counts.load(product) or NO_COUNTS

    async def exact_of(self, products: Sequence[str]) -> list[CommentCounts]:
        """The current counts of many products."""
        return [counts or NO_COUNTS for counts in await self._counts.load_many(products)]

    def comment_changed(self, change: CommentChange) -> None:
        """Forget the counts of a product that has few comments, after a change that this process made.

        Those of others may miss it: only pages are planned by counts that were read before.
        """
        comment = change.new or change.old
        if comment is not None and (self._counts.known(comment.product, inf) or NO_COUNTS).count() < FEW_COMMENTS:
            self._counts.forget(comment.product)


# ── leaders ──
# Products by their five-star comments, and the task that keeps their ranking up to date.

SETTLE_SECONDS = 2.0
MOST_SETTLED_AT_ONCE = 100
LONGEST_WAIT = 0.1
"""Seconds that a reader waits for what is being settled; then the ranking is shown as it is."""
_log = structlog.get_logger("ringside.comments")


async def top_products(ctx: Context, /, *, window: Window) -> Page[Leader]:
    """Best first, at most two seconds old. A cursor of another list is refused before anything is settled.

    The ranking is read while products are settled, and once more if one of them was.
    """
    request = window.open("topProducts")
    settler = ctx.services.get(LeaderSettler)
    page, was_settled = await asyncio.gather(read_leaders_page(ctx.table, request), settler.settle_briefly())
    return await read_leaders_page(ctx.table, request) if was_settled else page


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
        self.patience = LONGEST_WAIT

    def comment_changed(self, change: CommentChange) -> None:
        """Settle the product of a change that this process made, if it moved the number of five-star comments.

        Also if a comment counts no more in its language, of which it may have been the last one.
        """
        comment = change.new or change.old
        moved = _counts_five_stars(change.old) != _counts_five_stars(change.new)
        if comment is not None and (moved or _counted_in(change.old) not in (None, _counted_in(change.new))):
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
                await asyncio.wait_for(self._is_idle.wait(), self.patience)
        return self._settled != settled_before

    async def _settle_repeatedly(self, product: str) -> None:
        """The caller has counted the first turn as active."""
        while True:
            self._to_settle.discard(product)
            try:
                # After a failure its counts stay marked in the table, so the next write or sweep settles it.
                problem = "a product could not be settled"
                await unless_failed(self._settle(product), problem, _log, Conflict, product=product)
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
        async with self._turns:
            await settle_product(self._services.table, product)
        self._settled += 1

    async def _sweep(self) -> None:
        """Begin to settle every marked product."""
        try:
            for product in await read_unsettled_products(self._services.table):
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
                await settle_product(self._services.table, product)
            except (DynamoError, Conflict):
                return


def _counts_five_stars(comment: Comment | None) -> bool:
    return comment is not None and comment.held is None and comment.rating == RATINGS[-1]


def _counted_in(comment: Comment | None) -> str | None:
    """The language in which a comment counts."""
    return None if comment is None or comment.held is not None else comment.language
