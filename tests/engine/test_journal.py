"""The journal: what a change leaves, who may read it, exact pages, and what costs nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from datastore.changes.occurrences import (
    DELIVERY,
    OCCURRENCE,
    WEBHOOK,
    Kind,
    Occurrence,
    Webhook,
    new_delivery,
)
from datastore.dynamo import Table
from datastore.dynamo.attributes import item_size
from datastore.journal.reading import forget_member, read_occurrence
from datastore.values.ids import Ids
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id
from server.settings import Settings
from tests.client import Client, pages, serving
from tests.comments import post
from tests.leagues import ADMIT, REMOVE, create, join
from tests.queries import (
    CAST_VOTE,
    DRAW_MATCHUP,
    EDIT_COMMENT,
    MODERATE_COMMENT,
    POST_COMMENT,
    UPDATE_PROFILE,
    VOID_VOTER,
)
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


@pytest.mark.every_engine
async def test_pages_of_the_journal_show_each_occurrence_once(client: Client) -> None:
    """Over all shards, whatever the page's size; also while others write."""
    ada, max_ = client.member("ada"), client.member("max", Role.MODERATOR)
    posted = [(await post(ada, product=str(number)))["id"] for number in range(40)]
    await client.caught_up("the index of actors has all occurrences")
    for size in (1, 7, 100):
        for wanted in ({}, {"actor": node_id("User", "ada")}):
            found = await pages(max_, JOURNAL, size=size, **wanted)
            assert [occurrence["object"] for occurrence in found] == posted[::-1]
    first = await max_.ask(JOURNAL, first=10)
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
    """Casting one is recorded only for a webhook that wants votes."""
    editor = client.member("eve", Role.ADMIN)
    await add_contenders(editor, "A", "B")
    ada = client.member("ada")
    ballot = await ada.ask(DRAW_MATCHUP)
    await ada.ask(CAST_VOTE, token=ballot["token"], verdict="LEFT")
    assert set(await kinds(editor)) == {"contender.added"}
    await editor.ask(VOID_VOTER, input={"voter": ballot["voter"]})
    [voided, *_] = await pages(editor, JOURNAL)
    assert (voided["kind"], voided["actor"]) == ("vote.voided", node_id("User", "eve"))


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


@pytest.mark.lagging
async def test_a_forgotten_member_is_in_no_occurrence(client: Client) -> None:
    """What they did stays, without them; what names them as its object loses the name. Others stay as they were."""
    ada, max_ = client.member("ada"), client.member("max", Role.MODERATOR)
    comment = await post(ada)
    await post(client.member("bo"))
    await ada.ask(UPDATE_PROFILE, input={"name": "Ada"})
    await max_.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": "PUBLISHED"})
    await client.caught_up("the indexes have all occurrences of the member")
    table = client.services.table
    assert await forget_member(table, "ada") == 2
    await client.caught_up("the indexes name the member no more")
    assert await forget_member(table, "ada") == 0
    items = [item async for item in table.scan_items(consistent=True) if item["pk"]["S"].startswith("JOURNAL#")]
    assert not any("ada" in str(item) for item in items)
    found = {(one["kind"], one["actor"], one["object"]) for one in await pages(max_, JOURNAL)}
    assert ("profile.changed", None, None) in found
    assert ("comment.posted", None, comment["id"]) in found
    assert ("comment.moderated", node_id("User", "max"), comment["id"]) in found
    assert {actor for kind, actor, _ in found if kind == "comment.posted"} == {None, node_id("User", "bo")}


@pytest.mark.lagging
async def test_a_league_keeps_its_name_when_somebody_it_admitted_is_forgotten(client: Client) -> None:
    """It is not the member's own, so its moderators go on finding what its captains did."""
    bo, ada, max_ = client.member("bo"), client.member("ada"), client.member("max", Role.MODERATOR)
    league = (await create(bo, "APPROVAL"))["id"]
    await join(ada, league=league)
    somebody = {"league": league, "user": node_id("User", "ada")}
    await bo.ask(ADMIT, input=somebody)
    await bo.ask(REMOVE, input=somebody)
    await client.caught_up("the indexes have all occurrences of the member")
    assert await forget_member(client.services.table, "ada") == 3
    await client.caught_up("the indexes name the member no more")
    assert await forget_member(client.services.table, "ada") == 0
    found = [(one["kind"], one["actor"]) for one in await pages(max_, JOURNAL, object=league)]
    captain = node_id("User", "bo")
    assert found == [
        ("league.memberRemoved", captain),
        ("league.admitted", captain),
        ("league.joined", None),
        ("league.created", captain),
    ]


async def test_two_members_of_one_occurrence_may_be_forgotten_at_once(
    one_table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index shows the occurrence as it was: the second to be forgotten must not bring the first one back."""
    suspended = Occurrence(Ids().next(utc_now()), Kind.MEMBER_SUSPENDED, "User:max", "User:eve", "eve", note="Spam.")
    await one_table.write(OCCURRENCE.put(suspended))
    write, forgotten = one_table.write, 0

    async def interfere(wanted: Any) -> None:
        nonlocal forgotten
        if not forgotten:
            forgotten = await forget_member(Table(one_table.client, one_table.name), "eve")
        await write(wanted)

    monkeypatch.setattr(one_table, "write", interfere)
    assert await forget_member(one_table, "max") == forgotten == 1
    stored = await read_occurrence(one_table, suspended.ulid)
    assert stored is not None
    assert (stored.actor, stored.object, stored.about, stored.note) == (None, None, None, None)


@pytest.mark.every_engine
async def test_two_members_of_one_delivery_may_be_forgotten_at_once(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the occurrence while it waits: the second to be forgotten must not bring the first one back."""
    admitted = Occurrence(Ids().next(utc_now()), Kind.LEAGUE_ADMITTED, "User:max", "LeagueMember:l#eve", "eve")
    waiting = new_delivery("h1", admitted)
    await table.write(WEBHOOK.put(Webhook("h1", "https://8.8.8.8/", (), utc_now(), "whsec_AAAA")))
    await table.write(DELIVERY.put(waiting))
    write, forgotten = table.write, 0

    async def interfere(wanted: Any) -> None:
        nonlocal forgotten
        if not forgotten:
            forgotten = await forget_member(Table(table.client, table.name), "eve")
        await write(wanted)

    monkeypatch.setattr(table, "write", interfere)
    assert await forget_member(table, "max") == forgotten == 1
    stored = await table.get(DELIVERY.item_key(waiting), consistent=True)
    assert stored == replace(waiting, content=Occurrence(admitted.ulid, admitted.kind))


async def test_a_member_is_forgotten_in_what_another_release_wrote(table: Table) -> None:
    """The occurrence in a delivery may have attributes that this release does not know."""
    waiting = new_delivery("h1", Occurrence(Ids().next(utc_now()), Kind.PROFILE_CHANGED, "User:ada", "User:ada", "ada"))
    await table.write(WEBHOOK.put(Webhook("h1", "https://8.8.8.8/", (), utc_now(), "whsec_AAAA")))
    item = DELIVERY.item(waiting)
    item["content"] = {"M": {**item["content"]["M"], "later": {"S": "unknown"}}}
    await table.client.put_item(TableName=table.name, Item=item)
    async with asyncio.timeout(30):
        assert await forget_member(table, "ada") == 1
    assert "ada" not in str([item async for item in table.scan_items(consistent=True) if "content" in item])
