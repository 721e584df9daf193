"""Idempotent requests: how their input is hashed, and which keys are taken."""

from typing import Any

import pytest

from datastore.values.seal import Seal
from resolvers.requests.context import Context, Kind, Services, Viewer
from resolvers.values.node_ids import node_id
from schema import schema

CONTENDER = node_id("Contender", "main/3")
COMMENT = node_id("Comment", "p1:01ARZ3NDEKTSV4RRFFQ69G5FAV")
EVENT = node_id("Event", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
MATCHES = [node_id("Match", f"01ARZ3NDEKTSV4RRFFQ69G5FAV:{n}") for n in "ab"]
LIST = node_id("WordList", "hsk-1")
WORD = node_id("Word", "hsk-1:7")
SENTENCE = node_id("Sentence", "2026-11-20:u:1")
TEAMS = [
    {"members": ["Ann", "Bö"]},
    {"name": None, "members": ["Cy"], "champion": True},
    {"name": "D", "members": ["Di"]},
]
HASHES: list[tuple[str, dict[str, Any], str]] = [
    ("updateProfile", {}, "664092d00a3f5e90"),
    (
        "updateProfile",
        {"name": "Ada", "avatarUrl": None, "timeZone": "Europe/Vienna"},
        "cc3028707e07ee0a",
    ),
    (
        "createBoard",
        {"slug": "b", "title": "Title"},
        "466e1983ca123ca9",
    ),
    ("addContender", {"name": "Ann"}, "b8790d1e4311904f"),
    (
        "addContender",
        {"board": "b", "name": "Ann", "svg": None},
        "1c663430b3de4679",
    ),
    (
        "updateContender",
        {"contender": CONTENDER, "svg": None},
        "80b790228eeb1112",
    ),
    ("retireContender", {"contender": CONTENDER}, "b8563f49a81f318c"),
    ("voidVoter", {"voter": "somebody"}, "ec708e7dea8dddb0"),
    (
        "postComment",
        {"product": "p1", "language": "pt-BR", "rating": 5, "body": "Good 🙂"},
        "11a86f45ce3f6cd5",
    ),
    (
        "editComment",
        {"comment": COMMENT, "title": None, "rating": 4},
        "ad26b5b47b131886",
    ),
    ("deleteComment", {"comment": COMMENT}, "090a8ae6b4587374"),
    (
        "reportComment",
        {"comment": COMMENT, "reason": "Spam"},
        "278f3143a810a749",
    ),
    (
        "moderateComment",
        {"comment": COMMENT, "status": "REJECTED", "note": "No"},
        "af2f2ef11d08c1cb",
    ),
    (
        "createEvent",
        {"name": "E", "season": "2026", "startsAt": "2026-11-20T20:00:00.123Z"},
        "f62bc574c8f2c737",
    ),
    (
        "updateEvent",
        {"event": EVENT, "cancelled": False},
        "03efea4c74fea6f8",
    ),
    ("lockEvent", {"event": EVENT}, "837d97eab1522de4"),
    (
        "addMatch",
        {"event": EVENT, "name": "M", "points": 10, "teams": TEAMS},
        "e777694b26309fdb",
    ),
    (
        "addMatch",
        {"event": EVENT, "name": "M", "points": 10, "teams": TEAMS, "championships": ["T"], "preshow": True},
        "bd18292e680900df",
    ),
    (
        "updateMatch",
        {"match": MATCHES[0], "teams": TEAMS},
        "a531af6dc19b2010",
    ),
    ("removeMatch", {"match": MATCHES[0]}, "33ba6835d2d85772"),
    (
        "reorderMatches",
        {"event": EVENT, "matches": MATCHES},
        "247e97e21ed275a3",
    ),
    (
        "submitPrediction",
        {"event": EVENT, "picks": [{"match": MATCHES[1], "team": 1}, {"team": 0, "match": MATCHES[0]}]},
        "dffaddfa1ea3ef49",
    ),
    (
        "recordResult",
        {"match": MATCHES[0], "outcome": "WON", "winner": 0},
        "2e46a770f817b004",
    ),
    ("scoreEvent", {"event": EVENT}, "eeb072174121c539"),
    (
        "createWordList",
        {"name": "L", "level": None},
        "fb36245ac9233a3a",
    ),
    (
        "addWords",
        {
            "list": LIST,
            "words": [
                {"simplified": "好", "definition": "good", "pinyin": "hǎo"},
                {"definition": "ten", "traditional": None, "simplified": "十"},
            ],
        },
        "6689f2f5425e47a4",
    ),
    ("subscribe", {"list": LIST}, "eebf851fb1fff134"),
    (
        "unsubscribe",
        {"list": LIST, "characterSet": "TRADITIONAL"},
        "118287b9b5ad3907",
    ),
    (
        "recordQuiz",
        {"list": LIST, "correct": 1, "total": 2, "on": "2026-11-20"},
        "7df656300a2b266b",
    ),
    ("writeSentence", {"text": "One."}, "a7608bb818efc0cf"),
    (
        "writeSentence",
        {"sentence": SENTENCE, "word": None, "text": "Two."},
        "aaba69707f2c9e80",
    ),
    (
        "writeSentence",
        {"word": WORD, "text": "Three.", "on": None},
        "423e55217a237068",
    ),
]
"""Mutations, their inputs, and how the hashes begin that receipts hold."""


async def context_of(name: str, given: dict[str, Any]) -> tuple[Context, Any]:
    """The context of a request that came as far as the table, which is not there."""
    services = Services(None, Seal(["a secret for the tests, long enough"]))  # type: ignore[arg-type]  # no table
    ctx = Context(services, Viewer("ada", Kind.MEMBER))
    input_type = name[0].upper() + name[1:] + "Input"
    document = f"mutation M($input: {input_type}!) {{ {name}(input: $input) {{ ... on Refused {{ code path }} }} }}"
    answer = await schema.execute(document, {"input": given}, context_value=ctx)
    return ctx, answer.data


@pytest.mark.parametrize(("name", "given", "expected"), HASHES)
async def test_an_input_has_the_hash_that_stored_receipts_hold(name: str, given: dict[str, Any], expected: str) -> None:
    """Otherwise a repeat of a request that was answered before a deployment would be refused as another input."""
    ctx, _ = await context_of(name, {**given, "idempotencyKey": "k"})
    assert ctx.unit.key == "k"
    assert ctx.unit.input_hash[:16] == expected


async def test_an_argument_at_its_default_has_no_part_in_the_hash() -> None:
    """So an argument that is added later leaves the hashes of older requests as they are."""
    given = {"event": EVENT, "idempotencyKey": "k"}
    left_out, default, other = [
        (await context_of("scoreEvent", {**given, **more}))[0].unit.input_hash
        for more in ({}, {"confirmMissing": False}, {"confirmMissing": True})
    ]
    assert left_out == default
    assert other != default


@pytest.mark.parametrize("key", ["a#b", "a\nb", "k" * 129, "\x00"])
async def test_an_idempotency_key_that_cannot_be_stored_is_refused(key: str) -> None:
    """At its place in the input, before anything is read."""
    _, data = await context_of("lockEvent", {"event": EVENT, "idempotencyKey": key})
    assert data["lockEvent"] == {"code": "INVALID_INPUT", "path": ["input", "idempotencyKey"]}


@pytest.mark.parametrize("key", [{}, {"idempotencyKey": None}, {"idempotencyKey": ""}])
async def test_a_request_without_an_idempotency_key_claims_nothing(key: dict[str, str | None]) -> None:
    """An empty one is none."""
    ctx, _ = await context_of("lockEvent", {"event": EVENT, **key})
    assert ctx.unit.key is None
