"""How many comments there are: statistics, and the counts that pages are planned by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from datastore import comments as comments_store
from datastore.comments import CommentChange, CommentPage
from datastore.comments.planner import NO_COUNTS, RATINGS, CommentCounts, Filter
from resolvers.comments.rules import parse_filter
from resolvers.context import AnyId, Context, Services
from resolvers.loading.loader import Loader, read_each

CACHED_SECONDS = 45.0
"""For how long the planner uses counts; they decide what a page costs, not which comments it shows."""
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


async def total_count(ctx: Context, page: CommentPage, /) -> int:
    """The current number of comments that match the page's filter."""
    exact = await ctx.services.get(CountsCache).exact(page.filter.product)
    return exact.count(page.filter.languages, page.filter.ratings)


async def comment_statistics(ctx: Context, /, *, product: AnyId, language: str | None = None) -> Statistics:
    comment_filter = parse_filter(product, None if language is None else [language], None)
    exact = await ctx.services.get(CountsCache).exact(comment_filter.product)
    return Statistics(comment_filter.product, comment_filter.languages[0] if comment_filter.languages else None, exact)


class CountsCache:
    """The counts of products: recent ones from memory, exact ones from the table."""

    def __init__(self, services: Services) -> None:
        self._services = services
        recent: Loader[str, CommentCounts] = Loader(self._read_recent, ttl=CACHED_SECONDS)
        exact: Loader[str, CommentCounts] = Loader(self._read_exact, fresh=True)
        self._recent = services.loaders.add("comment_counts", recent)
        self._exact = services.loaders.add("comment_counts_now", exact)

    async def _read_recent(self, products: Sequence[str]) -> Mapping[str, CommentCounts | Exception]:
        return await read_each(products, partial(comments_store.read_counts, self._services.table, consistent=False))

    async def _read_exact(self, products: Sequence[str]) -> Mapping[str, CommentCounts | Exception]:
        answers = await read_each(products, partial(comments_store.read_counts, self._services.table))
        for product, exact in answers.items():
            if not isinstance(exact, Exception):
                self._recent.put(product, exact)
        return answers

    async def recent(self, comment_filter: Filter) -> CommentCounts:
        """Counts that are good enough for planning; none for a filter that leaves nothing to plan."""
        if comment_filter.languages is None and comment_filter.ratings is None:
            return NO_COUNTS
        return await self._recent.load(comment_filter.product) or NO_COUNTS

    async def exact(self, product: str) -> CommentCounts:
        """The current counts."""
        return await self._exact.load(product) or NO_COUNTS

    def comment_changed(self, change: CommentChange) -> None:
        """Forget the counts of a product that has few comments, after a change that this process made."""
        comment = change.new or change.old
        if comment is None:
            return
        cached = self._recent.cached(comment.product)
        if cached is not None and cached.count() < FEW_COMMENTS:
            self._recent.forget(comment.product)
