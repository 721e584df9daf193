"""The paging oracle: every page is exactly what a sorted list says it is.

Comments are inserted, deleted and moved between pages, under every kind of filter, in both directions, with pages of 1
to 100 and counts that may be right, missing or absurd. Each example reads 20 pages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datastore.comments.pages import read_page
from datastore.comments.planner import RATINGS, CommentCounts, Filter
from datastore.comments.records import COMMENT, Comment
from datastore.comments.verified import entry_writes
from datastore.dynamo import Table, Window
from datastore.values.ids import Ids
from datastore.values.seal import Seal
from resolvers.requests.context import utc_now
from tests.comments import matches
from tests.examples import examples

LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "pt")
PAGES_EACH = 20
SEAL = Seal(["a secret for the oracle's cursors"])


@dataclass
class Shop:
    """A product's comments in the table, and in a plain dictionary."""

    table: Table
    product: str
    random: Random
    model: dict[str, Comment]
    ids: Ids
    verified: float
    """The share of comments that are verified."""

    @classmethod
    async def opened(cls, table: Table, random: Random, size: int, length: int) -> Shop:
        shop = cls(table, uuid4().hex, random, {}, Ids(), random.choice((0, 0.02, 0.5, 0.98)))
        for _ in range(size):
            shop._add(length)
        await table.write_many(write for one in shop.model.values() for write in shop.writes(None, one))
        return shop

    @staticmethod
    def writes(old: Comment | None, new: Comment | None) -> list[Any]:
        own = [COMMENT.put(new)] if new is not None else []
        gone = [COMMENT.delete(COMMENT.item_key(old))] if old is not None and new is None else []
        return [*own, *gone, *entry_writes(old, new)]

    def _add(self, length: int) -> Comment:
        ulid = self.ids.next(utc_now())
        if self.model and self.random.random() < 0.3:  # by a process whose clock is behind, or slow to commit
            ulid = self.random.choice(list(self.model))[:-4] + "".join(self.random.choices("0123456789ABCDEFGH", k=4))
        rating = self.random.choices((None, *RATINGS), (20, 10, 5, 10, 20, 55))[0]
        language = self.random.choices(LANGUAGES, (60, 20, 8, 5, 4, 2, 1))[0]
        verified = utc_now() if self.random.random() < self.verified else None
        text = "x" * self.random.randint(1, length)
        one = Comment(self.product, ulid, language, rating, text, "ada", verified_at=verified)
        self.model[ulid] = one
        return one

    async def churn(self) -> None:
        """What others do between two pages."""
        for _ in range(self.random.randint(0, 4)):
            what = self.random.random()
            if what < 0.4 or not self.model:
                await self._write(None, self._add(200))
            elif what < 0.7:
                gone = self.model.pop(self.random.choice(list(self.model)))
                await self._write(gone, None)
            else:
                old = self.random.choice(list(self.model.values()))
                moved = replace(
                    old, rating=self.random.choice((None, *RATINGS)), language=self.random.choice(LANGUAGES)
                )
                self.model[old.ulid] = moved
                await self._write(old, moved)

    async def _write(self, old: Comment | None, new: Comment | None) -> None:
        for write in self.writes(old, new):
            await self.table.write(write)

    def counts(self) -> CommentCounts:
        """Counts as they are, none at all, or some that nobody ever counted."""
        kind = self.random.randrange(3)
        if kind == 0:
            return CommentCounts()
        counts, verified = ({language: [0] * 6 for language in LANGUAGES} for _ in range(2))
        for one in self.model.values():
            for some in (counts, verified) if one.verified_at else (counts,):
                some[one.language][one.rating or 0] += 1
        if kind == 1:
            counts, verified = (
                {language: [self.random.choice((-3, 0, 1, 10**6)) for _ in range(6)] for language in LANGUAGES}
                for _ in range(2)
            )
        rows, of_verified = ({tag: tuple(row) for tag, row in some.items()} for some in (counts, verified))
        return CommentCounts(rows, dict.fromkeys(LANGUAGES, 5000), verified=of_verified)

    def filter(self) -> Filter:
        languages = self.random.sample(LANGUAGES, self.random.choice((0, 0, 1, 2, 6, 7)))
        ratings = self.random.sample(RATINGS, self.random.choice((0, 1, 2, 3, 4, 5)))
        return Filter.of(self.product, languages, ratings, verified=self.random.choice((None, None, True)))

    def matching(self, wanted: Filter) -> list[Comment]:
        return [
            one
            for one in self.model.values()
            if matches(wanted, one.language, one.rating) and wanted.verified in (None, one.verified_at is not None)
        ]

    def expected(self, wanted: Filter, window: Window, after: str | None) -> tuple[list[Comment], bool]:
        """The page, and whether something lies beyond it, from the sorted whole."""
        listed = sorted(
            self.matching(wanted),
            key=lambda one: one.ulid,
            reverse=window.forward,
        )
        beyond = [one for one in listed if after is None or (one.ulid < after if window.forward else one.ulid > after)]
        shown = beyond[: window.size]
        return (shown if window.forward else shown[::-1]), len(beyond) > window.size


@settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    seed=st.integers(0, 2**64),
    size=st.integers(0, 150),
    length=st.sampled_from((50, 300, 3_000)),
    page_size=st.integers(1, 100) | st.integers(1, 10),
)
async def test_every_page_is_a_slice_of_the_sorted_comments(
    one_table: Table, seed: int, size: int, length: int, page_size: int
) -> None:
    """Nodes, order, and whether more follows; and a traversal of what stays shows it exactly once."""
    random = Random(seed)
    shop = await Shop.opened(one_table, random, size, length)
    pages = 0
    while pages < PAGES_EACH:
        wanted, forward, cursor, after = shop.filter(), random.random() < 0.7, None, None
        stayed, shown = {one.ulid for one in shop.matching(wanted)}, []
        while pages < PAGES_EACH:
            window = Window(random.choice((page_size, random.randint(1, 100))), SEAL, forward=forward, cursor=cursor)
            nodes, more = shop.expected(wanted, window, after)
            found = await read_page(one_table, wanted, shop.counts(), window.open(wanted.scope))
            pages += 1
            assert list(found.nodes) == nodes
            assert (found.has_next_page if forward else found.has_previous_page) is more
            assert (found.has_previous_page if forward else found.has_next_page) is (cursor is not None)
            assert found.report.rounds <= (2 if found.report.chosen.exact else 8)
            shown += [one.ulid for one in nodes]
            if not more:
                assert len(shown) == len(set(shown))
                assert stayed <= set(shown)
                break
            edge = found.edges[-1 if forward else 0]
            cursor, after = edge.cursor, edge.position
            await shop.churn()
            stayed &= {one.ulid for one in shop.matching(wanted)}
        await shop.churn()


@settings(
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**64), size=st.integers(0, 150), page_size=st.integers(1, 30), forward=st.booleans())
async def test_pages_of_those_that_nobody_verified_lead_to_each_of_them_once(
    one_table: Table,
    seed: int,
    size: int,
    page_size: int,
    forward: bool,  # noqa: FBT001 - given by hypothesis
) -> None:
    """They may be short; none is for nothing: each has read on."""
    shop = await Shop.opened(one_table, Random(seed), size, 200)
    wanted = replace(shop.filter(), verified=False)
    shown: list[str] = []
    cursor = None
    while True:
        window = Window(page_size, SEAL, forward=forward, cursor=cursor)
        found = await read_page(one_table, wanted, shop.counts(), window.open(wanted.scope))
        shown += [one.ulid for one in (found.nodes if forward else found.nodes[::-1])]
        if not (found.has_next_page if forward else found.has_previous_page):
            break
        before, cursor = cursor, found.end_cursor if forward else found.start_cursor
        assert cursor not in (None, before)
    expected = sorted((one.ulid for one in shop.matching(wanted)), reverse=forward)
    assert shown == expected
