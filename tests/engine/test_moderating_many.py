"""One decision about many comments: each is decided by itself, and none twice."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from datastore.changes.occurrences import OCCURRENCE, Kind
from datastore.comments.pages import read_comments
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id, parse_node_key
from server.audit import find_suspects
from tests.client import Client
from tests.comments import post
from tests.intercepted import Send, beforehand, intercepted
from tests.queries import (
    COMMENT_STATISTICS,
    DELETE_COMMENT,
    EDIT_COMMENT,
    MODERATE_COMMENT,
    MODERATE_COMMENTS,
    REPORT_COMMENT,
)

REVISION = "query ($id: ID!) { comment(id: $id) { revision } }"
REASONS = "query ($id: ID!) { comment(id: $id) { status reportReasons moderationNote } }"


def moderator(client: Client) -> Client:
    return client.member("mod", Role.MODERATOR)


async def decide(client: Client, comments: list[str], status: str = "REJECTED", **more: Any) -> Any:
    given = {"comments": comments, "status": status, **more}
    return await moderator(client).ask(MODERATE_COMMENTS, input=given)


async def decisions(client: Client) -> list[str | None]:
    """The ground of each decision in the journal."""
    found = [one async for one in client.services.table.scan(OCCURRENCE, consistent=True)]
    return [one.ground for one in found if one.kind == Kind.COMMENT_MODERATED]


async def test_a_bad_id_does_not_spoil_the_others(client: Client) -> None:
    """A malformed one, one of something else, a deleted and an unknown one are named with the reason."""
    ada = client.member("ada")
    good = [(await post(ada, product=product))["id"] for product in ("a", "a", "b")]
    gone = (await post(ada))["id"]
    await ada.ask(DELETE_COMMENT, input={"comment": gone})
    unknown, member = node_id("Comment", "a#01ARZ3NDEKTSV4RRFFQ69G5FAV"), node_id("User", "ada")
    wrong = {"no id": "INVALID_INPUT", member: "INVALID_INPUT", gone: "NOT_FOUND", unknown: "NOT_FOUND"}
    answer = await decide(client, [good[0], *wrong, *good[1:], good[0]], note="Enough.")
    assert [comment["id"] for comment in answer["comments"]] == good
    assert {(one["status"], one["moderationNote"]) for one in answer["comments"]} == {("REJECTED", "Enough.")}
    assert {one["id"]: one["code"] for one in answer["refused"]} == wrong
    assert all(one["message"] for one in answer["refused"])


async def test_many_decisions_are_as_good_as_single_ones(client: Client) -> None:
    """Of a thread and its replies too: counts follow, reports are cleared, and each is in the journal once."""
    ada, bob = client.member("ada"), client.member("bob")
    root = await post(ada, product="p")
    replies = [await post(bob, product="p", rating=None, inReplyTo=root["id"]) for _ in range(5)]
    others = [await post(ada, product="p") for _ in range(5)]
    ids = [comment["id"] for comment in (root, *replies, *others)]
    await bob.ask(REPORT_COMMENT, input={"comment": others[0]["id"], "reason": "Rude."})
    answer = await decide(client, ids, ground="SPAM", note="Advertising.")
    assert (len(answer["comments"]), answer["refused"]) == (len(ids), [])
    assert (await client.ask(COMMENT_STATISTICS, product="p"))["total"] == 0
    reported = await moderator(client).ask(REASONS, id=others[0]["id"])
    assert reported == {"status": "REJECTED", "reportReasons": [], "moderationNote": "Advertising."}
    await decide(client, ids, "PUBLISHED")
    assert (await client.ask(COMMENT_STATISTICS, product="p"))["total"] == 6
    assert Counter(await decisions(client)) == {"SPAM": len(ids), None: len(ids)}
    await client.services.close()
    await client.caught_up("every index shows what was written")
    assert await find_suspects(client.services, "comments") == []


async def test_nothing_is_published_that_its_moderator_has_not_seen(client: Client) -> None:
    """The author changes what waits while a moderator reads it, or another moderator decides: the decision is refused.

    One that names no revision is about whatever is there.
    """
    ada, mod = client.member("ada"), moderator(client)
    ids = [(await post(ada, body="Well made."))["id"] for _ in range(3)]
    held = (await decide(client, ids, "PENDING"))["comments"]
    revisions = [(await mod.ask(REVISION, id=comment["id"]))["revision"] for comment in held]
    await ada.ask(EDIT_COMMENT, input={"comment": ids[1], "body": "Buy at evil.example/now"})
    await decide(client, ids[2:], "REJECTED", revisions=revisions[2:])
    answer = await decide(client, ids, "PUBLISHED", revisions=revisions)
    assert [comment["id"] for comment in answer["comments"]] == ids[:1]
    assert {one["id"]: one["code"] for one in answer["refused"]} == dict.fromkeys(ids[1:], "CONFLICT")
    one = {"comment": ids[1], "status": "PUBLISHED"}
    refused = await mod.ask(MODERATE_COMMENT, input={**one, "revision": revisions[1]})
    assert (refused["code"], refused["path"]) == ("CONFLICT", ["input", "revision"])
    assert (await mod.ask(MODERATE_COMMENT, input=one))["comment"]["status"] == "PUBLISHED"
    few = await decide(client, ids, revisions=revisions[:1])
    assert (few["code"], few["path"]) == ("INVALID_INPUT", ["input", "revisions"])


async def test_a_receipt_shows_a_former_moderator_no_hidden_comment(client: Client) -> None:
    """They might repeat an old decision for days, and read what others hide or change meanwhile."""
    ids = await comments_of_products(client, 1)
    given = {"comments": ids, "status": "REJECTED", "idempotencyKey": "once"}
    for mod, shown in ((moderator(client), ids), (client.member("mod"), [])):
        answer = await mod.ask(MODERATE_COMMENTS, input=given)
        assert ([comment["id"] for comment in answer["comments"]], answer["refused"]) == (shown, [])


async def test_a_comment_that_is_moved_between_two_reads_is_not_gone(one_client: Client) -> None:
    """Of many comments each is read in three places, and a batch may end between those of one."""
    (id_,) = await comments_of_products(one_client, 1)
    await decide(one_client, [id_])
    product, _, ulid = parse_node_key("Comment", id_).rpartition("#")
    keys = [*((product, f"none{number}") for number in range(33)), (product, ulid)]

    async def publish() -> None:
        await decide(one_client, [id_], "PUBLISHED")

    with beforehand(one_client.services.table, publish, "batch_get_item", about=f"HELD#{ulid}"):
        *_, found = await read_comments(one_client.services.table, keys)
    assert found is not None
    assert found.ulid == ulid


async def comments_of_products(client: Client, count: int) -> list[str]:
    ada = client.member("ada")
    return [(await post(ada, product=f"p{number}"))["id"] for number in range(count)]


@contextmanager
def failing_after(most: int, client: Client) -> Iterator[None]:
    """The table fails after so many transactions."""
    written = 0

    async def call(_: str, send: Send) -> Any:
        nonlocal written
        written += 1
        if written > most:
            raise TimeoutError
        return await send()

    with intercepted(client.services.table, ("transact_write_items",), call):
        yield


async def test_a_repeat_of_an_interrupted_request_decides_only_what_is_left(impatient: Client) -> None:
    """The table fails in the middle, so the request is UNAVAILABLE; with its key it can be sent again."""
    ids = await comments_of_products(impatient, 6)
    given: dict[str, Any] = {"idempotencyKey": "k", "revisions": [0] * len(ids)}
    with failing_after(3, impatient):
        failed = await decide(impatient, ids, **given)
    assert failed["code"] == "UNAVAILABLE"
    first = await decide(impatient, ids, **given)
    assert [comment["id"] for comment in first["comments"]] == ids
    assert await decide(impatient, ids, **given) == first
    assert len(await decisions(impatient)) == len(ids)
    assert (await decide(impatient, ids[:1], idempotencyKey="k"))["code"] == "IDEMPOTENCY_MISMATCH"


async def test_another_decision_is_not_taken_for_an_interrupted_one(impatient: Client) -> None:
    """It has the key of one that got no answer, so it is carried out; a repeat of that one is then refused."""
    ids = await comments_of_products(impatient, 6)
    with failing_after(3, impatient):
        assert (await decide(impatient, ids, "REJECTED", idempotencyKey="k"))["code"] == "UNAVAILABLE"
    other = await decide(impatient, ids, "PENDING", idempotencyKey="k")
    assert [(comment["id"], comment["status"]) for comment in other["comments"]] == [(id_, "PENDING") for id_ in ids]
    assert (await decide(impatient, ids, "REJECTED", idempotencyKey="k"))["code"] == "IDEMPOTENCY_MISMATCH"


@pytest.mark.parametrize("ids", [[], [f"i{number}" for number in range(101)]])
async def test_one_to_a_hundred_comments_are_decided_at_once(one_client: Client, ids: list[str]) -> None:
    """Nothing is read for more."""
    refused = await decide(one_client, ids)
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "comments"])


async def test_an_operation_decides_few_times(one_client: Client) -> None:
    """What many decisions take is counted before the first."""
    field = "moderateComments(input: {comments: [], status: REJECTED}) { __typename }"
    fields = " ".join(f"f{number}: {field}" for number in range(3))
    answer = await moderator(one_client).answer(f"mutation {{ {fields} }}")
    assert answer["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"
