"""The paging oracle: every page is exactly what a sorted list says it is.

Comments are inserted, deleted and moved between pages, under every kind of filter, in both directions, with pages of 1
to 100 and counts that may be right, missing or absurd. Each example reads 20 pages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datastore.comments.pages import read_page
from datastore.comments.planner import RATINGS, CommentCounts, Filter
from datastore.comments.records import COMMENT, Comment
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

    @classmethod
    async def opened(cls, table: Table, random: Random, size: int, length: int) -> Shop:
        shop = cls(table, uuid4().hex, random, {}, Ids())
        for _ in range(size):
            shop._add(length)
        await table.write_many(COMMENT.put(one) for one in shop.model.values())
        return shop

    def _add(self, length: int) -> Comment:
        ulid = self.ids.next(utc_now())
        if self.model and self.random.random() < 0.3:  # by a process whose clock is behind, or slow to commit
            ulid = self.random.choice(list(self.model))[:-4] + "".join(self.random.choices("0123456789ABCDEFGH", k=4))
        rating = self.random.choices((None, *RATINGS), (20, 10, 5, 10, 20, 55))[0]
        language = self.random.choices(LANGUAGES, (60, 20, 8, 5, 4, 2, 1))[0]
        one = Comment(self.product, ulid, language, rating, "x" * self.random.randint(1, length), "ada")
        self.model[ulid] = one
        return one

    async def churn(self) -> None:
        """What others do between two pages."""
        for _ in range(self.random.randint(0, 4)):
            what = self.random.random()
            if what < 0.4 or not self.model:
                await self.table.write(COMMENT.put(self._add(200)))
            elif what < 0.7:
                gone = self.model.pop(self.random.choice(list(self.model)))
                await self.table.write(COMMENT.delete(COMMENT.item_key(gone)))
            else:
                old = self.random.choice(list(self.model.values()))
                moved = replace(
                    old, rating=self.random.choice((None, *RATINGS)), language=self.random.choice(LANGUAGES)
                )
                self.model[old.ulid] = moved
                await self.table.write(COMMENT.put(moved))

    def counts(self) -> CommentCounts:
        """Counts as they are, none at all, or some that nobody ever counted."""
        kind = self.random.randrange(3)
        if kind == 0:
            return CommentCounts()
        counts = {language: [0] * 6 for language in LANGUAGES}
        for one in self.model.values():
            counts[one.language][one.rating or 0] += 1
        if kind == 1:
            counts = {language: [self.random.choice((-3, 0, 1, 10**6)) for _ in range(6)] for language in LANGUAGES}
        return CommentCounts({language: tuple(row) for language, row in counts.items()}, dict.fromkeys(LANGUAGES, 5000))

    def filter(self) -> Filter:
        languages = self.random.sample(LANGUAGES, self.random.choice((0, 0, 1, 2, 6, 7)))
        return Filter.of(self.product, languages, self.random.sample(RATINGS, self.random.choice((0, 1, 2, 3, 4, 5))))

    def expected(self, wanted: Filter, window: Window, after: str | None) -> tuple[list[Comment], bool]:
        """The page, and whether something lies beyond it, from the sorted whole."""
        listed = sorted(
            (one for one in self.model.values() if matches(wanted, one.language, one.rating)),
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
        stayed, shown = {one.ulid for one in shop.model.values() if matches(wanted, one.language, one.rating)}, []
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
            stayed &= {one.ulid for one in shop.model.values() if matches(wanted, one.language, one.rating)}
        await shop.churn()
