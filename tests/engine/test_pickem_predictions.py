"""Predictions: submitting them until the lock, and hiding them until then."""

from asyncio import gather
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from datastore.people.identities import SignInMethod, of_issuer
from datastore.people.profiles import read_profile
from datastore.pickem.events import read_events, read_gates, read_pick_counts
from datastore.pickem.member_items import take_out
from datastore.pickem.predictions import read_prediction
from resolvers.people.identities import Members
from resolvers.pickem.cache import PickemCache
from resolvers.requests.context import PROFILE_AGE
from resolvers.values.node_ids import parse_node_key
from server.auth.tokens import mint
from server.settings import Settings
from tests.audits import breaches_in
from tests.client import Client, serving
from tests.intercepted import beforehand
from tests.queries import EVENT_BY_ID, SUBMIT_PREDICTION, UPDATE_EVENT, UPDATE_MATCH, UPDATE_PROFILE
from tests.season import EventEditor, in_hours, prediction_input, submit, teams

HIDDEN = """
query ($event: ID!, $user: ID!, $prediction: ID!) {
  event(id: $event) {
    state matches { pickCounts }
    viewerPrediction { user { name } picks { team } }
    predictions { nodes { user { name } picks { team } points correct rank } edges { node { picks { team } } } }
  }
  predictions(event: $event) { nodes { user { name } picks { team } } }
  user(id: $user) { predictions(first: 2) { nodes {
    picks { team } event { predictions { nodes { user { name } picks { team } } } }
  } } }
  node(id: $prediction) { ... on Prediction { picks { team } event { matches { pickCounts } } } }
}
"""


def picks_seen(seen: dict[str, Any]) -> list[Any]:
    """Ada's picks as the answer shows them on each path."""
    rows = [
        *seen["event"]["predictions"]["nodes"],
        *seen["predictions"]["nodes"],
        *seen["user"]["predictions"]["nodes"][0]["event"]["predictions"]["nodes"],
    ]
    return [
        *(row["picks"] for row in rows if row["user"]["name"] == "Ada"),
        seen["user"]["predictions"]["nodes"][0]["picks"],
        seen["node"]["picks"],
    ]


@pytest.mark.lagging
async def test_others_picks_are_hidden_until_the_lock(client: Client) -> None:
    """On every path, for members and visitors. Members always see their own."""
    editor, ada, bob = EventEditor(client), client.member("ada"), client.member("bob")
    event, [match] = await editor.card(10)
    own = await submit(ada, event, [(match, 1)])
    await submit(bob, event, [(match, 0)])
    user = await ada.ask("{ viewer { id } }")
    ids = {"event": event, "user": user["id"], "prediction": own["id"]}
    await client.caught_up("predictions are on their members' pages")
    for viewer in (bob, client):
        seen = await viewer.ask(HIDDEN, **ids)
        assert picks_seen(seen) == [None] * 5
        assert seen["event"]["matches"] == seen["node"]["event"]["matches"] == [{"pickCounts": None}]
    assert (await client.ask(HIDDEN, **ids))["event"]["viewerPrediction"] is None
    assert (await bob.ask(HIDDEN, **ids))["event"]["viewerPrediction"]["picks"] == [{"team": 0}]
    assert picks_seen(await ada.ask(HIDDEN, **ids)) == [[{"team": 1}]] * 5
    await editor.lock(event)
    seen = await client.ask(HIDDEN, **ids)
    assert picks_seen(seen) == [[{"team": 1}]] * 5
    assert seen["event"]["matches"] == [{"pickCounts": [1, 1]}]


async def test_a_prediction_is_amended_until_the_lock(client: Client) -> None:
    """The last submission replaces all earlier picks; after the lock none is accepted."""
    editor, ada = EventEditor(client), client.member("ada")
    event, [one, two] = await editor.card(10, 20)
    first = await submit(ada, event, [(one, 0), (two, 1)])
    second = await submit(ada, event, [(two, 0)])
    assert first["id"] == second["id"]
    assert [(pick["match"], pick["team"]) for pick in second["picks"]] == [(two, 0)]
    assert (await submit(ada, event, []))["picks"] == []
    await submit(ada, event, [(one, 1)])
    seen = await editor.lock(event)
    assert [match["pickCounts"] for match in seen["matches"]] == [[0, 1], [0, 0]]
    assert await ada.code(SUBMIT_PREDICTION, input=prediction_input(event, [(one, 0)])) == "LOCKED"
    own = (await ada.ask(EVENT_BY_ID, id=event))["viewerPrediction"]
    assert [(pick["match"], pick["team"]) for pick in own["picks"]] == [(one, 1)]


async def test_invalid_picks_are_refused(one_client: Client) -> None:
    """Unknown matches, teams out of range, doubles: the refusal names the pick, and nothing is stored."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await editor.card(10)
    _, [foreign] = await editor.card(10)
    for picks, path in (
        ([(foreign, 0)], ["input", "picks", "0", "match"]),
        ([(match, 2)], ["input", "picks", "0", "team"]),
        ([(match, -1)], ["input", "picks", "0", "team"]),
        ([(match, 0), (match, 0)], ["input", "picks", "1", "match"]),
        ([("nonsense", 0)], ["input", "picks", "0", "match"]),
        ([(event, 0)], ["input", "picks", "0", "match"]),
    ):
        refused = await ada.ask(SUBMIT_PREDICTION, input=prediction_input(event, picks))
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", path)
    assert await one_client.code(SUBMIT_PREDICTION, input=prediction_input(event, [(match, 0)])) == "NOT_SIGNED_IN"
    seen = await ada.ask(EVENT_BY_ID, id=event)
    assert seen["viewerPrediction"] is None
    assert seen["predictions"]["nodes"] == []


async def test_picks_are_counted_exactly(one_client: Client) -> None:
    """Eight members submit and amend at once: the counts are those of the last picks."""
    editor = EventEditor(one_client)
    event, [match] = await editor.card(10)
    members = [one_client.member(f"m{number}") for number in range(8)]
    await gather(*(submit(member, event, [(match, turn % 2)]) for member in members for turn in range(2)))
    seen = await editor.lock(event)
    screen = await one_client.ask(EVENT_BY_ID, id=event)
    last = [prediction["picks"][0]["team"] for prediction in screen["predictions"]["nodes"]]
    assert len(last) == 8
    assert seen["matches"][0]["pickCounts"] == [last.count(0), last.count(1)]


async def test_a_key_submits_once(one_client: Client) -> None:
    """A repeat gets the first answer, even after the lock and after another submission."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await editor.card(10)
    given = {**prediction_input(event, [(match, 1)]), "idempotencyKey": "k"}
    first = await gather(*(ada.ask(SUBMIT_PREDICTION, input=given) for _ in range(5)))
    assert all(one == first[0] for one in first)
    await submit(ada, event, [(match, 0)])
    await editor.lock(event)
    assert (await ada.ask(SUBMIT_PREDICTION, input=given))["prediction"]["submittedAt"] == first[0]["prediction"][
        "submittedAt"
    ]
    assert (await ada.ask(EVENT_BY_ID, id=event))["viewerPrediction"]["picks"][0]["team"] == 0
    assert await ada.code(SUBMIT_PREDICTION, input={**given, "picks": []}) == "IDEMPOTENCY_MISMATCH"


async def test_a_slow_clock_accepts_no_prediction_after_the_event_was_shown_locked(
    one_client: Client, settings: Settings
) -> None:
    """Two servers, one an hour behind: once the other one has shown the lock, the slow one refuses submissions too."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await editor.card(10, starts=in_hours(0.5))
    now = datetime.now(UTC)
    async with serving(settings) as slow:
        slow.services.clock = lambda: now - timedelta(hours=1)
        one_client.services.clock = lambda: now + timedelta(hours=1)
        one_client.services.get(PickemCache).patience = 60.0  # the event is shown as locked before its gates are closed
        late = slow.member("bob")
        await submit(late, event, [(match, 0)])
        assert (await ada.ask(EVENT_BY_ID, id=event))["state"] == "LOCKED"
        assert await late.code(SUBMIT_PREDICTION, input=prediction_input(event, [(match, 1)])) == "LOCKED"
        assert (await slow.ask(EVENT_BY_ID, id=event))["state"] == "LOCKED"
        key = parse_node_key("Event", event)
        stored = (await read_events(slow.services.table, [key]))[key]
        assert {gate.version for gate in await read_gates(slow.services.table, key)} == {stored.version - 1}
        mover = EventEditor(slow)
        assert await mover.client.code(UPDATE_EVENT, input={"event": event, "startsAt": in_hours(9)}) == "LOCKED"


async def test_a_prediction_for_an_older_card_is_refused(one_client: Client) -> None:
    """Members pick the third team while an editor removes it: either the picks are accepted or the removal is."""
    editor = EventEditor(one_client)
    event = (await editor.event())["id"]
    match = (await editor.match(event, "A", "B", "C"))["id"]
    members = [one_client.member(f"m{number}") for number in range(10)]
    answers = await gather(
        *(member.answer(SUBMIT_PREDICTION, input=prediction_input(event, [(match, 2)])) for member in members),
        editor.client.answer(UPDATE_MATCH, input={"match": match, "teams": teams("A", "B")}),
    )
    changed = "match" in answers[-1]["data"]["updateMatch"]
    accepted = ["prediction" in answer["data"]["submitPrediction"] for answer in answers[:-1]]
    assert changed is not any(accepted)


@pytest.mark.parametrize("page", [1, 3])
async def test_ranked_predictions_are_paged(one_client: Client, page: int) -> None:
    """Best first over all shards, each once, ranks shared across pages."""
    editor = EventEditor(one_client)
    event, matches = await editor.card(10, 20)
    picks = {
        f"m{number}": [(match, (number >> place) & 1) for place, match in enumerate(matches)] for number in range(9)
    }
    await gather(*(submit(one_client.member(user), event, given) for user, given in picks.items()))
    await editor.lock(event)
    for match in matches:
        await editor.result(match, 0)
    await editor.score(event)
    query = """
    query ($id: ID!, $first: Int, $after: String) { predictions(event: $id, first: $first, after: $after) {
      nodes { rank points correct user { name } } pageInfo { endCursor hasNextPage } } }
    """
    seen: list[dict[str, Any]] = []
    after = None
    while True:
        answer = await one_client.ask(query, id=event, first=page, after=after)
        seen += answer["nodes"]
        after = answer["pageInfo"]["endCursor"]
        if not answer["pageInfo"]["hasNextPage"]:
            break
    assert [(row["rank"], row["points"]) for row in seen] == [(1, 30)] * 3 + [(4, 20)] * 2 + [(6, 10)] * 2 + [
        (8, 0)
    ] * 2
    assert len({row["user"]["name"] for row in seen}) == 9


@pytest.mark.lagging
async def test_a_member_s_predictions_are_in_the_order_of_the_starts_that_they_were_submitted_for(
    client: Client,
) -> None:
    """An event that is moved takes its new place when the picks are submitted again, or scored."""
    editor, ada = EventEditor(client), client.member("ada")
    cards = {name: await editor.card(10, name=name, starts=in_hours(hours)) for name, hours in (("A", 24), ("B", 48))}
    for event, [match] in cards.values():
        await submit(ada, event, [(match, 0)])

    async def move(name: str, hours: float) -> list[str]:
        await editor.client.ask(UPDATE_EVENT, input={"event": cards[name][0], "startsAt": in_hours(hours)})
        return await listed()

    async def listed() -> list[str]:
        await client.caught_up("predictions are on their members' pages")
        rows = (await ada.ask("{ viewer { predictions { nodes { event { name } } } } }"))["predictions"]["nodes"]
        return [row["event"]["name"] for row in rows]

    assert await move("A", 72) == ["B", "A"]
    event, [match] = cards["A"]
    await submit(ada, event, [(match, 1)])
    assert await listed() == ["A", "B"]
    assert await move("B", 96) == ["A", "B"]
    event, [match] = cards["B"]
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    assert await listed() == ["B", "A"]


@pytest.mark.parametrize("is_submitted", [True, False])
async def test_a_prediction_that_was_removed_and_submitted_anew_is_not_taken_for_the_old_one(
    one_client: Client, *, is_submitted: bool
) -> None:
    """It has another token: who read the old one, to replace it or to remove it, takes its own picks back."""
    services, member = one_client.services, one_client.member("ada")
    key, [match] = await EventEditor(one_client).card(10)
    await submit(member, key, [(match, 0)])
    event_id = parse_node_key("Event", key)
    event = (await read_events(services.table, [event_id]))[event_id]

    async def renew() -> None:
        await take_out(services.table, "ada", event, services.unit())
        await submit(member, key, [(match, 1)])

    with beforehand(services.table, renew) as renewed:
        if is_submitted:
            await submit(member, key, [(match, 1)])
        else:
            await take_out(services.table, "ada", event, services.unit())
    assert renewed
    counts = await read_pick_counts(services.table, event_id)
    assert (counts.predictions, +Counter(counts.picked)) == ((1, {"m2_1": 1}) if is_submitted else (0, {}))
    assert await breaches_in(services) == []


async def test_an_imported_author_predicts_as_one_who_joined_with_their_first_sign_in(
    one_client: Client, settings: Settings
) -> None:
    """Who joined first stands first among equals; a process may have known their profile from before for long."""
    event, [match] = await EventEditor(one_client).card(10)
    table = one_client.services.table
    async with serving(settings) as second:
        author = await one_client.services.get(Members).introduce(of_issuer(SignInMethod.SITE, "", "ada"), name="Ada")
        assert await second.services.profiles.load(author) is not None
        token = mint(settings, "ada")
        await Client(one_client.served, settings, token).ask(UPDATE_PROFILE, input={"name": "Ada"})
        known_at = second.services.cache.clock()
        second.services.cache.clock = lambda: known_at + PROFILE_AGE
        await submit(Client(second.served, settings, token), event, [(match, 1)])
    prediction = await read_prediction(table, parse_node_key("Event", event), author)
    profile = await read_profile(table, author)
    assert prediction is not None
    assert profile is not None
    assert prediction.joined_at == profile.joined_at
