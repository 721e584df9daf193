"""Leagues when processes are killed and answers are lost."""

from contextlib import suppress
from typing import Any

import pytest

from datastore.pickem import leagues as league_store
from datastore.pickem.member_items import leave_every_league
from resolvers.values.node_ids import parse_node_key
from server.audit import find_suspects
from server.demo import pickem as demo
from server.demo.people import MEMBERS
from tests.client import Client
from tests.killed import Killed, killed_at
from tests.leagues import (
    ADMIT,
    CREATE_LEAGUE,
    DELETE_LEAGUE,
    JOIN_LEAGUE,
    LEAGUE,
    LEAVE_LEAGUE,
    OWN_LEAGUES,
    REMOVE,
    ROTATE_CODE,
    create,
    join,
    user_id,
)
from tests.lost_answers import ask_without_answer


async def test_a_deletion_may_be_killed_at_every_write(one_client: Client) -> None:
    """From its first write on the league is gone for everybody; a repeat leaves nothing of it."""
    ada, members = one_client.member("ada"), [one_client.member(f"m{number}") for number in range(30)]
    table = one_client.services.table
    for write in range(10):
        league = await create(ada, "CODE")
        for member in members:
            await join(member, code=(await ada.ask(LEAGUE, id=league["id"]))["code"])
        key, killed = parse_node_key("League", league["id"]), False
        with killed_at(table, write):
            try:
                await ada.ask(DELETE_LEAGUE, input={"league": league["id"]})
            except Killed:
                killed = True
        for reader in (ada, members[0], one_client):
            assert await reader.ask(LEAGUE, id=league["id"]) is None
        with suppress(KeyError):
            assert await ada.code(DELETE_LEAGUE, input={"league": league["id"]}) == "NOT_FOUND"
        assert await league_store.read_league(table, key) is None
        assert [item async for item in table.scan(league_store.LEAGUE, league_store.LEAGUE_MEMBER)] == []
        if not killed:
            break
    assert write >= 3


async def test_an_erasure_that_was_killed_leaves_nothing_of_a_member_s_own_league(one_client: Client) -> None:
    """Or of one that they had begun to delete, with members in it: a repeat ends what was begun, also the name."""
    ada, bob, services = one_client.member("ada"), one_client.member("bob"), one_client.services
    user, table = parse_node_key("User", await user_id(ada)), services.table
    for write in range(10):
        await join(bob, league=(await create(ada, "APPROVAL"))["id"])
        begun = (await create(ada))["id"]
        await join(bob, league=begun)
        with killed_at(table, 0), pytest.raises(Killed):
            await ada.ask(DELETE_LEAGUE, input={"league": begun})
        with killed_at(table, write) as writes, suppress(Killed):
            await leave_every_league(table, user, services.unit())
        await leave_every_league(table, user, services.unit())
        assert [item async for item in table.scan(league_store.LEAGUE, league_store.LEAGUE_MEMBER)] == []
        if writes[0] <= write:
            break
    assert 2 < write < 10


async def test_a_deletion_that_was_killed_is_ended_when_a_member_s_list_forgets_the_league(one_client: Client) -> None:
    """Their list alone leads to their place in it: without it, that would still be there when they are erased."""
    ada, bob, table = one_client.member("ada"), one_client.member("bob"), one_client.services.table
    league = (await create(ada))["id"]
    await join(bob, league=league)
    for _ in range(league_store.MOST_LEAGUES - 1):
        await create(bob)
    with killed_at(table, 0), pytest.raises(Killed):
        await ada.ask(DELETE_LEAGUE, input={"league": league})
    await create(bob)
    left = [item.league async for item in table.scan(league_store.LEAGUE_MEMBER)]
    assert parse_node_key("League", league) not in left
    assert await league_store.read_league(table, parse_node_key("League", league)) is None
    assert await find_suspects(one_client.services, "leagues") == []


async def test_the_demo_s_leagues_are_completed_after_a_kill(one_client: Client) -> None:
    """At any write, and when it is complete: two leagues, each member once, and one code."""
    services, size = one_client.services, sum(members for _, _, members in demo.LEAGUES)
    for write in (0, 1, 39, 40, 51):
        with killed_at(services.table, write), suppress(Killed):
            await demo.seed_leagues(services)
    for _ in range(2):
        await demo.seed_leagues(services)
    assert await find_suspects(services, "leagues") == []
    assert len([place async for place in services.table.scan(league_store.LEAGUE_MEMBER)]) == size
    captain = one_client.member(MEMBERS[0][0])
    nodes = (await captain.ask(OWN_LEAGUES))["leagues"]["nodes"]
    leagues = {node["name"]: await captain.ask(LEAGUE, id=node["id"]) for node in nodes}
    assert {name: league["memberCount"] for name, league in leagues.items()} == {
        name: members for name, _, members in demo.LEAGUES
    }
    [code] = [league["code"] for league in leagues.values() if league["code"]]
    assert await join(one_client.member("new"), code=code) == "MEMBER"


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_lost_answer_changes_nothing_twice(one_client: Client, *, keyed: bool) -> None:
    """Creating, joining, admitting, leaving, rotating, removing: each is done once and answered as done."""
    ada, bob = one_client.member("ada"), one_client.member("bob")

    def unit(name: str) -> dict[str, Any]:
        return {"idempotencyKey": name} if keyed else {}

    given: dict[str, Any] = {"name": "L", "season": "2026", "entry": "APPROVAL", **unit("create")}
    league = (await ask_without_answer(ada, CREATE_LEAGUE, **given))["league"]["id"]
    assert len((await ada.ask(OWN_LEAGUES))["leagues"]["nodes"]) == 1
    assert (await ask_without_answer(bob, JOIN_LEAGUE, league=league, **unit("join")))["membership"] == "WAITING"
    user = await user_id(bob)
    admitted = await ask_without_answer(ada, ADMIT, league=league, user=user, **unit("admit"))
    assert (admitted["member"]["membership"], admitted["league"]["memberCount"]) == ("MEMBER", 2)
    left = await ask_without_answer(bob, LEAVE_LEAGUE, league=league, **unit("leave"))
    assert left["league"]["memberCount"] is None
    assert (await ada.ask(LEAGUE, id=league))["memberCount"] == 1
    coded = await create(ada, "CODE")
    rotated = await ask_without_answer(ada, ROTATE_CODE, league=coded["id"], **unit("rotate"))
    assert rotated["league"]["code"] != coded["code"]
    assert await join(bob, code=(await ada.ask(LEAGUE, id=coded["id"]))["code"]) == "MEMBER"
    removed = await ask_without_answer(ada, REMOVE, league=coded["id"], user=user, **unit("remove"))
    assert (removed["league"]["memberCount"], (await bob.ask(OWN_LEAGUES))["leagues"]["nodes"]) == (1, [])
