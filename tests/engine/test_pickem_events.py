"""Events and their cards, over HTTP."""

import asyncio
from asyncio import gather
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from datastore.changes.occurrences import OCCURRENCE, Kind
from datastore.dynamo import Rejected, Table
from datastore.dynamo.attributes import iso
from datastore.pickem.events import MATCH, read_events, read_matches
from resolvers.pickem.cache import PickemCache
from resolvers.pickem.events import event_changed, event_matches
from resolvers.requests.context import Context, Role, Viewer
from resolvers.requests.context import Kind as ViewerKind
from resolvers.values.node_ids import parse_node_key
from tests.audits import breaches_in
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.intercepted import beforehand, intercepted
from tests.queries import (
    ADD_MATCH,
    CREATE_EVENT,
    EVENT_BY_ID,
    LOCK_EVENT,
    RECORD_RESULT,
    REMOVE_MATCH,
    REORDER_MATCHES,
    SCORE_EVENT,
    SUBMIT_PREDICTION,
    UPDATE_EVENT,
    UPDATE_MATCH,
)
from tests.season import EventEditor, in_hours, prediction_input, reading_earlier, submit, teams
from tests.waiting import LONGEST, until

EVENTS = """
query ($state: EventState, $first: Int, $after: String, $last: Int, $before: String) {
  events(state: $state, first: $first, after: $after, last: $last, before: $before) {
    edges { cursor node { name state } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}
"""


def at(client: Client, moment: datetime) -> None:
    """Set the clock of the service."""
    client.services.clock = lambda: moment


async def names(client: Client, **arguments: Any) -> list[str]:
    page = await client.ask(EVENTS, **arguments)
    return [edge["node"]["name"] for edge in page["edges"]]


@pytest.mark.parametrize("trouble", ["refused", "silent"])
async def test_an_event_that_cannot_be_locked_fails_and_delays_nothing(one_client: Client, trouble: str) -> None:
    """It is shown as locked, without its picks, alone and in lists; another due event of the same batch with them."""
    editor = EventEditor(one_client)
    stuck, other = [(await editor.card(10, name=name, starts=in_hours(1)))[0] for name in ("Stuck", "Other")]

    async def refusing(_: str, send: Any) -> Any:
        if parse_node_key("Event", stuck) not in str(send.keywords):
            return await send()
        if trouble == "refused":
            raise Rejected("not this event")
        return await asyncio.Event().wait()

    one_client.services.get(PickemCache).patience = 1.5  # enough to lock the other one, unless the machine is busy
    at(one_client, datetime.now(UTC) + timedelta(hours=2))
    shown = "{ state matches { pickCounts } }"
    query = f"query ($stuck: ID!, $other: ID!) {{ stuck: event(id: $stuck) {shown} other: event(id: $other) {shown} }}"
    seconds = one_client.services.policy.request_seconds - 1

    async def other_is_counted() -> bool:
        async with asyncio.timeout(seconds):
            found = await one_client.ask(query, stuck=stuck, other=other)
        assert found["stuck"] == {"state": "LOCKED", "matches": [{"pickCounts": None}]}
        return bool(found["other"] == {"state": "LOCKED", "matches": [{"pickCounts": [0, 0]}]})

    with intercepted(one_client.services.table, ("put_item",), refusing):
        await until(other_is_counted, "the other event is locked")
        async with asyncio.timeout(seconds):
            assert await names(one_client) == await names(one_client, state="LOCKED") == ["Other", "Stuck"]


@pytest.mark.quick
@pytest.mark.lagging
async def test_an_event_goes_from_its_card_to_its_points(client: Client) -> None:
    """Created, filled, predicted, locked, decided, scored: each step's answer agrees with a later read."""
    editor = EventEditor(client)
    event = await editor.event("AEW Revolution", starts="2035-03-07T20:00:00Z")
    assert (event["slug"], event["state"], event["matches"]) == ("2035-03-07-aew-revolution", "UPCOMING", [])
    main = await editor.match(event["id"], "Sting", "Jackson", points=25, championships=["World Tag Team"])
    early = await editor.match(event["id"], points=5, preshow=True)
    assert (main["order"], early["order"]) == (1, 1)
    ada = client.member("ada")
    await submit(ada, event["id"], [(main["id"], 0), (early["id"], 1)])
    assert (await editor.lock(event["id"]))["state"] == "LOCKED"
    await editor.result(main["id"], 0)
    await editor.result(early["id"], 0)
    assert await editor.score(event["id"]) == 1
    seen = await ada.ask(EVENT_BY_ID, id=event["id"])
    assert seen["state"] == "SCORED"
    assert [match["order"] for match in seen["matches"]] == [1, 2]
    assert [match["pickCounts"] for match in seen["matches"]] == [[0, 1], [1, 0]]
    assert [match["result"] for match in seen["matches"]] == [{"outcome": "WON", "winner": 0}] * 2
    own = seen["viewerPrediction"]
    assert (own["points"], own["correct"], own["rank"]) == (25, 1, 1)
    assert [pick["correct"] for pick in own["picks"]] == [False, True]
    await client.caught_up("the standings list every member")
    assert (await editor.standings())["nodes"][0]["points"] == 25


async def test_only_editors_change_events(one_client: Client) -> None:
    """A visitor must sign in; members and moderators are refused; an admin is allowed."""
    given = {"name": "Show", "season": "2026", "startsAt": in_hours(1)}
    assert await one_client.code(CREATE_EVENT, input=given) == "NOT_SIGNED_IN"
    assert await one_client.member("mod", Role.MODERATOR).code(CREATE_EVENT, input=given) == "NOT_ALLOWED"
    assert (await one_client.member("root", Role.ADMIN).ask(CREATE_EVENT, input=given))["event"]["name"] == "Show"
    event, [match] = await EventEditor(one_client).card(10)
    ada = one_client.member("ada")
    for query, input_ in (
        (UPDATE_EVENT, {"event": event}),
        (ADD_MATCH, {"event": event, "name": "x", "points": 1, "teams": teams("A", "B")}),
        (UPDATE_MATCH, {"match": match}),
        (REMOVE_MATCH, {"match": match}),
        (REORDER_MATCHES, {"event": event, "matches": [match]}),
        (LOCK_EVENT, {"event": event}),
        (RECORD_RESULT, {"match": match, "outcome": "DRAWN"}),
        (SCORE_EVENT, {"event": event}),
    ):
        assert await ada.code(query, input=input_) == "NOT_ALLOWED"


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"name": "  "}, ["input", "name"]),
        ({"name": "x" * 201}, ["input", "name"]),
        ({"points": 0}, ["input", "points"]),
        ({"points": 1001}, ["input", "points"]),
        ({"teams": teams("A")}, ["input", "teams"]),
        ({"teams": [{"members": ["A"]}, {"members": []}]}, ["input", "teams", "1", "members"]),
        ({"teams": [{"members": ["A"]}, {"members": [" "]}]}, ["input", "teams", "1", "members", "0"]),
        ({"championships": ["t"] * 11}, ["input", "championships"]),
        ({"name": "a\u202eb"}, ["input", "name"]),
        ({"teams": [{"members": ["A"], "name": "\u200b"}, {"members": ["B"]}]}, ["input", "teams", "0", "name"]),
        ({"teams": teams("A", "B\x1b[31m")}, ["input", "teams", "1", "members", "0"]),
        ({"championships": ["World", "\u3164"]}, ["input", "championships", "1"]),
    ],
)
async def test_a_match_that_breaks_the_rules_is_refused(
    one_client: Client, wrong: dict[str, Any], path: list[str]
) -> None:
    """Two teams, a member each, points from 1 to 1,000, names that can be seen: the refusal names the invalid field."""
    editor = EventEditor(one_client)
    event = await editor.event()
    given = {"event": event["id"], "name": "Singles", "points": 10, "teams": teams("A", "B"), **wrong}
    refused = await editor.client.ask(ADD_MATCH, input=given)
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", path)
    bounds = [await editor.match(event["id"], points=points) for points in (1, 1000)]
    assert [match["points"] for match in bounds] == [1, 1000]


async def test_a_card_keeps_its_order(one_client: Client) -> None:
    """The pre-show stays first, a new order must name each match once, and a removed match leaves no gap."""
    editor = EventEditor(one_client)
    event, [one, two, three] = await editor.card(1, 2, 3)
    early = (await editor.match(event, points=4, preshow=True))["id"]

    async def order(matches: list[str]) -> list[str]:
        answer = await editor.client.ask(REORDER_MATCHES, input={"event": event, "matches": matches})
        assert [match["order"] for match in answer["event"]["matches"]] == [1, 2, 3, 4]
        return [match["id"] for match in answer["event"]["matches"]]

    assert await order([three, early, one, two]) == [early, three, one, two]
    other = (await editor.card(1))[1][0]
    for wrong in ([one, two, three], [one, two, three, early, early], [one, one, two, three], [one, two, three, other]):
        assert await editor.client.code(REORDER_MATCHES, input={"event": event, "matches": wrong}) == "INVALID_INPUT"
    changed = await editor.client.ask(
        UPDATE_MATCH, input={"match": two, "preshow": True, "name": "Opener", "points": 7}
    )
    assert (changed["match"]["name"], changed["match"]["points"], changed["match"]["order"]) == ("Opener", 7, 2)
    left = (await editor.client.ask(REMOVE_MATCH, input={"match": early}))["event"]["matches"]
    assert [(match["id"], match["order"]) for match in left] == [(two, 1), (three, 2), (one, 3)]
    assert await editor.client.code(REMOVE_MATCH, input={"match": early}) == "NOT_FOUND"


async def test_a_card_is_closed_with_the_lock(one_client: Client) -> None:
    """After the lock neither the card nor the start can change; the name can."""
    editor = EventEditor(one_client)
    event, [match] = await editor.card(10)
    await editor.lock(event)
    for query, given in (
        (ADD_MATCH, {"event": event, "name": "x", "points": 1, "teams": teams("A", "B")}),
        (UPDATE_MATCH, {"match": match, "points": 2}),
        (REMOVE_MATCH, {"match": match}),
        (REORDER_MATCHES, {"event": event, "matches": [match]}),
        (UPDATE_EVENT, {"event": event, "startsAt": in_hours(48)}),
    ):
        assert await editor.client.code(query, input=given) == "LOCKED", query
    assert (await editor.client.ask(UPDATE_EVENT, input={"event": event, "name": "Other"}))["event"]["name"] == "Other"
    assert (await editor.lock(event))["state"] == "LOCKED"


async def test_concurrent_editors_lose_no_change(one_client: Client) -> None:
    """Ten concurrent additions: the card has ten matches at ten positions."""
    editor = EventEditor(one_client)
    event = (await editor.event())["id"]
    await gather(*(editor.match(event, points=points) for points in range(1, 11)))
    seen = await one_client.ask(EVENT_BY_ID, id=event)
    assert sorted(match["points"] for match in seen["matches"]) == list(range(1, 11))
    assert [match["order"] for match in seen["matches"]] == list(range(1, 11))


async def test_removing_a_match_removes_its_picks(client: Client) -> None:
    """Picks of it are neither shown nor counted; a team that was picked cannot be removed."""
    editor, ada = EventEditor(client), client.member("ada")
    event, [removed, main] = await editor.card(10, 20)
    three = (await editor.match(event, "A", "B", "C"))["id"]
    await submit(ada, event, [(removed, 0), (main, 0), (three, 2)])
    fewer = {"match": three, "teams": teams("A", "B")}
    assert await editor.client.code(UPDATE_MATCH, input=fewer) == "CONFLICT"
    await submit(ada, event, [(removed, 0), (main, 0), (three, 1)])
    assert len((await editor.client.ask(UPDATE_MATCH, input=fewer))["match"]["teams"]) == 2
    await editor.client.ask(REMOVE_MATCH, input={"match": removed})
    own = (await ada.ask(EVENT_BY_ID, id=event))["viewerPrediction"]
    assert [pick["match"] for pick in own["picks"]] == [main, three]
    assert await ada.code(SUBMIT_PREDICTION, input=prediction_input(event, [(removed, 0)])) == "INVALID_INPUT"
    await editor.lock(event)
    await editor.result(main, 0)
    await editor.score(event, confirmMissing=True)
    assert (await ada.ask(EVENT_BY_ID, id=event))["viewerPrediction"]["points"] == 20


@pytest.mark.lagging
async def test_an_event_locks_itself_at_its_start(client: Client) -> None:
    """No job is needed: after the start, reads, lists and submissions find the event locked and its gates closed."""
    editor, ada = EventEditor(client), client.member("ada")
    client.services.get(PickemCache).patience = 60.0
    event, [match] = await editor.card(10, starts=in_hours(1))
    await submit(ada, event, [(match, 0)])
    await client.caught_up("the event is listed")
    at(client, datetime.now(UTC) + timedelta(hours=2))
    assert await names(client, state="UPCOMING") == []
    assert await names(client, state="LOCKED") == ["Show"]
    at(client, datetime.now(UTC))
    assert (await client.ask(EVENT_BY_ID, id=event))["state"] == "LOCKED"
    assert await ada.code(SUBMIT_PREDICTION, input=prediction_input(event, [(match, 1)])) == "LOCKED"
    assert await editor.client.code(
        ADD_MATCH, input={"event": event, "name": "x", "points": 1, "teams": teams("A", "B")}
    ) == ("LOCKED")


async def test_moving_the_start_moves_the_lock(one_client: Client) -> None:
    """Later: predictions are accepted until then. Into the past: it is locked at once."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await editor.card(10, starts=in_hours(1))
    await editor.client.ask(UPDATE_EVENT, input={"event": event, "startsAt": in_hours(5)})
    at(one_client, datetime.now(UTC) + timedelta(hours=3))
    await submit(ada, event, [(match, 0)])
    moved = await editor.client.ask(UPDATE_EVENT, input={"event": event, "startsAt": in_hours(2)})
    assert moved["event"]["state"] == "LOCKED"
    assert await ada.code(SUBMIT_PREDICTION, input=prediction_input(event, [(match, 1)])) == "LOCKED"
    past = await editor.event(starts=in_hours(-1))
    assert past["state"] == "LOCKED"
    for cancelled in (True, False):
        await editor.client.ask(UPDATE_EVENT, input={"event": event, "cancelled": cancelled})
    about, told = f"Event:{parse_node_key('Event', event)}", one_client.services.table.scan(OCCURRENCE, consistent=True)
    kinds = [one.kind async for one in told if one.object == about]
    assert (kinds.count(Kind.EVENT_LOCKED), kinds.count(Kind.EVENT_CHANGED)) == (1, 4)


async def test_a_cancelled_event_takes_no_predictions_until_it_is_restored(one_client: Client) -> None:
    """Cancelling closes the gates and reveals nothing; taking it back opens them again."""
    editor, ada, bob = EventEditor(one_client), one_client.member("ada"), one_client.member("bob")
    event, [match] = await editor.card(10)
    await submit(ada, event, [(match, 0)])

    async def cancel(*, cancelled: bool) -> str:
        answer = await editor.client.ask(UPDATE_EVENT, input={"event": event, "cancelled": cancelled})
        return str(answer["event"]["state"])

    assert await cancel(cancelled=True) == "CANCELLED"
    assert await names(one_client, state="CANCELLED") == ["Show"]
    assert await bob.code(SUBMIT_PREDICTION, input=prediction_input(event, [(match, 1)])) == "LOCKED"
    for query, given in (
        (LOCK_EVENT, {"event": event}),
        (SCORE_EVENT, {"event": event}),
        (RECORD_RESULT, {"match": match, "outcome": "DRAWN"}),
        (UPDATE_MATCH, {"match": match, "points": 3}),
    ):
        assert await editor.client.code(query, input=given) == "CONFLICT"
    seen = await bob.ask(EVENT_BY_ID, id=event)
    assert [one["picks"] for one in seen["predictions"]["nodes"]] == [None]
    assert await cancel(cancelled=False) == "UPCOMING"
    await submit(bob, event, [(match, 1)])
    await editor.lock(event)
    await editor.result(match, 1)
    await editor.score(event)
    assert await editor.client.code(UPDATE_EVENT, input={"event": event, "cancelled": True}) == "CONFLICT"


async def test_results_are_recorded_after_the_lock_only(one_client: Client) -> None:
    """Not before it; a winner with WON only, 0 included; the last one counts."""
    editor = EventEditor(one_client)
    event, [match] = await editor.card(10)
    assert await editor.client.code(RECORD_RESULT, input={"match": match, "outcome": "WON", "winner": 0}) == "CONFLICT"
    assert await editor.client.code(SCORE_EVENT, input={"event": event}) == "CONFLICT"
    await editor.lock(event)
    for wrong in ({"outcome": "WON"}, {"outcome": "WON", "winner": 2}, {"outcome": "WON", "winner": -1},
                  {"outcome": "DRAWN", "winner": 0}):  # fmt: skip
        refused = await editor.client.ask(RECORD_RESULT, input={"match": match, **wrong})
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "winner"])
    assert (await editor.result(match, 0))["result"] == {"outcome": "WON", "winner": 0}
    for outcome in ("DRAWN", "NO_CONTEST", "CANCELLED"):
        assert (await editor.result(match, outcome=outcome))["result"] == {"outcome": outcome, "winner": None}


async def test_events_are_paged_both_ways(one_client: Client) -> None:
    """Newest first; forward and backward pages have the same events, filtered or not."""
    editor = EventEditor(one_client)
    for number in range(7):
        event = await editor.event(f"E{number}", starts=in_hours(number + 1))
        if number % 2:
            await editor.lock(event["id"])
    at(one_client, datetime.now(UTC) + timedelta(hours=3.5))
    everyone = [f"E{number}" for number in reversed(range(7))]
    for state, wanted in ((None, everyone), ("LOCKED", ["E5", "E3", "E2", "E1", "E0"]), ("UPCOMING", ["E6", "E4"])):
        forward: list[str] = []
        after = None
        while True:
            page = await one_client.ask(EVENTS, state=state, first=2, after=after)
            forward += [edge["node"]["name"] for edge in page["edges"]]
            after = page["pageInfo"]["endCursor"]
            if not page["pageInfo"]["hasNextPage"]:
                break
        assert forward == wanted
        backward: list[str] = []
        before = None
        while True:
            page = await one_client.ask(EVENTS, state=state, last=2, before=before)
            backward = [edge["node"]["name"] for edge in page["edges"]] + backward
            before = page["pageInfo"]["startCursor"]
            if not page["pageInfo"]["hasPreviousPage"]:
                break
        assert backward == wanted
    cursor = (await one_client.ask(EVENTS, first=1))["pageInfo"]["endCursor"]
    assert await one_client.code(EVENTS, first=1, after=cursor, state="LOCKED") == "INVALID_CURSOR"
    altered = cursor[:-1] + ("A" if cursor[-1] != "A" else "Q")
    assert await one_client.code(EVENTS, first=1, after=altered) == "INVALID_CURSOR"
    assert await one_client.code(EVENTS, first=0) == "BAD_USER_INPUT"


async def test_an_idempotency_key_makes_one_event(one_client: Client) -> None:
    """Five concurrent requests with one key create one event, or one match; another input is refused."""
    editor = EventEditor(one_client)
    given = {"name": "Once", "season": "2026", "startsAt": in_hours(5), "idempotencyKey": "k"}
    created = await gather(*(editor.client.ask(CREATE_EVENT, input=given) for _ in range(5)))
    assert len({one["event"]["id"] for one in created}) == 1
    assert await names(one_client) == ["Once"]
    assert await editor.client.code(CREATE_EVENT, input={**given, "name": "Twice"}) == "IDEMPOTENCY_MISMATCH"
    event = created[0]["event"]["id"]
    match = {"event": event, "name": "M", "points": 5, "teams": teams("A", "B"), "idempotencyKey": "m"}
    added = await gather(*(editor.client.ask(ADD_MATCH, input=match) for _ in range(5)))
    assert len({one["match"]["id"] for one in added}) == 1
    assert len((await one_client.ask(EVENT_BY_ID, id=event))["matches"]) == 1
    locked = {"event": event, "idempotencyKey": "l"}
    for _ in range(2):
        assert (await editor.client.ask(LOCK_EVENT, input=locked))["event"]["state"] == "LOCKED"
    other = (await editor.event())["id"]
    again = {"event": event, "idempotencyKey": "no change"}
    assert (await editor.client.ask(LOCK_EVENT, input=again))["event"]["state"] == "LOCKED"
    for key in (locked, again):
        assert await editor.client.code(LOCK_EVENT, input={**key, "event": other}) == "IDEMPOTENCY_MISMATCH"


@pytest.mark.parametrize("method", ["transact_write_items", "update_item"])
async def test_a_cancellation_that_was_answered_before_is_not_carried_out_again(
    one_table: Table, default_engine: RunningEngine, method: str
) -> None:
    """Neither if the receipt comes before the repeat is written, nor if it comes before the gates are raised."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as one, serving(settings) as two:
        event, [match] = await EventEditor(one).card(10)
        keyed = {"event": event, "cancelled": True, "idempotencyKey": "k"}
        table, ed = two.services.table, two.member("ed", Role.EDITOR)
        await ed.ask(UPDATE_EVENT, input={"event": event, "name": "Renamed"})

        async def answer_meanwhile() -> None:
            other = one.member("ed", Role.EDITOR)
            assert (await other.ask(UPDATE_EVENT, input=keyed))["event"]["state"] == "CANCELLED"
            restored = await other.ask(UPDATE_EVENT, input={"event": event, "cancelled": False})
            assert restored["event"]["state"] == "UPCOMING"

        with beforehand(table, answer_meanwhile, method) as answered:
            assert (await ed.ask(UPDATE_EVENT, input=keyed))["event"]["state"] == "CANCELLED"
        assert answered
        key = parse_node_key("Event", event)
        stored = (await read_events(table, [key]))[key]
        assert stored.state == "UPCOMING"
        await submit(two.member("ada"), event, [(match, 0)])
        assert await breaches_in(one.services) == []


async def test_pickem_nodes_can_be_loaded_by_id(one_client: Client) -> None:
    """Events, matches and predictions; a removed match is null."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await editor.card(10)
    own = await submit(ada, event, [(match, 0)])
    ids = [event, match, own["id"]]
    query = "query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Prediction { picks { team } } } }"
    assert [node["__typename"] for node in await ada.ask(query, ids=ids)] == ["Event", "Match", "Prediction"]
    seen = await one_client.member("bob").ask(query, ids=ids)
    assert [node["id"] for node in seen] == ids
    assert seen[2]["picks"] is None
    await editor.client.ask(REMOVE_MATCH, input={"match": match})
    assert await ada.ask("query ($id: ID!) { node(id: $id) { id } }", id=match) is None


async def test_unstorable_years_and_seasons_are_refused(one_client: Client) -> None:
    """Years that do not sort as text, and seasons that cannot be seen or be part of a key; joiners can."""
    editor = EventEditor(one_client)
    for wrong in ({"startsAt": "0999-01-01T00:00:00Z"}, {"season": "a#b"}, {"season": ""}, {"season": "x" * 41},
                  {"season": "\u200c"}, {"season": "a\U0010ffff"}):  # fmt: skip
        given = {"name": "n", "season": "s", "startsAt": iso(datetime.now(UTC)), **wrong}
        assert await editor.client.code(CREATE_EVENT, input=given) == "INVALID_INPUT"
    persian = {"name": "n", "season": "نیم\u200cفصل", "startsAt": iso(datetime.now(UTC))}
    assert (await editor.client.ask(CREATE_EVENT, input=persian))["event"]["season"] == persian["season"]


@pytest.mark.parametrize("name", ["\u202eevil\x07\x1b[31m", "\u200b", "\u3164 \ufeff", "a\x9bb", "a\U0010ffff"])
async def test_an_event_whose_name_is_invisible_or_controls_is_refused(one_client: Client, name: str) -> None:
    """When it is created and when it is changed; the joiners of a script are part of a name."""
    editor = EventEditor(one_client)
    event = await editor.event("نیم\u200cفصل")
    given = {"name": name, "season": "2026", "startsAt": in_hours(1)}
    for query, fields in ((CREATE_EVENT, given), (UPDATE_EVENT, {"event": event["id"], "name": name})):
        refused = await editor.client.ask(query, input=fields)
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "name"])


async def test_a_request_that_read_an_older_card_takes_later_picks_out_of_the_counts(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A match was added since, and the member has picked it in another request meanwhile."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, (first,) = await editor.card(10)
    key = parse_node_key("Event", event)
    older = (await read_events(one_client.services.table, [key]))[key]
    second = (await editor.match(event))["id"]
    await submit(ada, event, [(first, 0), (second, 0)])

    reading_earlier(monkeypatch, older)
    await submit(ada, event, [(first, 1)])
    assert await breaches_in(one_client.services) == []


async def test_a_card_that_was_read_while_a_change_of_it_ended_is_read_again(one_client: Client) -> None:
    """A transaction's items may be seen one after the other: the event's new version, and the match as it was."""
    editor, table = EventEditor(one_client), one_client.services.table
    event, [match] = await editor.card(10)
    before = await read_matches(table, parse_node_key("Event", event))
    await editor.client.ask(UPDATE_MATCH, input={"match": match, "name": "Title match"})
    after = await read_matches(table, parse_node_key("Event", event))
    await table.write(*map(MATCH.put, before.values()))
    assert [one["name"] for one in (await one_client.ask(EVENT_BY_ID, id=event))["matches"]] == ["Singles"]
    await table.write(*map(MATCH.put, after.values()))
    known_at = one_client.services.cache.clock()
    one_client.services.cache.clock = lambda: known_at + 60.0
    assert [one["name"] for one in (await one_client.ask(EVENT_BY_ID, id=event))["matches"]] == ["Title match"]


async def test_a_card_that_a_stream_saw_while_a_change_of_it_ended_is_sent_again(one_client: Client) -> None:
    """As soon as it has been read again: a watcher would see the old match until the event changes next."""
    editor, services = EventEditor(one_client), one_client.services
    event, [match] = await editor.card(10)
    key = parse_node_key("Event", event)
    before = await read_matches(services.table, key)
    await editor.client.ask(UPDATE_MATCH, input={"match": match, "name": "Title match"})
    after = await read_matches(services.table, key)
    await services.table.write(*map(MATCH.put, before.values()))
    ctx = Context(services, Viewer("visitor.v", ViewerKind.VISITOR))
    async with aclosing(event_changed(ctx, event=key)) as events, asyncio.timeout(LONGEST):
        assert [one.name for one in await event_matches(ctx, await anext(events))] == ["Singles"]
        await services.table.write(*map(MATCH.put, after.values()))
        known_at = services.cache.clock()
        services.cache.clock = lambda: known_at + 60.0
        assert [one.name for one in await event_matches(ctx, await anext(events))] == ["Title match"]


NEXT = "query ($season: String) { nextEvent(season: $season) { name } }"
SEASONS = """
    query ($first: Int, $after: String, $last: Int, $before: String) {
      seasons(first: $first, after: $after, last: $last, before: $before) {
        nodes { name events latestEventAt }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    }
"""


async def test_the_next_event_is_the_one_that_locks_next(client: Client) -> None:
    """Of any season or of one: not what has begun, was locked early or cancelled, nor what comes later."""
    editor, other = EventEditor(client), EventEditor(client, season="Other")
    assert await client.ask(NEXT) is None
    await editor.event("Far", starts=in_hours(72))
    locked = (await editor.event("Locked early", starts=in_hours(2)))["id"]
    await editor.lock(locked)
    cancelled = (await editor.event("Cancelled", starts=in_hours(3)))["id"]
    await editor.client.ask(UPDATE_EVENT, input={"event": cancelled, "cancelled": True})
    await editor.event("Begun", starts=in_hours(-1))
    near = (await editor.event("Near", starts=in_hours(24)))["id"]
    await other.event("Nearest", starts=in_hours(12))
    await client.caught_up("events are listed by their states")
    assert await client.ask(NEXT) == {"name": "Nearest"}
    assert await client.ask(NEXT, season="2026") == {"name": "Near"}
    await editor.client.ask(UPDATE_EVENT, input={"event": near, "startsAt": in_hours(6)})
    await client.caught_up("an event is listed by its start")
    assert await client.ask(NEXT) == {"name": "Near"}
    at(client, datetime.now(UTC) + timedelta(hours=30))
    assert await client.ask(NEXT) == await client.ask(NEXT, season="2026") == {"name": "Far"}
    assert await client.ask(NEXT, season="Other") is None
    assert await client.ask(NEXT, season="None such") is None
    assert await client.code(NEXT, season="a#b") == "BAD_USER_INPUT"


async def test_a_season_is_one_however_its_accents_are_typed(client: Client) -> None:
    """Some devices type an accent apart from its letter. The name that is stored has at most 40 characters."""
    editor = EventEditor(client).client
    for season, fits in (("\u1112\u1161\u11ab" * 40, True), ("\u0958" * 21, False)):  # which becomes 40, and 42
        given = {"name": "Show", "season": season, "startsAt": in_hours(1)}
        answer = await editor.ask(CREATE_EVENT, input=given)
        assert ("event" in answer) is fits, answer
        if fits:
            assert await client.ask(NEXT, season=answer["event"]["season"]) is not None
    together, apart = "\u00c9t\u00e9", "E\u0301te\u0301"
    await EventEditor(client, apart).event()
    await EventEditor(client, together).event()
    await client.caught_up("the seasons are listed")
    shown = {row["name"]: row["events"] for row in (await client.ask(SEASONS))["nodes"]}
    assert shown == {together: 2, "\ud55c" * 40: 1}


async def test_seasons_are_listed_by_their_latest_event(client: Client) -> None:
    """With the number of their events, both ways; an event that moves takes its season with it."""
    starts = {name: in_hours(hours) for name, hours in {"2024": 1, "2025": 2, "2026": 3, "2999": 9}.items()}
    starts["2999"] = "2999-12-01T00:00:00.000Z"
    events = {name: await EventEditor(client, name).event(starts=start) for name, start in starts.items()}
    await EventEditor(client, "2024").event(starts="1901-01-01T00:00:00Z")
    rows = [{"name": name, "events": 1 + (name == "2024"), "latestEventAt": starts[name]} for name in sorted(starts)]
    assert (await client.ask(SEASONS))["nodes"] == rows[::-1]
    first = await client.ask(SEASONS, first=3)
    assert first["nodes"] == rows[:0:-1]
    assert first["pageInfo"]["hasNextPage"]
    rest = await client.ask(SEASONS, first=3, after=first["pageInfo"]["endCursor"])
    assert (rest["nodes"], rest["pageInfo"]["hasNextPage"]) == (rows[:1], False)
    back = await client.ask(SEASONS, last=2, before=rest["pageInfo"]["startCursor"])
    assert (back["nodes"], back["pageInfo"]["hasPreviousPage"]) == (rows[2:0:-1], True)
    moved = in_hours(48)
    await EventEditor(client).client.ask(UPDATE_EVENT, input={"event": events["2024"]["id"], "startsAt": moved})
    assert [row["name"] for row in (await client.ask(SEASONS))["nodes"]] == ["2999", "2024", "2026", "2025"]
    await client.caught_up("an event is listed by its start")
    assert await breaches_in(client.services) == []
