"""How many comments there are: statistics, and the counts that pages are planned by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from datastore import comments as comments_store
from datastore.comments import CommentChange
from datastore.comments.planner import NO_COUNTS, RATINGS, CommentCounts, Filter
from resolvers.comments.languages import parse_language
from resolvers.comments.rules import parse_filter, validate_product
from resolvers.requests.context import AnyId, Context, Services

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
    """The counts of products: current ones for who shows them, the last known ones for planning."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._counts = services.cache.each("comment_counts", self._read, kept=inf)

    async def _read(self, product: str) -> CommentCounts:
        return await comments_store.read_counts(self._services.table, product)

    def recent(self, comment_filter: Filter) -> CommentCounts:
        """The last known counts, for planning; none for a filter that leaves nothing to plan.

        They are refreshed in the background, and the next page uses them.
        """
        if comment_filter.languages is None and comment_filter.ratings is None:
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
