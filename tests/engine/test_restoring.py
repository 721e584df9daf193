"""Contenders that come back: counts, ranks, names, draws, and the audit."""

import asyncio
from itertools import combinations
from random import Random
from typing import Any

import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.voting.boards import BOARD, Board
from datastore.voting.editing import set_retired
from resolvers.requests.context import utc_now
from resolvers.voting.settling import BoardCache
from server.audit import find_suspects
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.killed import Killed, killed_at
from tests.queries import (
    ADD_CONTENDER,
    BOARD_COUNTS,
    CAST_VOTE,
    DRAW_MATCHUP,
    LEADERBOARD,
    RESTORE_CONTENDER,
    RETIRE_CONTENDER,
    UPDATE_CONTENDER,
)
from tests.voting import add_contenders, assert_consistent, editor, pair_names, settle_votes, vote

MATCHUPS = "{ matchups(first: 100) { nodes { left { name } right { name } leftWins rightWins ties } } }"


async def retire(client: Client, contender: str) -> dict[str, Any]:
    answer: dict[str, Any] = await editor(client).ask(RETIRE_CONTENDER, input={"contender": contender})
    return answer


async def restore(client: Client, contender: str, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await editor(client).ask(RESTORE_CONTENDER, input={"contender": contender, **more})
    return answer


async def forget_boards(client: Client) -> None:
    """The next read sees what another process has just changed."""
    client.services.get(BoardCache).changed("main")


@pytest.mark.lagging
async def test_a_restored_contender_is_where_it_was(client: Client) -> None:
    """Counts, rank, records and leaderboard are those from before; a vote on an earlier ballot counts meanwhile."""
    ids = await add_contenders(client, "a", "b", "c")
    for number in range(12):
        await vote(client.member(f"v{number}"), ("LEFT", "RIGHT", "TIE")[number % 3])
    await settle_votes(client)
    await client.caught_up("the leaderboard shows the settled counts")
    before, records = await client.ask(LEADERBOARD), await client.ask(MATCHUPS)
    holder = client.member("holder")
    ballot = await holder.ask(DRAW_MATCHUP)
    gone = ballot["left"]["id"]
    await retire(client, gone)
    await client.caught_up("the index has no retired contender")
    assert gone not in [row["contender"]["id"] for row in (await client.ask(LEADERBOARD))["nodes"]]
    restored = (await restore(client, gone))["contender"]
    assert (restored["retired"], restored["id"]) == (False, gone)
    assert (await restore(client, gone))["contender"] == restored
    await client.caught_up("the index has the restored contender")
    assert (await client.ask(LEADERBOARD)) == before
    assert await client.ask(MATCHUPS) == records
    assert next(row for row in before["nodes"] if row["contender"]["id"] == gone)["rank"] == restored["rank"]
    await retire(client, gone)
    assert (await holder.ask(CAST_VOTE, token=ballot["token"], verdict="LEFT"))["winner"]["id"] == gone
    wins = restored["wins"]
    await settle_votes(client)
    assert (await restore(client, gone))["contender"]["wins"] == wins + 1
    assert (await client.ask(BOARD_COUNTS))["contenderCount"] == len(ids)
    await assert_consistent(client)


async def test_a_restored_contender_is_drawn_in_the_same_cycle(client: Client) -> None:
    """A voter who passed its pairs gets them before any pair comes twice; progress counts them."""
    ids = await add_contenders(client, "a", "b", "c", "d", "e")
    visitor, met = client.visitor(), list[frozenset[str]]()
    await retire(client, ids[4])
    for _ in range(4):
        met.append(pair_names((await vote(visitor))["ballot"]))
    await restore(client, ids[4])
    progress = (await visitor.ask(BOARD_COUNTS))["progress"]
    assert progress == {"seen": 4, "remaining": 6}
    for left in range(6, 0, -1):
        ballot = (await vote(visitor, "SKIP"))["ballot"]
        assert ballot["progress"]["remaining"] == left
        met.append(pair_names(ballot))
    assert sorted(map(sorted, met)) == sorted(map(sorted, combinations("abcde", 2)))
    assert (await visitor.ask(DRAW_MATCHUP))["progress"] == {"seen": 0, "remaining": 10}
    await assert_consistent(client)


async def test_a_name_stays_taken_until_its_contender_comes_back(client: Client) -> None:
    """Nobody else may take it meanwhile; a retired contender may be renamed and comes back with the new name."""
    [cat, dog] = await add_contenders(client, "Cat", "Dog")
    await retire(client, cat)
    one = editor(client)
    assert await one.code(ADD_CONTENDER, input={"name": "CAT"}) == "CONFLICT"
    assert await one.code(UPDATE_CONTENDER, input={"contender": dog, "name": "cat"}) == "CONFLICT"
    await one.ask(UPDATE_CONTENDER, input={"contender": cat, "name": "Tiger"})
    await one.ask(UPDATE_CONTENDER, input={"contender": dog, "name": "Cat"})
    assert (await restore(client, cat))["contender"]["name"] == "Tiger"
    await assert_consistent(client)


async def test_restoring_is_refused_clearly(client: Client) -> None:
    """To visitors, to members without the role, and of contenders that do not exist."""
    [cat] = await add_contenders(client, "Cat")
    none = cat[:-4] + ("AAAA" if cat[-4:] != "AAAA" else "BBBB")
    assert await client.code(RESTORE_CONTENDER, input={"contender": cat}) == "NOT_SIGNED_IN"
    assert await client.member("ada").code(RESTORE_CONTENDER, input={"contender": cat}) == "NOT_ALLOWED"
    assert await editor(client).code(RESTORE_CONTENDER, input={"contender": none}) == "INVALID_INPUT"
    await retire(client, cat)
    first = await restore(client, cat, idempotencyKey="k")
    await retire(client, cat)
    again = await restore(client, cat, idempotencyKey="k")
    assert again["contender"]["id"] == first["contender"]["id"]
    assert (await client.ask("query ($id: ID!) { contender(id: $id) { retired } }", id=cat))["retired"] is True


async def test_votes_retirements_and_restorations_at_once_stay_exact(table: Table, engine: RunningEngine) -> None:
    """Through two processes: no voter sees a pair twice in a cycle, and every count is exact at the end."""
    settings = settings_for(engine, table.name)
    async with serving(settings) as first, serving(settings) as second:
        ids = await add_contenders(first, "a", "b", "c", "d", "e")
        chance, done = Random(7), asyncio.Event()

        async def voter(number: int) -> None:
            member = (first, second)[number % 2].member(f"v{number}")
            for _ in range(14):
                ballot = await member.ask(DRAW_MATCHUP)
                answer = await member.ask(CAST_VOTE, token=ballot["token"], verdict=chance.choice(("LEFT", "TIE")))
                assert "code" not in answer, answer

        async def editing(client: Client, own: list[str]) -> None:
            while not done.is_set():
                contender = chance.choice(own)
                await retire(client, contender)
                await restore(client, contender)

        editors = asyncio.gather(editing(first, ids[:2]), editing(second, ids[1:3]))
        await asyncio.gather(*(voter(number) for number in range(6)))
        done.set()
        await editors
        await forget_boards(first)
        assert (await first.ask(BOARD_COUNTS))["contenderCount"] == 5
        await settle_votes(first)
        await forget_boards(second)
        assert (await second.ask(BOARD_COUNTS))["votes"] == 6 * 14
        await assert_consistent(first)


async def test_a_killed_restoration_is_done_or_not(one_client: Client) -> None:
    """Killed before or after its only write; repeated, it is done."""
    [cat, _] = await add_contenders(one_client, "Cat", "Dog")
    table = one_client.services.table
    for write in (0, 1):
        await retire(one_client, cat)
        try:
            with killed_at(table, write):
                await set_retired(table, ("main", 0), UnitOfWork.unkeyed(utc_now()), retired=False)
        except Killed:
            pass
        await forget_boards(one_client)
        await assert_consistent(one_client)
        await set_retired(table, ("main", 0), UnitOfWork.unkeyed(utc_now()), retired=False)
        await forget_boards(one_client)
        await assert_consistent(one_client)


async def test_a_board_names_its_latest_restorations_only(one_client: Client) -> None:
    """Its item stays small however often contenders come and go; a voter from long before meets no pair twice."""
    ids = await add_contenders(one_client, "a", "b", "c", "d")
    visitor = one_client.visitor()
    met = [pair_names((await vote(visitor))["ballot"]) for _ in range(2)]
    for number in range(70):
        await retire(one_client, ids[number % 3])
        await restore(one_client, ids[number % 3])
    board = await one_client.services.table.get(BOARD.at(slug="main"), consistent=True)
    assert isinstance(board, Board)
    assert (board.restorations, len(board.latest_restored)) == (70, 64)
    met += [pair_names((await vote(visitor))["ballot"]) for _ in range(4)]
    assert len(set(met)) == 6
    await assert_consistent(one_client)


async def test_the_audit_finds_a_restoration_that_was_written_halfway(one_client: Client) -> None:
    """The board, the contender and its result must say the same."""
    [cat, _] = await add_contenders(one_client, "Cat", "Dog")
    await retire(one_client, cat)
    await one_client.services.table.write(BOARD.update(BOARD.at(slug="main"), values={"retired": "0"}))
    await forget_boards(one_client)
    found = await find_suspects(one_client.services, "voting")
    assert found == ["voting: main: 'Cat' is retired, and the board says otherwise"]
