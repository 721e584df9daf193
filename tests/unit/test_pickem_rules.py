"""The rules of the game, and the arithmetic of ranks."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import process_time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.dynamo import iso
from datastore.dynamo.paging import shard_limit
from datastore.pickem.events import Event, Match, MatchOutcome, Result, Team, TieBreak, slugify
from datastore.pickem.standings import Histogram
from datastore.refusals import InvalidInput
from resolvers.pickem import rules, scoring
from resolvers.pickem.season_files import derived_id, season_document
from resolvers.transfer.readers import Unreadable
from server import Failed
from tests.transfers import parse_season

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["WON", "LOCKED"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NOW = datetime(2026, 11, 20, 20, tzinfo=UTC)
TEAMS = (Team(("A",)), Team(("B",)))


def event(*card: str, **results: Result) -> Event:
    return Event("E", "Show", "2026", NOW, NOW, card=card, results=results)


def match(name: str, points: int) -> Match:
    return Match("E", name, name, points, TEAMS)


def test_only_a_won_match_is_worth_points() -> None:
    """Picks of the winner earn its points, also if that is the first team; no other outcome is worth points."""
    matches = {name: match(name, 10) for name in "abcde"}
    results = {
        "a": Result(MatchOutcome.WON, 0),
        "b": Result(MatchOutcome.WON, 1),
        "c": Result(MatchOutcome.DRAWN),
        "d": Result(MatchOutcome.NO_CONTEST),
        "e": Result(MatchOutcome.CANCELLED),
    }
    winners = scoring.winners(event(*"abcde", **results), matches)
    assert scoring.worth(dict.fromkeys("abcde", 0), winners) == scoring.Score(10, 1)
    assert scoring.worth(dict.fromkeys("abcde", 1), winners) == scoring.Score(10, 1)
    assert scoring.worth({"a": 0, "b": 1}, winners) == scoring.Score(20, 2)
    assert scoring.worth({}, winners) == scoring.Score(0, 0)


def test_a_removed_match_is_worth_no_points() -> None:
    """Even if its result was recorded before."""
    winners = scoring.winners(event("a", b=Result(MatchOutcome.WON, 0)), {"a": match("a", 1), "b": match("b", 1)})
    assert winners == {}


def test_a_pick_is_right_wrong_or_open() -> None:
    """Open without a result; wrong if no team won."""
    decided = event("a", "b", "c", a=Result(MatchOutcome.WON, 0), b=Result(MatchOutcome.DRAWN))
    assert [rules.is_correct(decided, *pick) for pick in (("a", 0), ("a", 1), ("b", 0), ("c", 0))] == [
        True, False, False, None,
    ]  # fmt: skip


def test_the_pre_show_comes_first() -> None:
    """In any card, with the order of the matches otherwise unchanged."""
    assert rules.preshow_first("dbca", {"c", "b"}) == ("b", "c", "d", "a")


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("AEW Revolution", "aew-revolution"),
        ("  Élan / Vital!  ", "elan-vital"),
        ("東京ドーム 2026", "東京ドーム-2026"),
        ("***", "event"),
        ("हिन्दी दंगल", "हिन्दी-दंगल"),
        ("ศึกภาษาไทย ที่ 1", "ศึกภาษาไทย-ที่-1"),
        ("עִבְרִית ❤️!", "עִבְרִית"),
        ("한국어", "한국어"),
    ],
)
def test_a_slug_fits_an_address(name: str, slug: str) -> None:
    """Letters and digits of any script in lower case, the rest hyphens, never empty."""
    assert slugify(name) == slug


def test_a_histogram_gives_every_rank() -> None:
    """One more than the number of higher scores, also for scores in between and after packing."""
    histogram = Histogram.of({10: 2, 7: 1, 0: 3, -5: 1})
    assert [histogram.rank(score) for score in (11, 10, 9, 7, 3, 0, -5, -9)] == [1, 1, 3, 3, 4, 4, 7, 8]
    assert histogram.total == 7
    assert Histogram.unpack(histogram.pack()) == histogram
    assert Histogram.unpack(Histogram().pack()).rank(5) == 1


def test_a_million_members_fit_in_few_kilobytes() -> None:
    """Twenty thousand different scores: some tens of kilobytes."""
    counts = {score * 3: 50 + score % 7 for score in range(20_000)}
    assert len(Histogram.of(counts).pack()) < 60_000


def test_a_shard_is_read_for_its_share_and_some_more() -> None:
    """More than the mean, and never more than the page."""
    assert shard_limit(21, 4) == 14
    assert shard_limit(2, 4) == 2
    assert shard_limit(101, 1) == 101


def test_what_is_far_too_long_for_a_name_is_not_looked_at() -> None:
    """Each letter of it stands for eighteen. To look at one such megabyte took as long as hundreds of requests."""
    longest, endless = "\ufdfa" * 800, "\ufdfa" * 349_000
    for subject in (rules.validate_season, rules.validate_name):
        assert _processor_seconds(subject, endless) < 100 * _processor_seconds(subject, longest)
    assert rules.parse_code("-" * 1_000_000) is None
    assert rules.validate_season("  the \n season   of  " + " " * 200 + "2026 ") == "the season of 2026"


def _processor_seconds(refused: Callable[[str], object], text: str) -> float:
    began = process_time()
    with pytest.raises(InvalidInput):
        refused(text)
    return process_time() - began


def test_an_exported_season_file_is_imported_unchanged() -> None:
    """Cards, results, tie-breaks and ids; events that have begun are locked."""
    given: dict[str, list[dict[str, Any]]] = {
        "events": [
            {
                "name": "Past",
                "season": "2026",
                "startsAt": "2026-11-01T20:00:00Z",
                "tieBreak": {"question": "Minutes of the main event", "unit": "minutes", "answer": -21.125},
                "matches": [
                    {"name": "Main", "points": 25, "teams": [{"members": ["A"], "champion": True}, {"members": ["B"]}],
                     "championships": ["World"], "result": {"outcome": "WON", "winner": 0}},
                    {"name": "Early", "points": 5, "preshow": True, "teams": [{"members": ["C"]}, {"members": ["D"]}]},
                ],
            },
            {"name": "Next", "season": "2026", "startsAt": "2026-12-01T20:00:00Z", "tieBreak": {"question": "Falls?"}},
        ]
    }  # fmt: skip
    cards = parse_season(given, NOW)
    assert [card.event.state for card in cards] == ["LOCKED", "UPCOMING"]
    assert [match.name for match in cards[0].matches] == ["Main", "Early"]
    assert cards[0].event.card == (cards[0].matches[1].id, cards[0].matches[0].id)
    assert cards == parse_season(given, NOW)
    assert [card.event.tie_break for card in cards] == [
        TieBreak("Minutes of the main event", "minutes", -21125),
        TieBreak("Falls?"),
    ]
    out = season_document(cards)
    assert [event["tieBreak"] for event in out["events"]] == [event["tieBreak"] for event in given["events"]]
    assert season_document(parse_season(out, NOW)) == out


@pytest.mark.parametrize("results", [False, True], ids=["bare", "with a result"])
@pytest.mark.parametrize(
    ("state", "hours", "imported"),
    [
        ("LOCKED", 1, "LOCKED"),
        ("SCORED", 1, "LOCKED"),
        ("SCORED", -1, "LOCKED"),
        ("CANCELLED", 1, "CANCELLED"),
        ("CANCELLED", -1, "CANCELLED"),
    ],
)
def test_an_imported_event_has_the_state_of_the_file(state: str, hours: int, imported: str, *, results: bool) -> None:
    """Also before its start. Points are not part of the file, so a scored one is locked."""
    event: dict[str, object] = {"name": "x", "season": "s", "startsAt": iso(NOW + timedelta(hours=hours))}
    if results:
        teams = [{"members": ["A"]}, {"members": ["B"]}]
        event["matches"] = [{"name": "m", "points": 5, "teams": teams, "result": {"outcome": "DRAWN"}}]
        event["tieBreak"] = {"question": "Falls?", "answer": 2}
    [card] = parse_season({"events": [{**event, "state": state}]}, NOW)
    assert card.event.state == imported
    assert card.event.revealed == (imported == "LOCKED" or results)
    [exported] = season_document([card])["events"]
    assert exported["state"] == imported
    assert season_document(parse_season({"events": [exported]}, NOW))["events"] == [exported]


def test_an_upcoming_event_in_a_file_is_locked_once_it_has_begun() -> None:
    """It was upcoming when it was exported. Before its start it has no results."""
    event = {"name": "x", "season": "s", "startsAt": "2020-01-01T00:00:00Z", "state": "UPCOMING"}
    [card] = parse_season({"events": [event]}, NOW)
    assert card.event.state == "LOCKED"
    later = {**event, "startsAt": "2028-01-01T00:00:00Z"}
    [card] = parse_season({"events": [later]}, NOW)
    assert card.event.state == "UPCOMING"
    with pytest.raises(Failed, match=r"events\.0: startsAt: this event has results but has not begun; write"):
        parse_season({"events": [{**later, "tieBreak": {"question": "Falls?", "answer": 2}}]}, NOW)
    with pytest.raises(Failed, match=r"events\.0: state: write one of UPCOMING, LOCKED, SCORED, CANCELLED"):
        parse_season({"events": [{**later, "state": "OPEN"}]}, NOW)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, 'a list of "events"'),
        ({"events": [{"name": "x"}]}, "events.0: startsAt: write a text, in quotation marks"),
        ({"events": ["x"]}, "events.0: write an object, in braces"),
        ({"events": [{"name": "x", "season": 2026, "startsAt": "2026-01-01T00:00:00Z"}]}, "events.0: season: write"),
        ({"events": [{"name": "x", "season": "s", "startsAt": "2026-01-01T00:00:00Z", "place": 5}]},
         "events.0: place: write a text, in quotation marks"),
        ({"events": [{"name": "x", "season": "s", "startsAt": "2026-01-01"}]}, "events.0: startsAt: write a date"),
        ({"events": [{"name": "x", "season": "s", "startsAt": "tomorrow"}]}, "events.0: startsAt: write a date, a"),
        (
            {"events": [{"name": "x", "season": "s", "startsAt": "2026-01-01T00:00:00Z",
                         "matches": [{"name": "m", "points": 0, "teams": [{"members": ["A"]}, {"members": ["B"]}]}]}]},
            "events.0: matches.0.points: A match is worth",
        ),
        (
            {"events": [{"name": "x", "season": "s", "startsAt": "2028-01-01T00:00:00Z", "id": "nope"}]},
            "events.0: id: this is not a ULID",
        ),
        (
            {"events": [{"name": "a\x1bb", "season": "s", "startsAt": "2028-01-01T00:00:00Z"}]},
            "events.0: name: A name here has 1 to 200 characters, at least one visible",
        ),
        (
            {"events": [{"name": "x", "season": "s", "startsAt": "2026-01-01T00:00:00Z",
                         "matches": [{"name": "m", "points": 5, "teams": [{"members": ["A"]}, {"members": ["\u200b"]}]}]
                         }]},
            "events.0: matches.0.teams.1.members.0: A name here has",
        ),
    ],
)  # fmt: skip
def test_a_bad_season_file_names_its_position(document: object, message: str) -> None:
    """Before anything is written."""
    with pytest.raises((Failed, Unreadable), match=message.replace(".", r"\.")):
        parse_season(document, NOW)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"points": 2.5}, "points: write a whole number"),
        ({"points": float("inf")}, "points: write a whole number"),
        ({"result": {"outcome": "WON", "winner": 0.5}}, "result.winner: write a whole number"),
    ],
)
def test_a_fraction_in_a_season_file_is_refused(wrong: dict[str, object], message: str) -> None:
    """Neither rounded nor stored as it is: no pick would ever equal such a winner."""
    teams = [{"members": ["A"]}, {"members": ["B"]}]
    event = {"name": "x", "season": "s", "startsAt": "2020-01-01T00:00:00Z",
             "matches": [{"name": "m", "points": 5, "teams": teams, **wrong}]}  # fmt: skip
    with pytest.raises(Failed, match=message):
        parse_season({"events": [event]}, NOW)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"championships": "World"}, "championships: write a list"),
        ({"preshow": "false"}, "preshow: write true or false"),
        ({"preshow": 0}, "preshow: write true or false"),
        ({"teams": "AB"}, "teams: write a list"),
        ({"teams": [{"members": ["A"]}, {"members": "John Cena"}]}, "teams.1.members: write a list"),
        ({"teams": [{"members": ["A"]}, {"name": "B"}]}, "teams.1.members: write a list"),
        (
            {"teams": [{"members": ["A"], "champion": "no"}, {"members": ["B"]}]},
            "teams.0.champion: write true or false",
        ),
        ({"teams": ["A", "B"]}, "teams.0: write an object, in braces"),
        ({"teams": [{"members": ["A"]}, {"members": ["B", 5]}]}, "teams.1.members.1: write a text, in quotation marks"),
        ({"teams": [{"members": ["A"]}, {"members": ["B"], "name": 5}]}, "teams.1.name: write a text, in quotation"),
        ({"championships": [None]}, "championships.0: write a text, in quotation marks"),
        ({"name": 2026}, "name: write a text, in quotation marks"),
        ({"points": None}, "points: write a whole number, without quotation marks"),
        ({"points": "25"}, "points: write a whole number, without quotation marks"),
        ({"points": True}, "points: write a whole number, without quotation marks"),
        ({"result": "WON"}, "result: write an object, in braces"),
        ({"result": {}}, "result.outcome: write one of WON, DRAWN, NO_CONTEST, CANCELLED"),
        ({"result": {"outcome": ["WON"]}}, "result.outcome: write one of WON"),
        ({"result": {"outcome": "WON", "winner": 2}}, "result.winner: The winner is the position"),
    ],
)
def test_a_wrong_kind_of_value_in_a_season_file_is_refused(wrong: dict[str, object], message: str) -> None:
    """A text in place of a list or a boolean would be stored as a list of its letters, or as true."""
    match = {"name": "m", "points": 5, "teams": [{"members": ["A"]}, {"members": ["B"]}], **wrong}
    event = {"name": "x", "season": "s", "startsAt": "2020-01-01T00:00:00Z", "matches": [match]}
    with pytest.raises(Failed, match=rf"^events\.0: matches\.0\.{re.escape(message)}"):
        parse_season({"events": [event]}, NOW)


@given(st.data())
def test_whatever_a_season_file_has_is_taken_or_refused_with_its_place(data: st.DataObject) -> None:
    """Any value in place of any other, or left out."""
    teams = [{"name": "As", "members": ["A"], "champion": True}, {"members": ["B"]}]
    results = [{"outcome": "WON", "winner": 0}, {"outcome": "DRAWN"}]
    matches = [
        {"id": f"01M6CB52G08CG4M9131G7WKTE{index}", "name": "m", "points": 5, "preshow": False,
         "championships": ["World"], "teams": teams, "result": result}
        for index, result in enumerate(results)
    ]  # fmt: skip
    event = {"id": "01M6CB52G08CG4M9131G7WKTE3", "name": "x", "season": "s", "startsAt": "2020-01-01T00:00:00Z",
             "state": "LOCKED", "description": "d", "place": "p", "imageUrl": "https://a.example/b.png",
             "tieBreak": {"question": "q", "unit": "u", "answer": 2}, "matches": matches}  # fmt: skip
    document: Any = orjson.loads(orjson.dumps({"events": [event]}))
    inside, place = document, data.draw(st.sampled_from(["events"]))
    while isinstance(inside[place], dict | list) and inside[place] and data.draw(st.booleans()):
        inside = inside[place]
        place = data.draw(st.sampled_from([*inside] if isinstance(inside, dict) else range(len(inside))))
    if data.draw(st.booleans()):
        inside[place] = data.draw(JSON)
    else:
        del inside[place]
    refusal = None
    try:
        parse_season(document, NOW, ["a.example"])
    except (Failed, Unreadable) as refused:
        refusal = str(refused)
    assert refusal is None or re.match(r"events\.\d+: (\w+(\.\w+)*: )?\S|A season file is", refusal)


def test_null_in_a_season_file_is_like_nothing() -> None:
    """For a list, a boolean, a state and the details of an event."""
    match = {"name": "m", "points": 5, "championships": None, "preshow": None, "result": None,
             "teams": [{"members": [name], "name": None, "champion": None} for name in "AB"]}  # fmt: skip
    event = {"name": "x", "season": "s", "startsAt": iso(NOW), "state": None, "tieBreak": None, "place": None}
    [card] = parse_season({"events": [{**event, "matches": [match]}, {**event, "name": "y", "matches": None}]}, NOW)[:1]
    assert (card.matches[0].championships, card.matches[0].preshow) == ((), False)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"id": "01M6CB52G08CG4M9131G7WKTE3"}, {"id": "01M6CB52G08CG4M9131G7WKTE3"}),
        ({"id": derived_id(NOW, derived_id(NOW, "s", "x", iso(NOW)), "1")}, {}),
    ],
    ids=["given", "derived"],
)
def test_two_matches_of_a_card_with_one_id_are_refused(first: dict[str, str], second: dict[str, str]) -> None:
    """Also if one of them has the id that the other would get: the table has room for one of them."""
    match = {"name": "m", "points": 5, "teams": [{"members": ["A"]}, {"members": ["B"]}]}
    event = {"name": "x", "season": "s", "startsAt": iso(NOW), "matches": [{**match, **first}, {**match, **second}]}
    with pytest.raises(Failed, match=r"events\.0: matches\.1\.id: matches\.0 has the same id"):
        parse_season({"events": [event]}, NOW)


@pytest.mark.parametrize("given", [{"id": "01M6CB52G08CG4M9131G7WKTE3"}, {}])
def test_an_event_that_is_twice_in_a_season_file_is_refused(given: dict[str, str]) -> None:
    """By its id, or by season, name and start: the second was counted as one that existed, and its card was lost."""
    event = {"name": "x", "season": "s", "startsAt": iso(NOW), **given}
    with pytest.raises(Failed, match=r"events\.1: id: events\.0 has the same id"):
        parse_season({"events": [event, {**event, "place": "Vienna"}]}, NOW)


@pytest.mark.parametrize(
    ("tie_break", "message"),
    [
        ("Falls?", "tieBreak: write an object, in braces"),
        ({"unit": "minutes"}, "tieBreak.question: write a text, in quotation marks"),
        ({"question": " "}, "tieBreak.question: A tie-break's question has 1 to 200 characters"),
        ({"question": "q", "unit": "u" * 41}, "tieBreak.unit: A tie-break's unit has 1 to 40 characters"),
        ({"question": "q", "answer": "20"}, "tieBreak.answer: write a number"),
        ({"question": "q", "answer": True}, "tieBreak.answer: write a number"),
        ({"question": "q", "answer": 1e300}, "tieBreak.answer: This is a number from"),
        ({"question": "q", "answer": float("nan")}, "tieBreak.answer: This is a number from"),
        ({"question": "q", "answer": 10**400}, "tieBreak.answer: This is a number from"),
        ({"question": "q", "answer": 0}, "startsAt: this event has results but has not begun"),
    ],
)
def test_a_bad_tie_break_in_a_season_file_is_refused(tie_break: object, message: str) -> None:
    """Its question, unit and answer; an answer before the event has begun."""
    event = {"name": "x", "season": "s", "startsAt": "2028-01-01T00:00:00Z", "tieBreak": tie_break}
    with pytest.raises(Failed, match=rf"^events\.0: {re.escape(message)}"):
        parse_season({"events": [event]}, NOW)


def test_only_a_won_match_has_a_winner() -> None:
    """A position of one of its teams, 0 included."""
    assert rules.parse_result(match("a", 1), MatchOutcome.WON, 0) == Result(MatchOutcome.WON, 0)
    for outcome, winner in ((MatchOutcome.WON, None), (MatchOutcome.WON, 2), (MatchOutcome.DRAWN, 1)):
        with pytest.raises(InvalidInput):
            rules.parse_result(match("a", 1), outcome, winner)
