"""Standings: sums, ranks, pages, corrections, and what a screen costs."""

import asyncio
from asyncio import gather
from contextlib import aclosing
from time import monotonic
from typing import Any

import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import metered
from datastore.jobs.jobs import all_jobs
from datastore.pickem.standings import recount_season
from datastore.refusals import NotFound
from resolvers.jobs.running import JobRunner
from resolvers.pickem import events, standings
from resolvers.requests.context import Context, Kind, Viewer
from resolvers.values.node_ids import node_id, parse_node_key
from server import demo
from server.audit import find_suspects
from server.auth.tokens import mint
from server.demo.pickem import SCORED_EVENT, SEASON, demo_id
from tests.audits import breaches_in
from tests.client import Client, serving
from tests.dependent_calls import dependent_calls
from tests.queries import EVENT_BY_ID, SCORE_EVENT, STANDINGS, SUBMIT_PREDICTION, UPDATE_EVENT
from tests.season import EventEditor, prediction_input, submit

MEMBER = """
query ($id: ID!, $first: Int) { user(id: $id) {
  standings { season rank points correct eventsPlayed }
  predictions(first: $first) { nodes { points event { name state } } pageInfo { hasNextPage endCursor } }
} }
"""


@pytest.mark.lagging
async def test_ranks_are_shared_and_ties_have_an_order(client: Client) -> None:
    """1, 1, 1, 4: ordered by points, correct picks and time of joining; ranked by points alone."""
    editor = EventEditor(client)
    event, [big, one, two] = await editor.card(2, 1, 1)
    for user, picks in (
        ("late", [(big, 0)]),
        ("later", [(big, 0)]),
        ("sharp", [(one, 0), (two, 0)]),
        ("last", [(one, 0), (two, 1)]),
    ):
        await submit(client.member(user), event, picks)
    await editor.lock(event)
    for match in (big, one, two):
        await editor.result(match, 0)
    assert await editor.score(event) == 4
    await client.caught_up("the standings list every member")
    page = await editor.standings()
    rows = [(row["rank"], row["user"]["name"], row["points"], row["correct"]) for row in page["nodes"]]
    assert rows == [(1, "Sharp", 2, 2), (1, "Late", 2, 1), (1, "Later", 2, 1), (4, "Last", 1, 1)]
    assert page["totalCount"] == 4
    again = [await editor.standings(first=2)]
    again.append(await editor.standings(first=2, after=again[0]["pageInfo"]["endCursor"]))
    assert [row["rank"] for part in again for row in part["nodes"]] == [1, 1, 1, 4]
    assert await breaches_in(client.services) == []


async def test_a_corrected_result_scores_like_a_fresh_scoring(one_client: Client) -> None:
    """Results change after scoring, in every possible way; the next scoring leaves no trace of the old ones."""
    editor, ada, bob = EventEditor(one_client), one_client.member("ada"), one_client.member("bob")
    event, [one, two] = await editor.card(10, 5)
    other, [third] = await editor.card(7)
    await submit(ada, event, [(one, 0), (two, 0)])
    await submit(bob, event, [(one, 1)])
    await submit(bob, other, [(third, 1)])
    for show in (event, other):
        await editor.lock(show)
    await editor.result(one, 0)
    await editor.result(third, 1)

    async def points() -> dict[str, tuple[int, int, int, int]]:
        rows = (await editor.standings())["nodes"]
        return {row["user"]["name"]: (row["rank"], row["points"], row["correct"], row["eventsPlayed"]) for row in rows}

    assert [await editor.score(show, confirmMissing=True) for show in (event, other)] == [2, 1]
    assert await points() == {"Ada": (1, 10, 1, 1), "Bob": (2, 7, 1, 2)}
    await editor.result(one, 1)
    await editor.result(two, 0)
    assert (await one_client.ask(EVENT_BY_ID, id=event))["state"] == "SCORED"
    assert await editor.score(event) == 2
    assert await points() == {"Bob": (1, 17, 2, 2), "Ada": (2, 5, 1, 1)}
    await editor.result(one, outcome="NO_CONTEST")
    await editor.result(two, outcome="CANCELLED")
    assert [await editor.score(event) for _ in range(2)] == [2, 2]
    assert await points() == {"Bob": (1, 7, 1, 2), "Ada": (2, 0, 0, 1)}
    ranked = (await one_client.ask(EVENT_BY_ID, id=event))["predictions"]["nodes"]
    assert [(row["points"], row["correct"], row["rank"]) for row in ranked] == [(0, 0, 1), (0, 0, 1)]
    assert await breaches_in(one_client.services) == []


async def test_several_scorers_and_a_correction_at_once(one_client: Client) -> None:
    """Four scorings while results are corrected: in the end all points follow the corrected results."""
    editor = EventEditor(one_client)
    event, [one, two] = await editor.card(10, 5)
    members = [one_client.member(f"m{number}") for number in range(40)]
    await gather(*(submit(member, event, [(one, index % 2), (two, 0)]) for index, member in enumerate(members)))
    await editor.lock(event)
    await editor.result(one, 0)
    await gather(
        *(editor.client.answer(SCORE_EVENT, input={"event": event}) for _ in range(4)),
        editor.result(one, 1),
        editor.result(two, 1),
    )
    assert await editor.score(event) == 40
    rows = (await editor.standings(first=100))["nodes"]
    assert [row["points"] for row in rows] == [10] * 20 + [0] * 20
    assert await breaches_in(one_client.services) == []


async def test_a_scoring_asked_for_after_a_correction_has_it(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scoring of the results before is still under way: it starts again, and answers both."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await editor.card(10)
    await submit(ada, event, [(match, 0)])
    await editor.lock(event)
    await editor.result(match, 0)
    recount, inside, corrected = recount_season, asyncio.Event(), asyncio.Event()
    runner = one_client.services.get(JobRunner)

    async def hold_up(*given: Any) -> Any:
        inside.set()
        await corrected.wait()
        return await recount(*given)

    monkeypatch.setattr("datastore.pickem.standings.recount_season", hold_up)
    first = asyncio.create_task(editor.score(event))
    await inside.wait()
    await editor.result(match, 1)
    second = asyncio.create_task(editor.score(event))
    while sum(len(work.waiting) for work in runner._awaited._all) < 2:
        await asyncio.sleep(0.001)
    corrected.set()
    assert list(await gather(first, second)) == [1, 1]
    assert (await editor.standings())["nodes"][0]["points"] == 0
    assert len([one async for one in all_jobs(one_client.services.table)]) == 1
    assert await breaches_in(one_client.services) == []


async def test_a_scoring_key_answers_the_same(one_client: Client) -> None:
    """With an idempotency key a repeat is answered from its receipt, even after a correction."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await editor.card(10)
    await submit(ada, event, [(match, 0)])
    await editor.lock(event)
    await editor.result(match, 0)
    given = {"event": event, "idempotencyKey": "once"}
    first = await editor.client.ask(SCORE_EVENT, input=given)
    await editor.result(match, 1)
    second = await editor.client.ask(SCORE_EVENT, input=given)
    assert first["predictionsScored"] == second["predictionsScored"] == 1
    assert (await editor.standings())["nodes"][0]["points"] == 10
    await editor.score(event)
    assert (await editor.standings())["nodes"][0]["points"] == 0


async def test_a_members_page_is_one_read_of_their_collection(one_client: Client) -> None:
    """Standings and predictions come from one Query; their events and seasons cost one batch each."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    for number in range(3):
        event, [match] = await editor.card(10, name=f"E{number}")
        await submit(ada, event, [(match, 0)])
        await editor.lock(event)
        await editor.result(match, 0)
        await editor.score(event)
    other = EventEditor(one_client, "2027")
    event, [match] = await other.card(10, name="E3")
    await submit(ada, event, [(match, 0)])
    user = (await ada.ask("{ viewer { id } }"))["id"]
    one_client.keep_what_it_read()
    await ada.ask(MEMBER, id=user, first=2)  # caches the histogram
    with metered() as spent:
        seen = await one_client.ask(MEMBER, id=user, first=2)
    assert spent.calls == 3
    assert seen["standings"] == [{"season": "2026", "rank": 1, "points": 30, "correct": 3, "eventsPlayed": 3}]
    assert seen["predictions"]["pageInfo"]["hasNextPage"]
    whole = (await one_client.ask(MEMBER, id=user, first=10))["predictions"]["nodes"]
    assert [(row["event"]["name"], row["points"]) for row in whole] == [
        ("E3", None),
        ("E2", 10),
        ("E1", 10),
        ("E0", 10),
    ]
    more = """
    query ($id: ID!, $after: String) { user(id: $id) { predictions(first: 2, after: $after) { nodes { points } } } }
    """
    page = await one_client.ask(more, id=user, after=seen["predictions"]["pageInfo"]["endCursor"])
    assert [row["points"] for row in page["predictions"]["nodes"]] == [10, 10]
    single = 'query ($id: ID!) { user(id: $id) { standing(season: "2026") { rank points } } }'
    assert (await one_client.ask(single, id=user))["standing"] == {"rank": 1, "points": 30}
    nothing = 'query ($id: ID!) { user(id: $id) { standing(season: "1999") { rank } } }'
    assert (await one_client.ask(nothing, id=user))["standing"] is None


async def test_an_event_screen_takes_few_engine_calls(one_client: Client) -> None:
    """Event, card, own prediction, results, counts and ranked predictions with names: 12 cold, 6 from then on.

    Event 1, own prediction 1, ranked predictions 4; once for each version of the event also its card 1, its gates 1,
    its histogram 1, and the names 2: the viewer's own, then the others'; and once whose token it is, 1. Before scoring
    the list of predictions takes 16 instead of 4.
    """
    editor = EventEditor(one_client)
    event, matches = await editor.card(10, 20, 30)
    members = [one_client.member(f"m{number}") for number in range(30)]
    await gather(*(submit(member, event, [(match, 0) for match in matches]) for member in members))
    await editor.lock(event)
    for match in matches:
        await editor.result(match, 0)
    await editor.score(event)
    calls = []
    async with serving(one_client.settings) as newly_started:
        newly_started.keep_what_it_read()
        reader = Client(newly_started.served, newly_started.settings, mint(newly_started.settings, "m0"))
        for _ in range(2):
            with metered() as spent:
                seen = await reader.ask(EVENT_BY_ID, id=event)
            calls.append(spent.calls)
    assert len(seen["predictions"]["nodes"]) == 30
    assert calls == [12, 6]


async def test_screens_wait_for_few_calls_one_after_the_other(one_client: Client) -> None:
    """An event's screen for two, standings for one, a submission for two; also when the names must be read again."""
    editor, table, profiles = EventEditor(one_client), one_client.services.table, one_client.services.profiles
    event, [match] = await editor.card(10)
    upcoming, [other] = await editor.card(10, name="Next")
    members = [one_client.member(f"m{number}") for number in range(12)]
    await gather(*(submit(member, event, [(match, 0)]) for member in members))
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    reader, own = members[0], prediction_input(upcoming, [(other, 0)])
    one_client.keep_what_it_read()
    for query, given, most in (
        (EVENT_BY_ID, {"id": event}, 2),
        (STANDINGS, {"season": "2026"}, 1),
        (SUBMIT_PREDICTION, {"input": own}, 2),
    ):
        await reader.ask(query, **given)
        for number in range(12):
            profiles.outdate(f"m{number}")
        one_client.services.journal.know((), monotonic())
        _, calls = await dependent_calls(table, reader.ask(query, **given))
        assert calls == most, query


async def test_standings_of_an_unknown_season_are_empty(one_client: Client) -> None:
    """A season without events has no rows; an invalid season's name is refused."""
    assert (await EventEditor(one_client, "1999").standings()) == {
        "totalCount": 0,
        "nodes": [],
        "pageInfo": {"hasNextPage": False, "endCursor": None},
    }
    assert await one_client.code('{ standings(season: "a#b") { totalCount } }') == "BAD_USER_INPUT"


async def test_changes_reach_subscribers(one_client: Client) -> None:
    """Of an event: immediately, then when it is locked and scored. Of a season: immediately, then when rows change."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await editor.card(10)
    await submit(ada, event, [(match, 0)])
    ctx = Context(one_client.services, Viewer("nobody", Kind.VISITOR))
    ctx.unit = UnitOfWork("nobody", None, "", ctx.now())
    states: list[Any] = []
    rows: list[Any] = []

    async def watch_event() -> None:
        async with aclosing(events.event_changed(ctx, event=parse_node_key("Event", event))) as changes:
            async for seen in changes:
                states.append(seen.state)
                if seen.state == "SCORED":
                    return

    async def watch_season(season: str = "2026") -> None:
        async with aclosing(standings.standings_changed(ctx, season=season)) as changes:
            async for seen in changes:
                rows.append([row.points for row in seen])
                if rows[-1] == [15]:  # a rank may change before its row does
                    return

    with pytest.raises(NotFound):  # an invented season would be read for as long as its inventor listens
        await watch_season("1999")
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    event, [match] = await editor.card(5)
    await submit(ada, event, [(match, 0)])

    watching = [asyncio.create_task(watch_event()), asyncio.create_task(watch_season())]
    while not (states and rows):
        await asyncio.sleep(0.05)
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    async with asyncio.timeout(120):
        await gather(*watching)
    assert (states[0], states[-1]) == ("UPCOMING", "SCORED")
    assert rows[0] == [10]


@pytest.mark.lagging
@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_season_has_a_stream_before_its_first_scoring(client: Client, *, has_begun: bool) -> None:
    """From its first event on, also one that is cancelled: no rows at once, then those of the scoring."""
    editor, ada = EventEditor(client, "2027"), client.member("ada")
    event, [match] = await editor.card(10)
    await submit(ada, event, [(match, 0)])
    if has_begun:
        await editor.lock(event)
    cancelled = (await EventEditor(client, "2028").event())["id"]
    await editor.client.ask(UPDATE_EVENT, input={"event": cancelled, "cancelled": True})
    await client.caught_up("the index shows the events")
    ctx = Context(client.services, Viewer("nobody", Kind.VISITOR))
    async with aclosing(standings.standings_changed(ctx, season="2028")) as changes:
        assert await anext(changes) == []
    async with asyncio.timeout(120), aclosing(standings.standings_changed(ctx, season="2027")) as changes:
        assert await anext(changes) == []
        if not has_begun:
            await editor.lock(event)
        await editor.result(match, 0)
        await editor.score(event)
        assert [row.points for row in await anext(changes)] == [10]


async def test_the_points_of_the_demo_count_once_although_a_part_of_it_begins_again(one_client: Client) -> None:
    """As it does if the process is killed before the part is marked as complete; a cancelled event has none."""
    for part in list(demo.PARTS)[: list(demo.PARTS).index("leagues")]:
        for _ in range(2):
            await demo.PARTS[part](one_client.services)
    assert await find_suspects(one_client.services, "pickem") == []
    standings = await one_client.ask(STANDINGS, season=SEASON, first=1)
    assert (standings["nodes"][0]["points"] > 0, standings["nodes"][0]["eventsPlayed"]) == (True, 1)
    editor, event = EventEditor(one_client), node_id("Event", demo_id(SCORED_EVENT))
    await editor.unscore(event)
    await editor.client.ask(UPDATE_EVENT, input={"event": event, "cancelled": True})
    assert "cancelled" in await demo.PARTS["points"](one_client.services)
