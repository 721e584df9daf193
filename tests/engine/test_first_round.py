"""What the first round wrote is read, answered and written on by this code: a table of commit e795371.

`tests/fixtures/first_round/write.py` says how the fixture was made. The clock stands where the old service stopped.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from graphql import build_schema, get_named_type, is_input_object_type, is_object_type

import datastore
from datastore import layout
from datastore import vocabulary as vocabulary_store
from datastore.dynamo import Table
from datastore.dynamo.entity import Entity
from resolvers.viewer import Role
from server.audit import breaches
from server.auth.identification import COOKIE
from server.settings import Settings
from tests.client import Client, serving
from tests.engines import RunningEngine
from tests.first_round import FIXTURE, ITEMS, items_of, write_items
from tests.service import ROOT

COUNTED = {"Tally", "PairTally"}
"""Counters that begin with an addition: their items lack the numbers that nothing was added to."""

EXTENDED = {"Board", "DirtyMark", "Event", "Gate", "Match", "OldStanding", "Prediction", "Vote", "WordList"}
"""Records that have fields with a default since."""

NEVER_STORED = {
    ("Receipt", "about"),
    ("Receipt", "member"),
    *(("Receipt", f"{index}{part}") for index in ("gsi1", "gsi2") for part in ("pk", "sk")),
    ("ImportBatch", "left_out"),
    ("Tally", "marks"),
    ("Gate", "picked"),
    ("Gate", "revision"),
    ("Event", "narrowing"),
    ("Event", "numbered"),
    ("Event", "description"),
    ("Event", "place"),
    ("Event", "image_url"),
    ("Event", "tie_break"),
    ("Event", "question_number"),
    ("Event", "guesses"),
    ("Event", "unscored"),
    ("Event", "unscoring"),
    ("Match", "number"),
    ("Prediction", "share"),
    ("Prediction", "guess"),
    ("Prediction", "question_number"),
    ("Board", "claims"),
    ("Board", "completed"),
    ("Board", "claimed_at"),
    ("Board", "covered_revision"),
    ("Board", "covered_settled"),
    ("Board", "restorations"),
    ("Board", "latest_restored"),
    ("Board", "opens_at"),
    ("Board", "closes_at"),
    ("DirtyMark", "since"),
    ("DirtyMark", "clean"),
    ("Vote", "origin"),
    ("Profile", "daily_word_at"),
    ("Profile", "lock_reminder_hours"),
    ("Profile", "email_confirmed"),
    ("Profile", "email_pending"),
    ("Profile", "email_proven"),
    ("QuizResult", "proven"),
    ("ActiveDays", "freezes_from"),
    ("Word", "revision"),
    ("Word", "any_language"),
    ("Word", "reading"),
    ("Word", "example"),
    ("Word", "audio_url"),
    ("WordList", "removed"),
    ("WordList", "corrected"),
    ("WordList", "deleted_at"),
    ("WordList", "cleared"),
}
"""A gate's counts are attributes of their own; the first round did not have the others."""

NEWER_MUTATIONS = {
    "updateWord",
    "removeWord",
    "updateWordList",
    "deleteWordList",
    "deleteSentence",
    "reviewWord",
    "requestSubscription",
    "claimSubscriptions",
    "startQuiz",
    "answerQuiz",
    "addWebhook",
    "removeWebhook",
    "rotateWebhookSecret",
    "redeliver",
    "createLeague",
    "joinLeague",
    "admitToLeague",
    "removeFromLeague",
    "leaveLeague",
    "rotateLeagueCode",
    "deleteLeague",
    "recordTieBreak",
    "unscoreEvent",
    "createApiKey",
    "revokeApiKey",
    "eraseMember",
    "exportMember",
    "suspendMember",
    "reinstateMember",
    "takeBack",
    "updateBoard",
    "restoreContender",
    "startVisit",
}
NEWER_LISTS = {"apiKeys", "deliveries", "due", "journal", "latestComments", "leagues", "members", "webhooks"}
"""What the first round did not have, so the fixture has no receipts and no pages of it."""

CAST = """
mutation ($token: ID!, $verdict: Verdict!) { castVote(input: { token: $token, verdict: $verdict }) {
  ... on VoteCast { winner { id } progress { seen } } ... on Refused { code } } }
"""
PROGRESS = "query ($board: String!) { board(slug: $board) { progress { seen } } }"
NOW = datetime.fromisoformat(FIXTURE["now"])
IDS: Mapping[str, str] = FIXTURE["ids"]
SEALED: Mapping[str, str] = FIXTURE["sealed"]


@pytest.fixture
async def visitor(one_table: Table, default_engine: RunningEngine) -> AsyncIterator[Client]:
    """A client that asks this code about the old table."""
    await write_items(one_table)
    await layout.upgrade(one_table, lambda _part, _items: None)
    settings = Settings(
        dynamodb_url=default_engine.url, table=one_table.name, secrets=(FIXTURE["secret"],), introspection="on"
    )
    async with serving(settings) as client:
        client.services.clock = lambda: NOW
        yield client


def asker(visitor: Client, exchange: Mapping[str, Any]) -> Client:
    """Who asked in the fixture, asking again."""
    if exchange["user"] is not None:
        roles = map(Role, exchange["roles"])
        return visitor.member(exchange["user"], *roles, email=f"{exchange['user']}@example.org")
    return with_cookie(visitor, exchange["cookie"])


def with_cookie(visitor: Client, cookie: str | None) -> Client:
    client = visitor.visitor()
    if cookie is not None:
        client.http.cookies.set(COOKIE, cookie)
    return client


def entities() -> set[Entity[Any]]:
    """Every entity that the datastore declares."""
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(datastore.__path__, "datastore.")]
    return {value for module in modules for value in vars(module).values() if isinstance(value, Entity)}


def items_by_entity() -> Iterator[tuple[Entity[Any], dict[str, dict[str, Any]]]]:
    every = entities()
    for item in ITEMS:
        (entity,) = (one for one in every if one.recognises(item["pk"]["S"], item["sk"]["S"]))
        yield entity, item


def stored_names(entity: Entity[Any]) -> set[str]:
    """The attributes that an entity's items may have."""
    index_keys = {f"{index}{part}" for index in entity.indexes for part in ("pk", "sk")}
    return {field.stored_name for field in entity.fields.values()} | index_keys


async def replay(visitor: Client, exchange: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to what was asked in the fixture, as the fixture has it."""
    # The first round called the deleted comment's id `id`, which is an object's own id in clients' caches.
    query = exchange["query"].replace("CommentDeleted { id }", "CommentDeleted { id: deletedId }")
    answer = await asker(visitor, exchange).answer(query, **exchange["variables"])
    answer.pop("extensions", None)
    return answer


async def mutate(client: Client, name: str, /, **given: Any) -> Any:
    """Carries a mutation out, and expects that it is not refused."""
    kind = f"{name[0].upper()}{name[1:]}Input"
    shown = "... on Ballot { token }" if name == "drawMatchup" else "__typename"
    refused = "... on Refused { code message path }"
    query = f"mutation ($input: {kind}!) {{ {name}(input: $input) {{ {shown} {refused} }} }}"
    answer = await client.ask(query, input=given)
    assert "code" not in answer, answer
    return answer


async def assert_sound(visitor: Client) -> None:
    """`ringside audit` finds nothing, once this process has settled what it counted."""
    await visitor.services.close()
    assert [breach async for breach in breaches(visitor.services)] == []


# ── items ──


def test_every_item_is_written_again_as_it_was() -> None:
    """Attribute by attribute, by the one entity that recognises its key."""
    for entity, item in items_by_entity():
        record = entity.read(item)
        again = entity.item(record)
        if entity.record.__name__ in COUNTED | EXTENDED:
            assert entity.read(again) == record
            again = within(again, item)
        assert again == item


def within(new: Any, old: Any) -> Any:
    """Of an item, what an older one has too; the same for the maps in it."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {name: within(new[name], old[name]) for name in old if name in new}
    return new


def test_every_field_of_every_entity_is_in_some_item() -> None:
    """What no item has could be renamed without another test noticing. Records that are new have no items here."""
    kept = {entity for entity, _ in items_by_entity()}
    missing = {(entity.record.__name__, name) for entity in kept for name in stored_names(entity)}
    for entity, item in items_by_entity():
        missing -= {(entity.record.__name__, name) for name in item}
    assert missing == NEVER_STORED


# ── answers ──


def test_the_fixture_has_every_list_and_every_receipt() -> None:
    """Every field that answers with a connection, and every mutation that takes an idempotency key."""
    definitions = build_schema((ROOT / "schema" / "schema.graphql").read_text(encoding="utf-8")).type_map
    connections = {
        name
        for kind in definitions.values()
        if is_object_type(kind)
        for name, field in kind.fields.items()
        if str(get_named_type(field.type)).endswith("Connection")
    }
    repeatable = {
        f"{name[0].lower()}{name.removesuffix('Input')[1:]}"
        for name, kind in definitions.items()
        if is_input_object_type(kind) and "idempotencyKey" in kind.fields
    }
    assert connections - NEWER_LISTS == {name for name in connections if _asked("queries", name)}
    assert repeatable - NEWER_MUTATIONS == {name for name in repeatable if _asked("repeats", name)}


def _asked(kind: str, field: str) -> bool:
    return any(f" {field}(" in exchange["query"] for exchange in FIXTURE[kind])


async def test_queries_answer_what_they_answered(visitor: Client) -> None:
    """Every list page by page, with the cursors of the old service; as members, moderators, visitors and strangers.

    But the list of boards, which showed votes that were not settled, now settles them.
    """
    for exchange in FIXTURE["queries"]:
        for edge in exchange["answer"]["data"].get("boards", {"edges": []})["edges"]:
            settled = await visitor.ask(
                "query ($slug: String!) { board(slug: $slug) { votes } }", slug=edge["node"]["slug"]
            )
            edge["node"]["votes"] = settled["votes"]
        assert rounded(await replay(visitor, exchange)) == rounded(exchange["answer"]), exchange
    await assert_sound(visitor)


def rounded(value: Any) -> Any:
    """Without the last digits of fractions: since Python 3.12 a sum of them is more exact."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return round(value, 9) if isinstance(value, float) else value


async def test_mutations_with_a_known_key_answer_from_their_receipts(visitor: Client) -> None:
    """Each kind of mutation, and nothing is carried out again; another input under the same key is refused."""
    before = await items_of(visitor.services.table)
    for exchange in FIXTURE["repeats"]:
        assert await replay(visitor, exchange) == exchange["answer"], exchange
    assert await items_of(visitor.services.table) == before
    exchange = next(one for one in FIXTURE["repeats"] if "postComment" in one["query"])
    other = {"input": {**exchange["variables"]["input"], "body": "Something else."}}
    assert await asker(visitor, exchange).code(exchange["query"], **other) == "IDEMPOTENCY_MISMATCH"


# ── what was sealed ──


async def test_old_ballots_and_cookies_are_valid(visitor: Client) -> None:
    """A ballot drawn before counts for the visitor of the old cookie, once; a spent one answers as it did."""
    voter = with_cookie(visitor, SEALED["cookie"])
    for ballot, board, seen in (("ballot", "pets", 3), ("ballot on main", "main", 2)):
        assert await visitor.visitor().code(CAST, token=SEALED[ballot], verdict="TIE") == "TOKEN_UNKNOWN"
        for _ in range(2):
            cast = await voter.ask(CAST, token=SEALED[ballot], verdict="TIE")
            assert cast == {"winner": None, "progress": {"seen": seen}}
        assert (await voter.ask(PROGRESS, board=board))["progress"] == {"seen": seen}
    assert (await voter.ask(CAST, token=SEALED["spent ballot"], verdict="RIGHT"))["winner"] is not None
    assert await voter.code(CAST, token=SEALED["spent ballot"], verdict="LEFT") == "TOKEN_SPENT"
    await assert_sound(visitor)


async def test_old_links_unsubscribe(visitor: Client) -> None:
    """Of one list, and of everything."""
    table = visitor.services.table
    for token, user, left in (("unsubscribe one", "ada", 2), ("unsubscribe all", "amara-abara", 0)):
        answer = await visitor.http.post("/unsubscribe", params={"token": SEALED[token]})
        assert answer.status_code == 200
        subscriptions = await vocabulary_store.read_subscriptions(table, user)
        assert sum(one.active for one in subscriptions) == left
    await assert_sound(visitor)


# ── new writes ──


async def test_old_boards_events_and_comments_are_written_on(visitor: Client) -> None:
    """Votes, contenders, predictions, results, scorings, edits, reports and decisions; the audit finds all in order."""
    ada, bob = visitor.member("ada"), visitor.member("bob")
    editor, moderator = visitor.member("editor", Role.EDITOR), visitor.member("mod", Role.MODERATOR)
    for board in ("main", "pets"):
        ballot = await mutate(ada, "drawMatchup", board=board)
        await mutate(ada, "castVote", token=ballot["token"], verdict="LEFT")
        await mutate(editor, "addContender", board=board, name="Newcomer")
    await mutate(editor, "updateContender", contender=IDS["other contender"], name="Wolf", svg=None)
    await mutate(editor, "retireContender", contender=IDS["contender"])

    picks = [{"match": IDS["upcoming match"], "team": 0}]
    await mutate(ada, "submitPrediction", event=IDS["upcoming"], picks=picks)
    await mutate(bob, "submitPrediction", event=IDS["upcoming"], picks=picks)
    await mutate(editor, "removeMatch", match=IDS["upcoming match"])
    for match, event in (("locked match", "locked"), ("match", "scored")):
        await mutate(editor, "recordResult", match=IDS[match], outcome="WON", winner=1)
        await mutate(editor, "scoreEvent", event=IDS[event])

    await mutate(ada, "editComment", comment=IDS["comment"], rating=5, language="de")
    await mutate(bob, "reportComment", comment=IDS["comment"], reason="Again.")
    await mutate(moderator, "moderateComment", comment=IDS["rejected"], status="PUBLISHED")
    await mutate(moderator, "moderateComment", comment=IDS["reported"], status="REJECTED", note="Rude.")
    await mutate(ada, "deleteComment", comment=IDS["reported"])
    await assert_sound(visitor)


async def test_old_lists_and_members_are_written_on(visitor: Client) -> None:
    """Words, the next daily words, subscriptions, quizzes, sentences and profiles."""
    ada, bob, editor = visitor.member("ada"), visitor.member("bob"), visitor.member("editor", Role.EDITOR)
    words = [{"simplified": "新", "definition": "new"}]
    for client, listed in ((editor, IDS["public list"]), (ada, IDS["private list"])):
        await mutate(client, "addWords", list=listed, words=words)
    await mutate(bob, "subscribe", list=IDS["public list"])
    await mutate(ada, "unsubscribe", list=IDS["public list"], characterSet="TRADITIONAL")
    await mutate(ada, "createWordList", name="Another")
    visitor.services.clock = lambda: NOW + timedelta(days=1)
    drawn = await ada.ask("{ wordLists(first: 50) { nodes { name dailyWord { date } } } }")
    assert all(one["dailyWord"]["date"] == "2050-03-08" for one in drawn["nodes"] if one["name"] != "Another")
    await mutate(ada, "recordQuiz", list=IDS["public list"], correct=1, total=1)
    assert (await ada.ask("{ viewer { streak { current } } }"))["streak"] == {"current": 3}
    await mutate(ada, "writeSentence", sentence=IDS["sentence"], text="新。", word=None)
    await mutate(ada, "updateProfile", name="Ada", avatarUrl=None)
    await assert_sound(visitor)
