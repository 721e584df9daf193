"""How many comments there are: one function per field, and what a process keeps of the counts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from datastore.comments import Comment, CommentPage, counts
from datastore.comments.counts import Leader
from datastore.comments.planner import NO_CENSUS, RATINGS, CommentCounts, Filter
from datastore.dynamo import DynamoError, Page, SingleFlight, Window, shared_context, within_deadline
from resolvers.comments.rules import parse_filter
from resolvers.context import AnyId, Context
from resolvers.loading.loader import Loader, read_each

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
    wanted = parse_filter(product, None if language is None else [language], None)
    census = await ctx.services.get(Counts).exact(wanted.product)
    return Statistics(wanted.product, wanted.languages[0] if wanted.languages else None, census)


async def top_products(ctx: Context, /, *, window: Window) -> Page[Leader]:
    """Best first; at most two seconds behind what was posted."""
    request = counts.leaders_request(window)
    await ctx.services.get(Counts).settle_all()
    return await counts.leaders(ctx.table, request)


async def leader_statistics(ctx: Context, leader: Leader, /) -> Statistics:
    return Statistics(leader.product, None, await ctx.services.get(Counts).exact(leader.product))


class Counts:
    """What one process knows and does about counts: recent ones, and leaders to settle."""

    def __init__(self, services: Services) -> None:
        self._house = services
        recent: Loader[str, CommentCounts] = Loader(self._read_recent, ttl=KEPT_FOR)
        exact: Loader[str, CommentCounts] = Loader(self._read_exact, fresh=True)
        self._recent = services.loaders.add("comment_counts", recent)
        self._exact = services.loaders.add("comment_counts_now", exact)
        self._to_settle: set[str] = set()
        self._settling: SingleFlight[str, None] = SingleFlight(shared_context)
        self._looks: SingleFlight[str, None] = SingleFlight(shared_context)
        self._looked = float("-inf")

    # ── counts ──

    async def _read_recent(self, products: Sequence[str]) -> Mapping[str, CommentCounts | Exception]:
        return await read_each(products, partial(counts.census, self._house.table, consistent=False))

    async def _read_exact(self, products: Sequence[str]) -> Mapping[str, CommentCounts | Exception]:
        answers = await read_each(products, partial(counts.census, self._house.table))
        for product, census in answers.items():
            if not isinstance(census, Exception):
                self._recent.put(product, census)
        return answers

    async def recent(self, wanted: Filter) -> CommentCounts:
        """Counts good enough to plan by; none at all where there is nothing to choose."""
        if wanted.languages is None and wanted.ratings is None:
            return NO_CENSUS
        return await self._recent.load(wanted.product) or NO_CENSUS

    async def exact(self, product: str) -> CommentCounts:
        """The counts as they are now."""
        return await self._exact.load(product) or NO_CENSUS

    def written(self, old: Comment | None, new: Comment | None) -> None:
        """Takes notice of a change that this process has made."""
        product = next(one.product for one in (new, old) if one is not None)
        cached = self._recent.cached(product)
        if cached is not None and cached.count() < _FEW:
            self._recent.forget(product)
        if _five_stars(old) != _five_stars(new):
            self.settle_soon(product)

    # ── leaders ──

    def settle_soon(self, product: str) -> None:
        """Settles a product now, or two seconds after it was settled last."""
        self._to_settle.add(product)
        self._settling.begin(product, partial(self._settle_repeatedly, product))

    async def _settle_repeatedly(self, product: str) -> None:
        while product in self._to_settle:
            self._to_settle.discard(product)
            await self._settle(product)
            await asyncio.sleep(SETTLED_EVERY)

    async def _settle(self, product: str) -> None:
        try:
            await counts.settle(self._house.table, product)
        except DynamoError as error:
            # The mark in the table stays: the next write or look settles it.
            _log.warning("a product could not be settled", product=product, reason=str(error))
        except Exception:  # noqa: BLE001 - a fault with one product must not end the settling of others
            _log.exception("a product could not be settled", product=product)

    async def settle_all(self) -> None:
        """Settles what any process left unsettled; looked for at most every two seconds."""
        if "unsettled" in self._looks or asyncio.get_running_loop().time() >= self._looked + SETTLED_EVERY:
            await within_deadline(self._looks.run("unsettled", self._look))

    async def _look(self) -> None:
        """Settles every product that is marked. One that cannot be settled keeps its mark and stops no other."""
        self._looked = asyncio.get_running_loop().time()
        marked = await counts.unsettled(self._house.table)
        for product in marked[MOST_SETTLED_AT_ONCE:]:
            self.settle_soon(product)
        await asyncio.gather(*map(self._settle, marked[:MOST_SETTLED_AT_ONCE]))

    async def close(self) -> None:
        """Settles what waits; what cannot be settled now is marked in the table."""
        await self._looks.close()
        await self._settling.close()
        for product in self._to_settle:
            try:
                await counts.settle(self._house.table, product)
            except DynamoError:
                return


_FEW = 200


def _five_stars(one: Comment | None) -> bool:
    return one is not None and one.held is None and one.rating == RATINGS[-1]
