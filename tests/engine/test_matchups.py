"""Pages of one contender's head-to-head records: what they read, and that a traversal finds every record."""

from random import Random
from typing import Any

import pytest

from datastore.dynamo import Table, Window, metered
from datastore.values.seal import Seal
from datastore.voting.boards import Board
from datastore.voting.contenders import Contender
from datastore.voting.editing import Shown, seed_board
from datastore.voting.votes import PAIR, TALLY, PairTally, Tally, contender_pairs_request, read_contender_pairs_page
from resolvers.requests.context import utc_now
from resolvers.values.node_ids import node_id
from tests.client import Client, next_cursor

SEAL = Seal(["a secret for the cursors of these tests"])
MOST_UNITS = 150
MATCHUPS = """query ($id: ID!, $after: String) { contender(id: $id) { matchups(first: 1, after: $after) {
  nodes { left { id } right { id } votes } pageInfo { hasNextPage endCursor } } } }"""


async def write_records(table: Table, board: Board, ordinal: int, met: list[int], votes: int) -> None:
    """Votes of one contender with each of these opponents, in random shards."""
    chance, pairs, tallies = Random(5), dict[tuple[int, int], int](), dict[int, int]()
    for opponent in met:
        for shard in chance.choices(range(board.read_shards), k=votes):
            pairs[shard, opponent] = pairs.get((shard, opponent), 0) + 1
            tallies[shard] = tallies.get(shard, 0) + 1
    for (shard, opponent), number in pairs.items():
        low, high = sorted((opponent, ordinal))
        await table.write(PAIR.put(PairTally(board.slug, shard, low, high, ties=number)))
    await table.write_many(TALLY.put(Tally(board.slug, shard, ordinal, ties=ties)) for shard, ties in tallies.items())


@pytest.mark.parametrize("first", [1, 20, 100])
@pytest.mark.parametrize(
    ("shards", "ordinal", "met", "votes"),
    [(8, 399, 0, 1), (8, 399, 1, 1), (8, 399, 20, 2), (8, 200, 60, 4), (8, 0, 20, 2), (64, 20, 40, 64)],
)
async def test_a_page_of_a_contender_s_records_reads_no_more_than_it_counts(
    one_table: Table, shards: int, ordinal: int, met: int, votes: int, first: int
) -> None:
    """Each record is on one page, in the order of joining, and the pages are few where most pairs were voted on."""
    board = Board("b", "B", utc_now(), size=400, read_shards=shards)
    opponents = sorted(Random(7).sample([other for other in range(400) if other != ordinal], met))
    await write_records(one_table, board, ordinal, opponents, votes)
    found, cursor = list[int](), None
    while True:
        request = contender_pairs_request("b", ordinal, Window(first, SEAL, cursor=cursor))
        with metered() as spent:
            page = await read_contender_pairs_page(one_table, board, ordinal, request)
        assert spent.read_units <= MOST_UNITS
        assert len(page.nodes) <= first
        assert [record.votes for record in page.nodes] == [votes] * len(page.nodes)
        found += [record.low + record.high - ordinal for record in page.nodes]
        if not page.has_next_page:
            break
        assert page.end_cursor is not None
        assert page.end_cursor != cursor
        cursor = page.end_cursor
    assert found == opponents


async def test_a_traversal_passes_over_pairs_whose_votes_were_voided(one_table: Table) -> None:
    """They are still stored, with no votes; the record behind them is found."""
    board = Board("b", "B", utc_now(), size=40, read_shards=8)
    await write_records(one_table, board, 0, [39], 3)
    await one_table.write_many(PAIR.put(PairTally("b", 3, 0, opponent)) for opponent in range(1, 39))
    found, cursor = list[int](), None
    while True:
        request = contender_pairs_request("b", 0, Window(5, SEAL, cursor=cursor))
        page = await read_contender_pairs_page(one_table, board, 0, request)
        found += [record.high for record in page.nodes]
        if not page.has_next_page:
            break
        cursor = page.end_cursor
    assert found == [39]


async def test_a_full_page_is_answered_where_all_pairs_were_voted_on(one_table: Table) -> None:
    """Twenty records, the default, on a board with the shards of the default rate."""
    board = Board("b", "B", utc_now(), size=60, read_shards=8)
    await write_records(one_table, board, 59, list(range(59)), 4)
    request = contender_pairs_request("b", 59, Window(20, SEAL))
    assert len((await read_contender_pairs_page(one_table, board, 59, request)).nodes) == 20


async def test_a_client_goes_on_behind_a_page_without_records(one_client: Client) -> None:
    """With `endCursor`, until `hasNextPage` is false; the record of the two is found."""
    now, table = utc_now(), one_client.services.table
    contenders = {Contender("b", ordinal, f"c{ordinal}", now): Shown("<svg/>", "d") for ordinal in range(300)}
    assert await seed_board(table, Board("b", "B", now), contenders, [], now)
    await write_records(table, Board("b", "B", now, size=300, read_shards=8), 299, [250], 3)
    contender, after, pages = node_id("Contender", "b/299"), None, list[list[Any]]()
    while True:
        page = (await one_client.ask(MATCHUPS, id=contender, after=after))["matchups"]
        pages.append(page["nodes"])
        after = next_cursor(page, after)
        if after is None:
            break
    assert [] in pages
    record = {"left": {"id": contender}, "right": {"id": node_id("Contender", "b/250")}, "votes": 3}
    assert [node for nodes in pages for node in nodes] == [record]
