"""Boards while processes of the first round vote and edit beside this release; their writes are made here."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from datastore import voting
from datastore.dynamo import Table
from datastore.dynamo.conditions import absent
from datastore.receipts import Once
from datastore.voting import BOARD, CONTENDER, NAME, Board, Contender, Name, PairVerdict, Vote
from datastore.voting.upgrade import upgrade
from resolvers.context import utc_now
from tests.client import Client
from tests.queries import BOARD_COUNTS, DRAW_MATCHUP, LEADERBOARD
from tests.voting import add_contenders, assert_consistent, vote


async def board_now(table: Table) -> Board:
    current = await voting.read_board_with_marks(table, "main")
    assert current is not None
    return current.board


async def add_as_before(table: Table, name: str) -> None:
    """The first round's transaction: the board's size, the name and the contender."""
    board = await board_now(table)
    await table.transact(
        BOARD.change(BOARD.item_key(board), values={"size": board.size + 1}, add={"revision": 1}),
        NAME.put(Name("main", voting.folded(name), board.size, "old"), when=absent()),
        CONTENDER.put(Contender("main", board.size, name, utc_now())),
    )


async def vote_as_before(table: Table, voter: str) -> None:
    """The first round's vote and settling, which ends without a mark."""
    vote = Vote(voter, "main", 1, 0, 1, PairVerdict.LOW_WINS, utc_now(), b"\x01\x01\x02\x00")
    await voting.cast(table, vote, Once.unkeyed(vote.at))
    board = await board_now(table)
    await table.write(BOARD.change(BOARD.item_key(board), values={"settled_at": utc_now()}, add={"settled": 1}))


async def wins_shown(client: Client, expected: int) -> None:
    async with asyncio.timeout(10):
        while sum(row["wins"] for row in (await client.ask(LEADERBOARD))["nodes"]) != expected:
            await asyncio.sleep(0.1)


async def test_what_an_old_process_writes_is_shown(one_client: Client, one_table: Table) -> None:
    """A contender and votes: drawn, listed and counted here within two seconds, though no mark tells of them."""
    await add_contenders(one_client, "a", "b")
    await vote(one_client.visitor())
    await wins_shown(one_client, 1)
    await add_as_before(one_table, "c")
    await vote_as_before(one_table, "old")
    await wins_shown(one_client, 2)
    assert [row["contender"]["name"] for row in (await one_client.ask(LEADERBOARD))["nodes"]].count("c") == 1
    assert (await one_client.ask(BOARD_COUNTS))["contenderCount"] == 3
    assert (await one_client.member("ada").ask(DRAW_MATCHUP))["progress"]["remaining"] == 3
    await assert_consistent(one_client)


async def test_an_old_process_finds_votes_to_settle(one_client: Client, one_table: Table) -> None:
    """It settles while a mark is younger than its last settling; ours stays, even when it means nothing to us."""
    await add_contenders(one_client, "a", "b")
    settled_at = utc_now()
    await vote(one_client.visitor())
    await wins_shown(one_client, 1)
    async with asyncio.timeout(10):
        while (current := await voting.read_board_with_marks(one_table, "main")) is None or current.is_dirty:
            await asyncio.sleep(0.1)
    assert [mark.until > settled_at for mark in current.marks] == [True]
    assert current.marks[0].expires_at - current.marks[0].until == timedelta(days=1)
    old_rows = {row.ordinal: row.score async for row in voting.all_contenders(one_table, "main")}
    assert old_rows == {0: 0, 1: 0}


async def test_an_upgrade_picks_up_what_an_old_process_wrote_meanwhile(one_client: Client, one_table: Table) -> None:
    """Before anybody has voted through this release, and after."""
    now = utc_now()
    await one_table.write(BOARD.put(Board("main", "Main", now)))
    for name in ("a", "b"):
        await add_as_before(one_table, name)
        await upgrade(one_table, lambda _: None)
    assert (await one_client.ask(LEADERBOARD))["totalCount"] == 2
    assert (await board_now(one_table)).is_covered
    await vote(one_client.visitor())
    await wins_shown(one_client, 1)
    await add_as_before(one_table, "c")
    await vote_as_before(one_table, "old")
    await upgrade(one_table, lambda _: None)
    assert (await board_now(one_table)).is_covered
    assert (await board_now(one_table)).votes == 2
    await assert_consistent(one_client)
