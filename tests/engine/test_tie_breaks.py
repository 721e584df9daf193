"""Tie-breaks: they decide the order of equals, exactly and after every correction, and never a rank."""

from asyncio import gather
from dataclasses import replace
from random import Random

import pytest

from datastore.people.profiles import member_shard
from datastore.pickem.events import read_events
from datastore.pickem.predictions import PREDICTION, read_prediction
from datastore.pickem.standings import STANDING
from resolvers.values.node_ids import parse_node_key
from server.audit import find_suspects
from tests.client import Client
from tests.leagues import STANDINGS as LEAGUE_STANDINGS
from tests.leagues import create, join
from tests.queries import RECORD_TIE_BREAK, SUBMIT_PREDICTION, mutation
from tests.season import EventEditor, in_hours, prediction_input, reading_earlier, submit

MINUTES = {"question": "Minutes of the main event", "unit": "minutes"}
ATTENDANCE = {"question": "Attendance", "unit": "thousands"}
TIE_BREAK = "tieBreak { question unit answer }"
CREATE = mutation("createEvent", "EventCreated", f"event {{ id {TIE_BREAK} }}")
UPDATE = mutation("updateEvent", "EventUpdated", f"event {{ id {TIE_BREAK} }}")
GUESSES = """
query ($id: ID!) { event(id: $id) {
  tieBreak { answer } viewerPrediction { guess }
  predictions(first: 100) { nodes { guess rank points user { name } } }
} }
"""


async def with_tie_break(editor: EventEditor, *points: int) -> tuple[str, list[str]]:
    fields = {"name": "Show", "season": editor.season, "startsAt": in_hours(24), "tieBreak": MINUTES}
    event = (await editor.client.ask(CREATE, input=fields))["event"]["id"]
    return event, [(await editor.match(event, points=worth))["id"] for worth in points]


async def guess(member: Client, event: str, picks: list[tuple[str, int]], number: float | None) -> None:
    answer = await member.ask(SUBMIT_PREDICTION, input={**prediction_input(event, picks), "guess": number})
    assert "prediction" in answer, answer


async def answer(editor: EventEditor, event: str, number: float) -> None:
    recorded = await editor.client.ask(RECORD_TIE_BREAK, input={"event": event, "answer": number})
    assert recorded["event"]["tieBreak"]["answer"] == number


async def names(client: Client, event: str) -> list[str]:
    await client.caught_up("the ranking of the event shows its last scoring")
    return [row["user"]["name"] for row in (await client.ask(GUESSES, id=event))["predictions"]["nodes"]]


@pytest.mark.lagging
async def test_the_nearest_guess_is_listed_first_among_equals(client: Client) -> None:
    """Over and under alike, a missing guess last, ranks shared; a corrected answer reorders; hidden until the lock."""
    editor = EventEditor(client)
    event, [match] = await with_tie_break(editor, 10)
    for user, number in {"far": 40.0, "under": 17.5, "over": 22.5, "none": None, "exact": 20.0}.items():
        await guess(client.member(user), event, [(match, 0)], number)
    await guess(client.member("wrong"), event, [(match, 1)], 20.0)
    seen = await client.member("far").ask(GUESSES, id=event)
    assert seen["viewerPrediction"]["guess"] == 40.0
    assert [row["guess"] for row in seen["predictions"]["nodes"] if row["user"]["name"] != "Far"] == [None] * 5
    assert await editor.client.code(RECORD_TIE_BREAK, input={"event": event, "answer": 20.0}) == "CONFLICT"
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    assert await names(client, event) == ["Far", "Under", "Over", "None", "Exact", "Wrong"]
    await answer(editor, event, 20.0)
    await editor.score(event)
    assert await names(client, event) == ["Exact", "Under", "Over", "Far", "None", "Wrong"]
    await client.caught_up("the standings list every member")
    assert [row["rank"] for row in (await editor.standings())["nodes"]] == [1, 1, 1, 1, 1, 6]
    await answer(editor, event, 39.0)
    await editor.score(event)
    assert await names(client, event) == ["Far", "Over", "Exact", "Under", "None", "Wrong"]
    assert await find_suspects(client.services, "pickem") == []
    await editor.unscore(event)
    await client.caught_up("no standing is listed")
    assert await find_suspects(client.services, "pickem") == []


@pytest.mark.lagging
async def test_the_order_is_that_of_a_plain_model(client: Client) -> None:
    """Random events, guesses, answers and corrections: events, season and league list as a naive computation does."""
    random, editor = Random(11), EventEditor(client)
    users = [f"m{number}" for number in range(7)]
    members = {user: client.member(user) for user in users}
    league = (await create(members["m0"]))["id"]
    for user in users[1:5]:
        await join(members[user], league=league)
    given: dict[str, dict[str, tuple[int, int, float | None]]] = {}
    cards: dict[str, list[str]] = {}
    for _ in range(3):
        event, card = await with_tie_break(editor, 10, 10)
        cards[event], given[event] = card, {}
        for user in users:
            picks = random.randrange(2), random.randrange(2)
            number = random.choice([None, float(random.randrange(10, 40)), random.randrange(100) / 8])
            given[event][user] = (*picks, number)
            await guess(members[user], event, list(zip(card, picks, strict=True)), number)
    events = list(cards)
    for event in events:
        await editor.lock(event)
        await gather(*(editor.result(match, 0) for match in cards[event]))
    answers: dict[str, float | None] = dict.fromkeys(events)
    for event, number in ((events[0], 20.0), (events[1], 12.375), (events[0], 30.0)):
        await answer(editor, event, number)
        answers[event] = number
        await gather(*(editor.score(scored) for scored in events))
        distances = {one: distances_of(given[one], answers[one]) for one in events}
        totals = {user: sum(correct(given[one][user]) for one in events) for user in users}
        sums = {user: sum(distances[one][user] for one in events) for user in users}
        season = sorted(users, key=lambda user: (-totals[user], sums[user], user))
        await client.caught_up("the standings list every member")
        listed = [row["user"]["name"].lower() for row in (await editor.standings(first=100))["nodes"]]
        assert listed == season
        rows = (await members["m0"].ask(LEAGUE_STANDINGS, id=league))["standings"]["nodes"]
        assert [row["user"]["name"].lower() for row in rows] == [user for user in season if user in users[:5]]
        for one in events:
            keys = {user: (-correct(given[one][user]), distances[one][user], user) for user in users}
            assert [name.lower() for name in await names(client, one)] == sorted(users, key=keys.__getitem__)
    assert await find_suspects(client.services, "pickem") == []


def correct(given: tuple[int, int, float | None]) -> int:
    return given[:2].count(0)


def distances_of(given: dict[str, tuple[int, int, float | None]], number: float | None) -> dict[str, float]:
    """A missing guess counts as the worst distance; without an answer nothing counts."""
    if number is None:
        return dict.fromkeys(given, 0.0)
    known = {user: abs(number - one[2]) for user, one in given.items() if one[2] is not None}
    worst = max(known.values(), default=0.0)
    return {user: known.get(user, worst) for user in given}


async def test_bad_guesses_questions_and_answers_are_refused(one_client: Client) -> None:
    """Not a number, infinite, too large; for an event that asks for none; changes after the lock."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await with_tie_break(editor, 10)
    plain, [other] = await editor.card(10)
    for number in (1e300, -1e300, 1_000_000.001):
        given = {**prediction_input(event, [(match, 0)]), "guess": number}
        refused = await ada.ask(SUBMIT_PREDICTION, input=given)
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "guess"])
    literal = 'mutation { submitPrediction(input: {event: "%s", picks: [], guess: %s}) { __typename } }'
    for text in ("NaN", '"20"', "Infinity"):
        assert "errors" in await ada.answer(literal % (event, text)), text
    assert await ada.ask(literal % (event, "1e999")) == {"__typename": "Refused"}
    unasked = {**prediction_input(plain, [(other, 0)]), "guess": 1.0}
    assert await ada.code(SUBMIT_PREDICTION, input=unasked) == "INVALID_INPUT"
    await guess(ada, event, [(match, 0)], 1 / 3)
    assert (await ada.ask(GUESSES, id=event))["viewerPrediction"]["guess"] == 0.333
    for wrong in ({"question": ""}, {"question": "x" * 201}, {"question": "q", "unit": " "}, {"question": "a\x07"},
                  {"question": "\u200b"}, {"question": "q", "unit": "\u3164"}):  # fmt: skip
        assert await editor.client.code(UPDATE, input={"event": event, "tieBreak": wrong}) == "INVALID_INPUT"
    changed = await editor.client.ask(UPDATE, input={"event": event, "tieBreak": {"question": " Falls? "}})
    assert changed["event"]["tieBreak"] == {"question": "Falls?", "unit": None, "answer": None}
    await editor.lock(event)
    assert await editor.client.code(UPDATE, input={"event": event, "tieBreak": None}) == "LOCKED"
    assert await editor.client.code(RECORD_TIE_BREAK, input={"event": event, "answer": 1e300}) == "INVALID_INPUT"
    await submit(ada, plain, [(other, 0)])
    await editor.lock(plain)
    assert await editor.client.code(RECORD_TIE_BREAK, input={"event": plain, "answer": 1.0}) == "CONFLICT"
    keyed = {"event": event, "answer": 2.0, "idempotencyKey": "k"}
    for _ in range(2):
        assert (await editor.client.ask(RECORD_TIE_BREAK, input=keyed))["event"]["tieBreak"]["answer"] == 2.0


async def test_an_unchanged_question_keeps_its_answer(one_client: Client) -> None:
    """A form sends the tie-break with everything else; only another question or unit is refused after the lock."""
    editor = EventEditor(one_client)
    event, _ = await with_tie_break(editor, 10)
    await editor.lock(event)
    await answer(editor, event, 21.5)
    same = {"question": f" {MINUTES['question']} ", "unit": MINUTES["unit"]}
    updated = (await editor.client.ask(UPDATE, input={"event": event, "name": "Finals", "tieBreak": same}))["event"]
    assert updated["tieBreak"] == {**MINUTES, "answer": 21.5}
    for other in ({**MINUTES, "unit": None}, {**MINUTES, "question": "Falls?"}, None):
        assert await editor.client.code(UPDATE, input={"event": event, "tieBreak": other}) == "LOCKED"


async def ask(editor: EventEditor, event: str, question: dict[str, str] | None) -> None:
    updated = await editor.client.ask(UPDATE, input={"event": event, "tieBreak": question})
    assert (updated["event"]["tieBreak"] or {}).get("question") == (question or {}).get("question")


async def guess_of(member: Client, event: str) -> float | None:
    guess: float | None = (await member.ask(GUESSES, id=event))["viewerPrediction"]["guess"]
    return guess


@pytest.mark.lagging
async def test_a_guess_for_an_earlier_question_counts_as_missing(client: Client) -> None:
    """It is not shown, ranks nobody, and is not the worst guess."""
    editor = EventEditor(client)
    event, [match] = await with_tie_break(editor, 10)
    for user, number in {"far": 90.0, "exact": 21.0, "near": 20.0, "wide": 5.0}.items():
        await guess(client.member(user), event, [(match, 0)], number)
    await ask(editor, event, ATTENDANCE)
    assert await guess_of(client.member("exact"), event) is None
    for user, number in {"wide": 30.0, "near": 25.0, "worst": 40.0}.items():
        await guess(client.member(user), event, [(match, 0)], number)
    await editor.lock(event)
    await editor.result(match, 0)
    await answer(editor, event, 21.0)
    await editor.score(event)
    order = ["Near", "Wide", "Far", "Exact", "Worst"]
    assert await names(client, event) == order
    rows = (await client.ask(GUESSES, id=event))["predictions"]["nodes"]
    assert [row["guess"] for row in rows] == [25.0, 30.0, None, None, 40.0]
    await client.caught_up("the standings list every member")
    listed = [row["user"]["name"] for row in (await editor.standings())["nodes"]]
    assert listed == order
    assert await find_suspects(client.services, "pickem") == []


async def test_a_guess_is_for_one_question_only(one_client: Client) -> None:
    """The same question again keeps it; none, another one, another unit, or a question that comes back do not."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await with_tie_break(editor, 10)
    for questions in ([ATTENDANCE], [{**MINUTES, "unit": "hours"}], [None], [None, MINUTES], [ATTENDANCE, MINUTES]):
        await ask(editor, event, MINUTES)
        await guess(ada, event, [(match, 0)], 20.0)
        await editor.client.ask(UPDATE, input={"event": event, "name": "Finals"})
        await ask(editor, event, MINUTES)
        assert await guess_of(ada, event) == 20.0
        for question in questions:
            await ask(editor, event, question)
            assert await guess_of(ada, event) is None, questions


async def test_a_guess_that_is_stored_after_its_question_was_replaced_counts_as_missing(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its request read the event before the change, whether that asks another question, or none and then another."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    for questions in ([ATTENDANCE], [None], [None, MINUTES]):
        event, [match] = await with_tie_break(editor, 10)
        key = parse_node_key("Event", event)
        older = (await read_events(one_client.services.table, [key]))[key]
        for question in questions:
            await ask(editor, event, question)
        with monkeypatch.context() as patched:
            reading_earlier(patched, older)
            await guess(ada, event, [(match, 0)], 20.0)
        assert await guess_of(ada, event) is None, questions


async def test_the_audit_finds_distances_that_do_not_add_up(one_client: Client) -> None:
    """A closeness that is not the guess's, and a standing that is not the sum."""
    editor, table = EventEditor(one_client), one_client.services.table
    event, [match] = await with_tie_break(editor, 10)
    for user, number in {"ada": 20.0, "bob": 30.0, "cyd": None}.items():
        await guess(one_client.member(user), event, [(match, 0)], number)
    await editor.lock(event)
    await editor.result(match, 0)
    await answer(editor, event, 21.0)
    await editor.score(event)
    assert await find_suspects(one_client.services, "pickem") == []
    key = parse_node_key("Event", event)
    stored = await read_prediction(table, key, "ada")
    assert stored is not None
    assert stored.share is not None
    nearer = replace(stored.share, closeness=stored.share.closeness + 1)
    await table.write(PREDICTION.update(PREDICTION.item_key(stored), values={"share": nearer}))
    standing = STANDING.at(season="2026", shard=member_shard("bob"), user="bob")
    await table.write(STANDING.update(standing, values={"closeness": 5}))
    found = await find_suspects(one_client.services, "pickem")
    differs = "points, correct picks, events and closeness are (10, 1, 1, {}); the predictions add up to (10, 1, 1, {})"
    for planted in (
        f"Show ({key}): ada: {nearer}; a fresh scoring gives {replace(nearer, closeness=8000)}",
        f"ada in 2026: {differs.format(8000, 8001)}",
        f"bob in 2026: {differs.format(5, 0)}",
    ):
        assert f"pickem: {planted}" in found
