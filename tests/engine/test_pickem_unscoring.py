"""Scoring without all results, and taking back an event's points."""

from asyncio import gather
from typing import Any

from server.audit import find_suspects
from tests.client import Client
from tests.queries import EVENT_BY_ID, SCORE_EVENT, UNSCORE_EVENT, UPDATE_EVENT
from tests.season import EventEditor, submit

RANKS = """
query ($season: String!) { viewer {
  standing(season: $season) { rank points correct eventsPlayed }
  predictions(first: 5) { nodes { points correct rank event { state } } }
} }
"""


async def audited(client: Client) -> list[str]:
    await client.caught_up("standings and ranks are those of the stored predictions")
    return await find_suspects(client.services, "pickem")


async def seen(client: Client, event: str, *users: str) -> dict[str, Any]:
    """Everything that an event's scoring changes."""
    await client.caught_up("lists show the points")
    return {
        "standings": await EventEditor(client).standings(),
        "predictions": (await client.ask(EVENT_BY_ID, id=event))["predictions"],
        "members": [await client.member(user).ask(RANKS, season="2026") for user in users],
    }


async def test_matches_without_a_result_must_be_confirmed(one_client: Client) -> None:
    """CONFLICT says which they are; nothing is scored until it is confirmed, or all results are there."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [first, second] = await editor.card(10, 5)
    await submit(ada, event, [(first, 0), (second, 0)])
    await editor.lock(event)
    await editor.result(second, 0)
    refused = await editor.client.ask(SCORE_EVENT, input={"event": event})
    assert (refused["code"], refused["path"]) == ("CONFLICT", ["input", "confirmMissing"])
    assert refused["message"].startswith("Matches without a result: 1 of 2 (1. Singles).")
    assert (await one_client.ask(EVENT_BY_ID, id=event))["state"] == "LOCKED"
    assert await editor.score(event, confirmMissing=True) == 1
    assert (await editor.standings())["nodes"][0]["points"] == 5
    await editor.result(first, outcome="NO_CONTEST")
    assert await editor.score(event) == 1


async def test_an_unscored_event_leaves_nothing_behind(client: Client) -> None:
    """Standings, ranks, totals and predictions are as before its scoring; scoring it again gives what it gave."""
    editor, ada, bob, eve = (EventEditor(client), *(client.member(user) for user in ("ada", "bob", "eve")))
    before, [only] = await editor.card(7, name="Before")
    event, [main, other] = await editor.card(10, 5)
    await submit(ada, before, [(only, 0)])
    await submit(bob, before, [(only, 1)])
    for member, picks in ((ada, (0, 1)), (bob, (1, 0)), (eve, (0, 0))):
        await submit(member, event, list(zip((main, other), picks, strict=True)))
    for show in (before, event):
        await editor.lock(show)
    await gather(*(editor.result(match, 0) for match in (only, main, other)))
    await editor.score(before)
    untouched = await seen(client, event, "ada", "bob", "eve")
    await editor.score(event)
    scored = await seen(client, event, "ada", "bob", "eve")
    assert [row["points"] for row in scored["standings"]["nodes"]] == [17, 15, 5]
    assert (await editor.unscore(event))["state"] == "LOCKED"
    assert await seen(client, event, "ada", "bob", "eve") == untouched
    assert untouched["standings"]["totalCount"] == 2
    assert await audited(client) == []
    assert (await editor.unscore(event))["state"] == "LOCKED"
    assert await editor.score(event) == 3
    assert await seen(client, event, "ada", "bob", "eve") == scored
    assert await audited(client) == []


async def test_only_what_was_scored_can_be_unscored(one_client: Client) -> None:
    """Upcoming, locked and cancelled events are refused; an unscored event can be corrected and cancelled."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await editor.card(10)
    assert await editor.client.code(UNSCORE_EVENT, input={"event": event}) == "CONFLICT"
    await submit(ada, event, [(match, 0)])
    await editor.lock(event)
    assert await editor.client.code(UNSCORE_EVENT, input={"event": event}) == "CONFLICT"
    await editor.result(match, 1)
    await editor.score(event)
    assert await editor.client.code(UPDATE_EVENT, input={"event": event, "cancelled": True}) == "CONFLICT"
    await editor.unscore(event)
    await editor.result(match, 0)
    assert await editor.score(event) == 1
    assert (await editor.standings())["nodes"][0]["points"] == 10
    await editor.unscore(event)
    cancelled = await editor.client.ask(UPDATE_EVENT, input={"event": event, "cancelled": True})
    assert cancelled["event"]["state"] == "CANCELLED"
    assert await editor.client.code(UNSCORE_EVENT, input={"event": event}) == "CONFLICT"
    assert await audited(one_client) == []


async def test_an_unscoring_key_answers_the_same(one_client: Client) -> None:
    """A repeat is answered from its receipt, even after the event was scored again."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await editor.card(10)
    await submit(ada, event, [(match, 0)])
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    given = {"event": event, "idempotencyKey": "once"}
    assert (await editor.client.ask(UNSCORE_EVENT, input=given))["event"]["state"] == "LOCKED"
    await editor.score(event)
    assert (await editor.client.ask(UNSCORE_EVENT, input=given))["event"]["state"] == "LOCKED"
    assert (await editor.standings())["nodes"][0]["points"] == 10


async def test_scorings_and_unscorings_at_once_leave_one_of_both(one_client: Client) -> None:
    """Whichever ends last: all points or none, and the audit finds nothing."""
    editor = EventEditor(one_client)
    event, [one, two] = await editor.card(10, 5)
    await gather(*(submit(one_client.member(f"m{number}"), event, [(one, 0), (two, 1)]) for number in range(30)))
    await editor.lock(event)
    await gather(editor.result(one, 0), editor.result(two, 0))
    await editor.score(event)
    for _ in range(3):
        asked = [editor.client.answer(query, input={"event": event}) for query in (UNSCORE_EVENT, SCORE_EVENT) * 3]
        await gather(*asked)
        state = (await one_client.ask(EVENT_BY_ID, id=event))["state"]
        if state == "LOCKED":
            await editor.unscore(event)
        await one_client.caught_up("the standings list every member")
        page = await editor.standings(first=100)
        assert [row["points"] for row in page["nodes"]] == ([10] * 30 if state == "SCORED" else [])
        assert await audited(one_client) == []
        await editor.score(event)
