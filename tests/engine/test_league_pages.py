"""A league's standings and events: the season's own, of its members, and shown to nobody else."""

import asyncio
from asyncio import gather
from contextlib import aclosing
from typing import Any

import pytest

from datastore.dynamo import metered
from datastore.refusals import NotFound, Refusal
from resolvers.pickem import standings
from resolvers.requests.context import Context, Kind, Viewer
from resolvers.values.node_ids import node_id, parse_node_key
from server.auth.tokens import mint
from tests.client import Client, pages, serving
from tests.dependent_calls import dependent_calls
from tests.leagues import DELETE_LEAGUE, EVENT, REMOVE, STANDINGS, create, join, seed_scored_league, user_id
from tests.leagues import LEAVE_LEAGUE as LEAVE
from tests.members import introduce
from tests.season import EventEditor, submit

NODE = """
query ($id: ID!) { node(id: $id) { ... on League {
  id name season entry code memberCount viewerMembership
  standings { nodes { rank } } members { nodes { since } } event(event: "%s") { submitted }
} } }
"""


@pytest.mark.lagging
async def test_standings_are_the_seasons_rows_ranked_among_members(client: Client) -> None:
    """Points, picks and order are the season's; ranks count members only; corrections and departures show at once."""
    editor = EventEditor(client)
    users = ["ada", "bob", "cyd", "dan", "eve"]
    members = {user: client.member(user) for user in users}
    event, [one, two] = await editor.card(10, 5)
    league = (await create(members["ada"], "CODE"))["id"]
    for user, picks in zip(users, ((0, 0), (0, 1), (1, 0), (1, 0), (1, 1)), strict=True):
        await submit(members[user], event, [(one, picks[0]), (two, picks[1])])
    code = (await members["ada"].ask("query ($id: ID) { league(id: $id) { code } }", id=league))["code"]
    for user in ("cyd", "dan", "eve"):
        await join(members[user], code=code)
    assert (await members["ada"].ask(STANDINGS, id=league))["standings"]["totalCount"] == 0
    await editor.lock(event)
    await gather(editor.result(one, 0), editor.result(two, 0))
    await editor.score(event)

    async def rows() -> list[tuple[int, str, int]]:
        listed = await pages(members["eve"], STANDINGS, size=2, id=league)
        return [(row["rank"], row["user"]["name"], row["points"]) for row in listed]

    assert await rows() == [(1, "Ada", 15), (2, "Cyd", 5), (2, "Dan", 5), (4, "Eve", 0)]
    await editor.result(one, 1)
    await editor.score(event)
    assert await rows() == [(1, "Cyd", 15), (1, "Dan", 15), (3, "Eve", 10), (4, "Ada", 5)]
    await members["cyd"].ask(LEAVE, input={"league": league})
    assert await rows() == [(1, "Dan", 15), (2, "Eve", 10), (3, "Ada", 5)]
    await join(members["bob"], code=code)
    assert [row[1] for row in await rows()] == ["Dan", "Eve", "Ada", "Bob"]
    await client.caught_up("the season lists every member")
    season = [row["user"]["name"] for row in (await editor.standings())["nodes"] if row["user"]["name"] != "Cyd"]
    assert season == [row[1] for row in await rows()]
    await editor.unscore(event)
    assert await rows() == []


@pytest.mark.lagging
async def test_an_event_shows_numbers_until_its_lock_and_picks_after_it(client: Client) -> None:
    """Of members only; ranked once it is scored; nothing for an event of another season."""
    editor, ada, bob, eve = EventEditor(client), client.member("ada"), client.member("bob"), client.member("eve")
    event, [match] = await editor.card(10)
    league = (await create(ada))["id"]
    await join(bob, league=league)
    await submit(bob, event, [(match, 1)])
    await submit(eve, event, [(match, 0)])
    seen = (await ada.ask(EVENT, id=league, event=event))["event"]
    assert (seen["submitted"], seen["missing"], seen["predictions"]["nodes"]) == (1, 1, [])
    await submit(ada, event, [(match, 0)])
    await editor.lock(event)
    await client.caught_up("another process sees the members' names")
    async with serving(client.settings) as other:
        seen = (await other.member("ada").ask(EVENT, id=league, event=event))["event"]
    assert (seen["submitted"], seen["missing"]) == (2, 0)
    assert {row["user"]["name"]: row["picks"] for row in seen["predictions"]["nodes"]} == {
        "Ada": [{"team": 0}],
        "Bob": [{"team": 1}],
    }
    await editor.result(match, 1)
    await editor.score(event)
    listed: list[tuple[str, int, int]] = []
    after = None
    for _ in range(2):
        page = (await ada.ask(EVENT, id=league, event=event, first=1, after=after))["event"]["predictions"]
        after = page["pageInfo"]["endCursor"]
        listed += [(row["user"]["name"], row["points"], row["rank"]) for row in page["nodes"]]
    assert listed == [("Bob", 10, 1), ("Ada", 0, 2)]
    other_event, _ = await EventEditor(client, "2027").card(10)
    for foreign in (other_event, node_id("Event", "01ARZ3NDEKTSV4RRFFQ69G5FAV")):
        assert (await ada.ask(EVENT, id=league, event=foreign))["event"] is None
    assert await ada.code(EVENT, id=league, event=league) == "BAD_USER_INPUT"


async def test_a_private_league_shows_strangers_its_name_only(client: Client) -> None:
    """Through its id, `node`, its code, a mutation's answer and an old receipt; also to those who wait or have left."""
    editor, ada, bob, eve = EventEditor(client), client.member("ada"), client.member("bob"), client.member("eve")
    event, [match] = await editor.card(10)
    await submit(ada, event, [(match, 0)])
    league = (await create(ada, "APPROVAL"))["id"]
    await join(bob, league=league)
    coded = await create(ada, "CODE")
    await join(eve, code=coded["code"])
    await eve.ask(LEAVE, input={"league": coded["id"]})
    public = {"name": "Friends", "season": "2026"}
    for reader, which, entry, membership in (
        (client, league, "APPROVAL", None),
        (eve, league, "APPROVAL", None),
        (bob, league, "APPROVAL", "WAITING"),
        (eve, coded["id"], "CODE", None),
    ):
        for query in (NODE % event, (NODE % event).replace("$id: ID!", "$id: ID").replace("node(id", "league(id")):
            seen = await reader.ask(query.replace("... on League", "... on League"), id=which)
            hidden = dict.fromkeys(("code", "memberCount", "standings", "members", "event"))
            assert seen == {**public, "id": which, "entry": entry, "viewerMembership": membership, **hidden}
    assert (await ada.ask(NODE % event, id=league))["event"] == {"submitted": 1}


async def test_a_leagues_rows_reach_its_members_until_they_leave(one_client: Client) -> None:
    """Immediately and after a scoring; strangers, another season and those who have left are refused."""
    editor, ada, bob = EventEditor(one_client), one_client.member("ada"), one_client.member("bob")
    event, [match] = await editor.card(10)
    league = await create(ada, "CODE")
    await join(bob, code=league["code"])
    for member in (ada, bob):
        await submit(member, event, [(match, 0)])
    key = parse_node_key("League", league["id"])

    async def watch(user: str, season: str = "2026") -> list[list[int]]:
        ctx = Context(one_client.services, Viewer(user, Kind.MEMBER))
        rows: list[list[int]] = []
        async with aclosing(standings.standings_changed(ctx, season=season, league=key)) as changes:
            async for seen in changes:
                rows.append([row.rank for row in seen])
                if len(rows) == 1:
                    began.set()
                if rows[-1] == [1, 1]:
                    return rows
        return rows

    began = asyncio.Event()
    for refused in (watch("eve"), watch("ada", "2027")):
        with pytest.raises(Refusal):
            await refused
    watching = asyncio.create_task(watch("bob"))
    await began.wait()
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    async with asyncio.timeout(120):
        assert await watching == [[], [1, 1]]
    began.clear()
    await bob.ask(LEAVE, input={"league": league["id"]})
    with pytest.raises(Refusal):
        await watch("bob")


async def test_a_stream_without_rows_ends_with_its_league(one_client: Client) -> None:
    """As one with rows does: nobody listens for ever to a league that is gone."""
    ada = one_client.member("ada")
    league = (await create(ada))["id"]
    ctx = Context(one_client.services, Viewer("ada", Kind.MEMBER))
    watched = standings.standings_changed(ctx, season="2026", league=parse_node_key("League", league))
    async with asyncio.timeout(120), aclosing(watched) as changes:
        assert await anext(changes) == []
        await ada.ask(DELETE_LEAGUE, input={"league": league})
        with pytest.raises(NotFound):
            await anext(changes)


async def test_a_page_of_a_thousand_members_takes_few_engine_calls(one_client: Client) -> None:
    """Cold 14 calls in four steps: whose token it is 1, league and season 2, standings 10, names 1. Then one call."""
    league, users = await seed_scored_league(one_client, 1000)
    costs: list[Any] = []
    await introduce(one_client.services.table, users[7])
    async with serving(one_client.settings) as newly_started:
        newly_started.keep_what_it_read()
        reader = Client(newly_started.served, newly_started.settings, mint(newly_started.settings, users[7]))
        for _ in range(2):
            with metered() as spent:
                seen, steps = await dependent_calls(
                    newly_started.services.table, reader.ask(STANDINGS, id=league, first=20)
                )
            costs.append((spent.calls, steps))
    assert seen["standings"]["totalCount"] == 999
    assert len(seen["standings"]["nodes"]) == 20
    assert costs == [(14, 4), (1, 1)]


async def test_who_only_waits_lets_no_standings_be_read_again(one_client: Client) -> None:
    """Or somebody who joins and leaves without end would have a thousand members read for each page of the league."""
    ada, bob = one_client.member("ada"), one_client.member("bob")
    league = (await create(ada, "APPROVAL"))["id"]
    one_client.keep_what_it_read()

    async def calls() -> int:
        with metered() as spent:
            await ada.ask(STANDINGS, id=league)
        return spent.calls

    await calls()
    for captain_decides in (False, True):
        assert await join(bob, league=league) == "WAITING"
        if captain_decides:
            await ada.ask(REMOVE, input={"league": league, "user": await user_id(bob)})
        else:
            await bob.ask(LEAVE, input={"league": league})
        assert await calls() == 1
