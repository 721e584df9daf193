"""The journal: what a change leaves, who may read it, exact pages, and what costs nothing."""

from datetime import timedelta
from typing import Any

import pytest

from datastore.dynamo import Table
from datastore.dynamo.attributes import item_size
from resolvers.pickem.cache import PickemCache
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id
from server.settings import Settings
from tests.client import Client, pages, serving
from tests.comments import post
from tests.queries import (
    CAST_VOTE,
    CREATE_BOARD,
    CREATE_LIST,
    DELETE_COMMENT,
    DRAW_MATCHUP,
    EDIT_COMMENT,
    MODERATE_COMMENT,
    POST_COMMENT,
    UPDATE_PROFILE,
    VOID_VOTER,
)
from tests.season import EventEditor, in_hours
from tests.voting import add_contenders

JOURNAL = """
query ($actor: ID, $object: ID, $first: Int, $after: String) {
  journal(actor: $actor, object: $object, first: $first, after: $after) {
    nodes { id at kind actor object ground note }
    pageInfo { hasNextPage endCursor }
  }
}
"""


async def kinds(moderator: Client, **wanted: Any) -> list[str]:
    return [occurrence["kind"] for occurrence in await pages(moderator, JOURNAL, size=50, **wanted)]


@pytest.mark.quick
@pytest.mark.lagging
async def test_a_comments_journal_says_who_did_what_and_why(client: Client) -> None:
    """Newest first, each by its own actor; a decision with its ground and note; never a word of the comment."""
    ada, max_ = client.member("ada"), client.member("max", Role.MODERATOR)
    comment = await post(ada, body="A text that stays out of the journal.")
    await ada.ask(EDIT_COMMENT, input={"comment": comment["id"], "body": "Another such text."})
    decision = {"comment": comment["id"], "status": "REJECTED", "ground": "ABUSE", "note": "Rule 3."}
    await max_.ask(MODERATE_COMMENT, input=decision)
    await client.caught_up("the index has all occurrences with the comment")
    found = (await max_.ask(JOURNAL, object=comment["id"]))["nodes"]
    assert [occurrence["kind"] for occurrence in found] == ["comment.moderated", "comment.edited", "comment.posted"]
    assert [occurrence["actor"] for occurrence in found] == [
        node_id("User", "max"),
        node_id("User", "ada"),
        node_id("User", "ada"),
    ]
    assert {occurrence["object"] for occurrence in found} == {comment["id"]}
    assert [(occurrence["ground"], occurrence["note"]) for occurrence in found] == [
        ("ABUSE", "Rule 3."),
        (None, None),
        (None, None),
    ]
    assert (await max_.ask(JOURNAL, object=comment["id"], actor=node_id("User", "max")))["nodes"] == found[:1]
    fetched = await max_.ask(
        "query ($id: ID!) { node(id: $id) { ... on Occurrence { kind note } } }", id=found[0]["id"]
    )
    assert fetched == {"kind": "comment.moderated", "note": "Rule 3."}
    items = [item async for item in client.services.table.scan_items(consistent=True)]
    assert not any("text" in str(item) for item in items if item["pk"]["S"].startswith("JOURNAL#"))


NAMED = """
query {
  journal(first: 20) {
    nodes {
      kind source actor
      actorUser { name }
      objectNode { __typename ... on Comment { body } ... on Board { title } ... on WordList { name } }
    }
  }
}
"""


async def test_the_journal_names_people_and_things_in_one_query(one_client: Client) -> None:
    """As far as the viewer may see them; of what is gone, and of other people's private lists, nothing."""
    ada, max_ = one_client.member("ada"), one_client.member("max", Role.MODERATOR)
    await one_client.member("ed", Role.EDITOR).ask(CREATE_BOARD, input={"slug": "b", "title": "Board"})
    await ada.ask(CREATE_LIST, input={"name": "Private"})
    posted = [await post(ada, body=body) for body in ("Here.", "Gone.")]
    await ada.ask(DELETE_COMMENT, input={"comment": posted[1]["id"]})
    add_key = 'mutation { createApiKey(input: { name: "k", roles: ["editor"] }) { ... on ApiKeyCreated { secret } } }'
    secret = (await one_client.member("root", Role.ADMIN).ask(add_key))["secret"]
    key = Client(one_client.served, one_client.settings, secret)
    await key.ask(CREATE_BOARD, input={"slug": "c", "title": "By a machine"})
    comment, board = {"__typename": "Comment", "body": "Here."}, {"__typename": "Board", "title": "Board"}
    assert [
        (node["kind"], node["source"], node["actorUser"] and node["actorUser"]["name"], node["objectNode"])
        for node in (await max_.ask(NAMED))["nodes"][::-1]
    ] == [
        ("board.created", "MEMBER", "Ed", board),
        ("wordList.created", "MEMBER", "Ada", None),
        ("comment.posted", "MEMBER", "Ada", comment),
        ("comment.posted", "MEMBER", "Ada", None),
        ("comment.deleted", "MEMBER", "Ada", None),
        ("apiKey.created", "MEMBER", "Root", None),
        ("board.created", "API_KEY", None, {"__typename": "Board", "title": "By a machine"}),
    ]


async def test_what_the_service_does_itself_has_no_member(one_client: Client) -> None:
    """An event that locks at its start."""
    editor, max_ = EventEditor(one_client), one_client.member("max", Role.MODERATOR)
    event = await editor.event(starts=in_hours(1))
    one_client.services.get(PickemCache).patience = 60.0  # the event is shown as locked before that is stored
    one_client.services.clock = lambda: utc_now() + timedelta(hours=2)
    assert (await one_client.ask("query ($id: ID!) { event(id: $id) { state } }", id=event["id"]))["state"] == "LOCKED"
    [locked, created] = (await max_.ask(NAMED))["nodes"]
    assert (locked["kind"], locked["source"], locked["actor"]) == ("event.locked", "SERVICE", None)
    assert (created["kind"], created["source"]) == ("event.created", "MEMBER")


@pytest.mark.every_engine
async def test_pages_of_the_journal_show_each_occurrence_once(client: Client) -> None:
    """Over all shards, whatever the page's size; also while others write."""
    ada, max_ = client.member("ada"), client.member("max", Role.MODERATOR)
    posted = [(await post(ada, product=str(number)))["id"] for number in range(12)]
    await client.caught_up("the index of actors has all occurrences")
    for size in (1, 5, 100):
        for wanted in ({}, {"actor": node_id("User", "ada")}):
            found = await pages(max_, JOURNAL, size=size, **wanted)
            assert [occurrence["object"] for occurrence in found] == posted[::-1]
    first = await max_.ask(JOURNAL, first=5)
    await post(ada, product="later")
    rest = await max_.ask(JOURNAL, first=100, after=first["pageInfo"]["endCursor"])
    assert [occurrence["object"] for occurrence in first["nodes"] + rest["nodes"]] == posted[::-1]


async def test_a_repeated_request_is_recorded_once(client: Client) -> None:
    """The receipt and the occurrence are in the same transaction."""
    ada, max_ = client.member("ada"), client.member("max", Role.MODERATOR)
    given = {"product": "42", "language": "en", "rating": 4, "body": "Good.", "idempotencyKey": "once"}
    for _ in range(3):
        await ada.ask(POST_COMMENT, input=given)
    assert await kinds(max_) == ["comment.posted"]


async def test_what_was_refused_leaves_nothing(one_client: Client) -> None:
    """Neither for a wrong input nor for a missing role."""
    ada, max_ = one_client.member("ada"), one_client.member("max", Role.MODERATOR)
    comment = await post(ada)
    assert await ada.code(POST_COMMENT, input={"product": "42", "language": "en", "rating": 9, "body": "x"})
    assert await ada.code(MODERATE_COMMENT, input={"comment": comment["id"], "status": "REJECTED"}) == "NOT_ALLOWED"
    assert await kinds(max_) == ["comment.posted"]


async def test_votes_are_recorded_when_they_are_voided(client: Client) -> None:
    """Casting one is recorded only for a webhook that wants votes. Admins see the voter there, moderators the board."""
    editor = client.member("eve", Role.ADMIN)
    await add_contenders(editor, "A", "B")
    ada = client.member("ada")
    ballot = await ada.ask(DRAW_MATCHUP)
    await ada.ask(CAST_VOTE, token=ballot["token"], verdict="LEFT")
    assert set(await kinds(editor)) == {"contender.added"}
    await editor.ask(VOID_VOTER, input={"voter": ballot["voter"]})
    [voided, *_] = await pages(editor, JOURNAL)
    vote = node_id("Vote", f"main:1:{ballot['voter']}")
    assert (voided["kind"], voided["actor"], voided["object"]) == ("vote.voided", node_id("User", "eve"), vote)
    max_ = client.member("max", Role.MODERATOR)
    [shown, *_] = (await max_.ask(NAMED))["nodes"]
    assert (shown["kind"], shown["objectNode"]) == ("vote.voided", {"__typename": "Board", "title": "Main"})
    assert (await pages(max_, JOURNAL))[0]["object"] == node_id("Board", "main")
    refused = await max_.answer(JOURNAL, object=vote)
    assert refused["errors"][0]["extensions"]["code"] == "NOT_ALLOWED"


async def test_a_journal_that_is_off_writes_nothing(one_table: Table, settings: Settings) -> None:
    """A comment then costs what it would without a journal."""
    async with serving(settings.model_copy(update={"journal_days": 0})) as client:
        await post(client.member("ada"))
        await client.member("ada").ask(UPDATE_PROFILE, input={"name": "Ada"})
        assert await kinds(client.member("max", Role.MODERATOR)) == []
    assert not [item async for item in one_table.scan_items(consistent=True) if item["pk"]["S"].startswith("JOURNAL#")]


async def test_an_occurrence_expires_after_the_days_of_the_journal(one_table: Table, settings: Settings) -> None:
    """The engine removes it then. It fits into one write unit, in the table and in each index."""
    async with serving(settings.model_copy(update={"journal_days": 3})) as client:
        await post(client.member("ada"))
        now = client.services.clock().timestamp()
    [item] = [item async for item in one_table.scan_items(consistent=True) if item["pk"]["S"].startswith("JOURNAL#")]
    assert abs(int(item["ttl"]["N"]) - now - 3 * 86400) < 60
    assert item_size(item) < 1024


async def test_the_journal_is_for_moderators_and_takes_ids_only(one_client: Client) -> None:
    """Wrong ids and cursors are refused."""
    assert await one_client.code(JOURNAL) == "NOT_SIGNED_IN"
    assert await one_client.member("ada").code(JOURNAL) == "NOT_ALLOWED"
    max_ = one_client.member("max", Role.MODERATOR)
    for argument in ("actor", "object"):
        assert await max_.code(JOURNAL, **{argument: "ada"}) == "BAD_USER_INPUT"
    assert await max_.code(JOURNAL, after="forged") == "INVALID_CURSOR"
