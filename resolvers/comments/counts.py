"""How many comments there are: statistics, and the counts that pages are planned by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from datastore import comments as comments_store
from datastore.comments import CommentChange
from datastore.comments.planner import NO_COUNTS, RATINGS, CommentCounts, Filter
from resolvers.comments.languages import parse_language
from resolvers.comments.rules import parse_filter, validate_product
from resolvers.loading.bounded_dict import BoundedDict
from resolvers.loading.loader import Loader
from resolvers.requests.context import AnyId, Context, Services

RECENT_SECONDS = 45.0
"""The age at which counts are read again for planning; they decide what a page costs, not which comments it shows."""
MOST_PRODUCTS = 10_000
"""Products whose counts are kept in memory."""
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
    def average(self) -> float | None:
        total = self.total
        stars = sum(row.rating * row.count for row in self.histogram)
        return stars / total if total else None

    @property
    def histogram(self) -> list[RatingCount]:
        languages = self._counted_languages
        return [RatingCount(rating, self.counts.count(languages, (rating,))) for rating in reversed(RATINGS)]

    @property
    def languages(self) -> list[LanguageCount]:
        languages = self._counted_languages or tuple(self.counts.counts)
        rows = [LanguageCount(language, self.counts.count((language,))) for language in languages]
        return sorted((row for row in rows if row.count), key=lambda row: (-row.count, row.language))


async def comment_statistics(ctx: Context, /, *, product: AnyId, language: str | None = None) -> Statistics:
    if language is not None:
        language = parse_language(language, ("language",))
    comment_filter = parse_filter(product, None if language is None else [language], None)
    exact = await ctx.services.get(CountsCache).exact(comment_filter.product)
    return Statistics(comment_filter.product, comment_filter.languages[0] if comment_filter.languages else None, exact)


async def comment_statistics_of(
    ctx: Context, /, *, products: list[AnyId], language: str | None = None
) -> list[Statistics]:
    """Statistics of many products, in the order asked; all are read at the same time."""
    tag = None if language is None else parse_language(language, ("language",))
    names = [validate_product(product, ("products", str(index))) for index, product in enumerate(products)]
    exact = await ctx.services.get(CountsCache).exact_of(names)
    return [Statistics(product, tag, counts) for product, counts in zip(names, exact, strict=True)]


class CountsCache:
    """The counts of products: recent ones from memory, exact ones from the table."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._recent: BoundedDict[str, tuple[float, CommentCounts]] = BoundedDict(MOST_PRODUCTS)
        """When they were read, and the counts."""
        planned: Loader[str, CommentCounts] = Loader.each(self._read_recent, ttl=1.0)
        exact: Loader[str, CommentCounts] = Loader.each(self._read_exact, fresh=True)
        self._planned = services.loaders.add("comment_counts_for_plans", planned)
        self._exact = services.loaders.add("comment_counts_now", exact)

    async def _read_exact(self, product: str) -> CommentCounts:
        counts = await comments_store.read_counts(self._services.table, product)
        self._recent[product] = (monotonic(), counts)
        return counts

    async def _read_recent(self, product: str) -> CommentCounts:
        counts = await comments_store.read_counts(self._services.table, product, consistent=False)
        self._recent[product] = (monotonic(), counts)
        return counts

    def recent(self, comment_filter: Filter) -> CommentCounts:
        """The last known counts, for planning; none for a filter that leaves nothing to plan.

        They are refreshed in the background, and the next page uses them.
        """
        if comment_filter.languages is None and comment_filter.ratings is None:
            return NO_COUNTS
        read_at, counts = self._recent.get(comment_filter.product, (float("-inf"), NO_COUNTS))
        if monotonic() >= read_at + RECENT_SECONDS:
            self._planned.prefetch(comment_filter.product)
        return counts

    async def exact(self, product: str) -> CommentCounts:
        """The current counts."""
        return await self._exact.load(product) or NO_COUNTS

    async def exact_of(self, products: Sequence[str]) -> list[CommentCounts]:
        """The current counts of many products."""
        return [counts or NO_COUNTS for counts in await self._exact.load_many(products)]

    def comment_changed(self, change: CommentChange) -> None:
        """Forget the counts of a product that has few comments, after a change that this process made."""
        comment = change.new or change.old
        if comment is not None and self._recent.get(comment.product, (0.0, NO_COUNTS))[1].count() < FEW_COMMENTS:
            self._recent.pop(comment.product, None)
