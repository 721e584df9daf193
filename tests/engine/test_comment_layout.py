"""Comments of layout 1 beside this release: counts stay exact, the ranking is made anew, old processes go on."""

from __future__ import annotations

import asyncio
from collections import Counter

from datastore import layout
from datastore.comments import COMMENT, LEADER, OLD_TALLY, Comment, Tally, read_counts
from datastore.comments.upgrade import upgrade
from datastore.dynamo import Table
from datastore.dynamo.attributes import Item
from datastore.dynamo.conditions import absent
from datastore.ids import Ids
from resolvers.context import utc_now
from resolvers.node_ids import node_id
from server.audit.comments import breaches
from server.settings import Settings
from tests.client import serving
from tests.comments import post
from tests.first_round import items_of, write_items
from tests.queries import COMMENT_STATISTICS, DELETE_COMMENT, EDIT_COMMENT, TOP_PRODUCTS

IDS = Ids()
PAUSE_SECONDS = 0.005
"""Between two reads, so that readers leave the writers their share of a slow machine."""


async def post_as_the_first_release(table: Table, product: str, rating: int) -> Comment:
    """One transaction, as the first release makes it: the comment, and its counts where layout 1 has them."""
    comment = Comment(product, IDS.next(utc_now()), "en", rating, "An old process.", "ada")
    tally, added = Tally(product, "en", 1, unsettled=True), {f"r{rating}": 1, "bytes": comment.size}
    counted = OLD_TALLY.shift(tally, "unsettled", add=added)
    await table.transact(COMMENT.put(comment, when=absent()), counted)
    return comment


async def test_both_releases_count_side_by_side(one_table: Table, settings: Settings) -> None:
    """At every moment of an upgrade under traffic the statistics include what either release has acknowledged."""
    async with serving(settings) as client:
        ada = client.member("ada")
        acknowledged, done = 0, False

        async def write() -> None:
            nonlocal acknowledged
            for number in range(12):
                if number % 2:
                    await post_as_the_first_release(one_table, "42", 5)
                else:
                    await post(ada, "42", 5)
                acknowledged += 1

        async def read() -> None:
            while not done:
                least = acknowledged
                assert (await read_counts(one_table, "42")).count() >= least
                await asyncio.sleep(PAUSE_SECONDS)

        async def move() -> None:
            while not done:
                await upgrade(one_table, lambda _: None)
                await asyncio.sleep(PAUSE_SECONDS)

        others = [asyncio.create_task(read()), asyncio.create_task(move())]
        await write()
        done = True
        await asyncio.gather(*others)
        await upgrade(one_table, lambda _: None)
        assert await client.ask(TOP_PRODUCTS) == {
            "nodes": [{"product": "42", "fiveStars": 12, "statistics": {"total": 12}}]
        }
        await client.services.close()
        assert [breach async for breach in breaches(client.services)] == []


async def test_comments_that_the_first_release_counted_are_edited_and_deleted(
    one_table: Table, settings: Settings
) -> None:
    """Their counts leave layout 1's place untouched: the sum of both places is right."""
    old = [await post_as_the_first_release(one_table, "42", 5) for _ in range(3)]
    await layout.upgrade(one_table, lambda _part, _items: None)
    async with serving(settings) as client:
        ada = client.member("ada")
        edited, deleted = [node_id("Comment", comment.node_key) for comment in old[:2]]
        await ada.ask(EDIT_COMMENT, input={"comment": edited, "rating": 2})
        await ada.ask(DELETE_COMMENT, input={"comment": deleted})
        statistics = await client.ask(COMMENT_STATISTICS, product="42")
        assert [row["count"] for row in statistics["histogram"]] == [1, 0, 0, 1, 0]
        await client.services.close()
        assert [breach async for breach in breaches(client.services)] == []
    untouched = [tally async for tally in one_table.iterate(OLD_TALLY.on(product="42"), consistent=True)]
    assert sum(tally.r5 for tally in untouched) == len(old)


async def test_an_upgrade_ranks_what_the_first_release_ranked(one_table: Table) -> None:
    """The same products with the same numbers, in new places; else only pointers are written, nothing is removed."""
    await write_items(one_table)
    before = await items_of(one_table)
    done = list[int]()
    await upgrade(one_table, done.append)
    five_stars = Counter[str]()
    async for tally in one_table.scan(OLD_TALLY):
        five_stars[tally.product] += tally.r5
    assert {leader.product: leader.five_stars async for leader in one_table.scan(LEADER)} == +five_stars
    assert done[0] == len(five_stars)
    assert [item for item in await items_of(one_table) if not _is_new(item)] == [
        item for item in before if not _is_new(item)
    ]


def _is_new(item: Item) -> bool:
    """Whether an item is the place of a product, or a pointer to a comment."""
    return bool(item["sk"]["S"] == "LEADER" or item.get("gsi1pk", {"S": ""})["S"].startswith("LATEST#"))
