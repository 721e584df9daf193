"""Pointers: the lists of a member's comments and of the site's latest, and what keeps them as the comments are."""

from random import Random
from typing import Any

import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.changes import CommentChange, change_comment
from datastore.comments.records import POINTER, Comment, Pointer, Status, pointer_writes
from datastore.dynamo import Table, metered
from datastore.values.ids import Ids
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id
from server.audit import find_suspects
from tests.audits import breaches_in
from tests.client import Client, pages
from tests.comments import post
from tests.intercepted import beforehand
from tests.queries import DELETE_COMMENT, EDIT_COMMENT, MODERATE_COMMENT

JOURNAL = "query ($object: ID) { journal(object: $object) { nodes { kind actor } } }"

OF_MEMBER = """query ($user: ID!, $first: Int, $after: String, $last: Int, $before: String) {
  user(id: $user) { comments(first: $first, after: $after, last: $last, before: $before) {
    totalCount nodes { id status } edges { cursor }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }"""
LATEST = """query ($status: CommentStatus, $first: Int, $after: String) {
  latestComments(status: $status, first: $first, after: $after) {
    nodes { id status } pageInfo { hasNextPage endCursor } } }"""


def ids(nodes: list[dict[str, Any]]) -> list[str]:
    return [node["id"] for node in nodes]


async def of_member(client: Client, user: str, **window: Any) -> Any:
    return (await client.ask(OF_MEMBER, user=node_id("User", user), **window))["comments"]


@pytest.mark.lagging
async def test_a_member_s_comments_are_listed_in_both_directions(client: Client) -> None:
    """Newest first, on every product; held ones for the member and moderators alone; what is deleted is gone."""
    ada, moderator = client.member("ada"), client.member("mia", Role.MODERATOR)
    posted = [(await post(ada, product=f"p{number % 3}"))["id"] for number in range(7)]
    await post(client.member("bob"))
    await ada.ask(DELETE_COMMENT, input={"comment": posted[2]})
    await moderator.ask(MODERATE_COMMENT, input={"comment": posted[4], "status": "REJECTED"})
    await ada.ask(EDIT_COMMENT, input={"comment": posted[5], "rating": 1, "language": "de"})
    every = [posted[place] for place in (6, 5, 4, 3, 1, 0)]
    shown = [one for one in every if one != posted[4]]
    for viewer, expected in ((ada, every), (moderator, every), (client.member("bob"), shown), (client, shown)):
        page = await of_member(viewer, "ada")
        assert (ids(page["nodes"]), page["totalCount"]) == (expected, len(expected))
        assert ids(await pages(viewer, OF_MEMBER, size=2, user=node_id("User", "ada"))) == expected
        last = await of_member(viewer, "ada", last=2)
        assert ids(last["nodes"]) == expected[-2:]
        before = await of_member(viewer, "ada", last=2, before=last["pageInfo"]["startCursor"])
        assert ids(before["nodes"]) == expected[-4:-2]
    await moderator.ask(MODERATE_COMMENT, input={"comment": posted[4], "status": "PUBLISHED"})
    assert ids((await of_member(client, "ada"))["nodes"]) == every
    await client.caught_up("the index lists what happened to the deleted comment")
    assert await breaches_in(client.services) == []


@pytest.mark.lagging
async def test_a_cursor_of_another_member_or_another_viewer_s_list_is_refused(client: Client) -> None:
    """The list with held comments and the one without them are two lists."""
    ada = client.member("ada")
    for _ in range(2):
        await post(ada)
    await post(client.member("bob"))
    cursor = (await of_member(ada, "ada", first=1))["pageInfo"]["endCursor"]
    assert await ada.code(OF_MEMBER, user=node_id("User", "bob"), after=cursor) == "INVALID_CURSOR"
    assert await client.code(OF_MEMBER, user=node_id("User", "ada"), after=cursor) == "INVALID_CURSOR"


@pytest.mark.lagging
async def test_moderators_see_the_latest_comments_of_every_product(client: Client) -> None:
    """Newest first, all or those of a status; a comment that exists during a traversal appears exactly once."""
    moderator, chance = client.member("mia", Role.MODERATOR), Random(5)
    posted = [(await post(client.member(f"m{number % 4}"), product=f"p{number % 5}"))["id"] for number in range(30)]
    status = dict.fromkeys(posted, "PUBLISHED")
    for comment in chance.sample(posted, 12):
        status[comment] = chance.choice(["PENDING", "REJECTED"])
        await moderator.ask(MODERATE_COMMENT, input={"comment": comment, "status": status[comment]})
    await client.caught_up("the latest comments list every comment, under its status")
    newest = posted[::-1]
    assert ids(await pages(moderator, LATEST, size=7)) == newest
    for wanted in ("PUBLISHED", "PENDING", "REJECTED"):
        expected = [comment for comment in newest if status[comment] == wanted]
        found = await pages(moderator, LATEST, size=3, status=wanted)
        assert [(node["id"], node["status"]) for node in found] == [(comment, wanted) for comment in expected]
    assert await client.member("ada").code(LATEST) == "NOT_ALLOWED"
    assert await client.code(LATEST) == "NOT_SIGNED_IN"


async def test_a_page_whose_comments_are_all_gone_leads_on(one_client: Client) -> None:
    """As an index that is behind shows them: the page is empty, and its cursor leads to the rest."""
    moderator, table = one_client.member("mia", Role.MODERATOR), one_client.services.table
    kept = (await post(one_client.member("ada")))["id"]
    for _ in range(3):
        comment = (await post(one_client.member("ada")))["id"]
        await moderator.ask(DELETE_COMMENT, input={"comment": comment})
    for ulid in Ids().next(utc_now()), Ids().next(utc_now()), Ids().next(utc_now()):
        await table.write(POINTER.put(Pointer("ada", ulid, "gone")))
    page = await moderator.ask(LATEST, first=2)
    assert page["nodes"] == []
    assert page["pageInfo"]["hasNextPage"]
    assert ids(await pages(moderator, LATEST, size=2)) == [kept]


async def test_a_held_comment_that_is_deleted_while_a_page_is_read_is_left_out(one_client: Client) -> None:
    """Its stub stands where it is looked for if a moderator has published it."""
    ada, moderator = one_client.member("ada"), one_client.member("mia", Role.MODERATOR)
    comment = (await post(ada))["id"]
    await post(one_client.member("bob"), rating=None, inReplyTo=comment)
    await moderator.ask(MODERATE_COMMENT, input={"comment": comment, "status": "REJECTED"})

    async def delete() -> None:
        await moderator.ask(DELETE_COMMENT, input={"comment": comment})

    with beforehand(one_client.services.table, delete, "batch_get_item", about="HELD#") as deleted:
        assert (await of_member(ada, "ada"))["nodes"] == []
    assert deleted


async def test_a_comment_costs_its_pointer_more(one_table: Table) -> None:
    """Three write units at most: two in the transaction, one in the index; an edit costs nothing more."""
    table = one_table  # the other engines count no units of transactions
    comment = Comment("42", Ids().next(utc_now()), "en", 5, "x" * 300, "ada")
    edited = Comment("42", comment.ulid, "en", 4, "y" * 300, "ada", revision=1)
    unit = UnitOfWork.unkeyed(utc_now())
    with metered() as bare:
        await table.transact(*CommentChange(None, comment).writes()[:-1])
    await table.transact(*CommentChange(comment, None).writes())
    with metered() as spent:
        await change_comment(table, unit, None, CommentChange(None, comment))
    assert 2 <= spent.write_units - bare.write_units <= 3
    assert pointer_writes(comment, edited) == []


async def _pointers(table: Table) -> set[Pointer]:
    return {pointer async for pointer in table.scan(POINTER, consistent=True)}


async def test_the_audit_finds_wrong_pointers(one_client: Client) -> None:
    """One that is missing, and one that says something else."""
    comments = [await post(one_client.member("ada")) for _ in range(3)]
    table = one_client.services.table
    pointers = sorted(await _pointers(table), key=lambda pointer: pointer.ulid)
    assert len(pointers) == len(comments)
    assert await find_suspects(one_client.services, "comments") == []
    await table.write(POINTER.delete(POINTER.item_key(pointers[0])))
    assert "pointers of member ada" in " ".join(await find_suspects(one_client.services, "comments"))
    await table.write(POINTER.put(Pointer("ada", pointers[0].ulid, pointers[0].product, Status.PENDING)))
    assert "pointers of member ada" in " ".join(await find_suspects(one_client.services, "comments"))
