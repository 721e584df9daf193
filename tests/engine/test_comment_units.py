"""What a page of comments costs: read units as the engine reports them, over all 31 sets of ratings and many cells."""

import itertools
from random import Random
from statistics import mean

import pytest

from datastore.comments.pages import read_page
from datastore.comments.planner import NO_COUNTS, RATINGS, CommentCounts, Filter
from datastore.comments.records import COMMENT, Comment
from datastore.dynamo import Table, Window, metered
from datastore.values.ids import Ids
from datastore.values.seal import Seal
from resolvers.requests.context import utc_now

SEAL = Seal(["a secret for the cursors of these tests"])
J_SHAPED = (10, 5, 10, 20, 55)
SETS = [chosen for size in RATINGS for chosen in itertools.combinations(RATINGS, size)]
COMMENTS = 600


async def write_comments(table: Table, size: int) -> CommentCounts:
    """Comments of this mean size, keys included, rated as in most shops; returns their counts."""
    chance, ids, comments = Random(7), Ids(), list[Comment]()
    for _ in range(COMMENTS):
        (rating,) = chance.choices(RATINGS, J_SHAPED)
        bare = Comment("42", ids.next(utc_now()), "en", rating, "", "ada")
        body = "x" * max(1, int(size * chance.uniform(0.5, 1.5)) - bare.size)
        comments.append(Comment("42", bare.ulid, "en", rating, body, "ada"))
    await table.write_many(map(COMMENT.put, comments))
    numbers = (0, *(sum(comment.rating == rating for comment in comments) for rating in RATINGS))
    return CommentCounts({"en": numbers}, {"en": sum(comment.size for comment in comments)})


async def units(table: Table, ratings: tuple[int, ...] | None, counts: CommentCounts) -> float:
    """The mean of the first two pages."""
    wanted, cursor, spent_units = Filter.of("42", None, ratings), None, []
    for _ in range(2):
        with metered() as spent:
            page = await read_page(table, wanted, counts, Window(20, SEAL, cursor=cursor).open(wanted.scope))
        spent_units.append(spent.read_units)
        if not page.has_next_page:
            break
        cursor = page.end_cursor
    return mean(spent_units)


@pytest.mark.parametrize(
    ("size", "on_average", "at_most", "unfiltered"), [(300, 2.2, 3.0, 1.5), (3072, 12.0, 15.0, 8.5)]
)
async def test_a_page_costs_little_in_the_mean_of_all_filters_and_with_each(
    one_table: Table, size: int, on_average: float, at_most: float, unfiltered: float
) -> None:
    """The same bounds whether the counts are known or not: the first visitor's page is planned without them."""
    known = await write_comments(one_table, size)
    for counts in (known, NO_COUNTS):
        costs = [await units(one_table, ratings, counts) for ratings in SETS]
        assert mean(costs) <= on_average
        assert max(costs) <= at_most
        assert await units(one_table, None, counts) <= unfiltered


NORDIC = ("da", "fi", "is", "nb", "nn", "se", "sv")


@pytest.mark.parametrize("wanted", [("en", *NORDIC[1:]), NORDIC], ids=["English and rare languages", "rare languages"])
async def test_a_page_of_many_languages_and_ratings_costs_the_same_in_a_large_product(
    one_table: Table, wanted: tuple[str, ...]
) -> None:
    """28 pairs of language and rating, whose few comments are the oldest of many in the same languages or ratings."""
    ids = Ids()
    oldest = [Comment("42", ids.next(utc_now()), wanted[-1], 3, "x", "ada") for _ in range(3)]
    common = (("en", 5), ("pl", 1))
    others = [Comment("42", ids.next(utc_now()), *common[n % 2], "x" * 900, "ada") for n in range(3_000)]
    await one_table.write_many(map(COMMENT.put, oldest + others))
    numbers = {"en": (0, 0, 0, 0, 0, 1_500), "pl": (0, 1_500, 0, 0, 0, 0), wanted[-1]: (0, 0, 0, 3, 0, 0)}
    request_filter = Filter.of("42", wanted, (1, 2, 3, 4))
    for counts in (NO_COUNTS, CommentCounts(numbers, {"en": 1_500_000, "pl": 1_500_000, wanted[-1]: 300})):
        with metered() as spent:
            page = await read_page(one_table, request_filter, counts, Window(20, SEAL).open(request_filter.scope))
        assert [comment.ulid for comment in page.nodes] == [comment.ulid for comment in reversed(oldest)]
        assert not page.has_next_page
        assert spent.read_units <= 75
