"""Comments without a rating, replies to comments, and the stubs of comments that are gone."""

import asyncio
import io
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import orjson
import pytest

from datastore.comments.records import COMMENT
from datastore.dynamo import Window
from resolvers.comments.pages import comment_posted
from resolvers.comments.visibility import replies
from resolvers.requests.context import Context, Kind, Role, Viewer
from resolvers.values.node_ids import node_id, parse_node_key
from server import Failed
from server.audit import find_suspects
from server.commands.exports import write_comments
from tests.client import Client, pages
from tests.comments import author_id, post
from tests.dependent_calls import dependent_calls
from tests.erasing import ERASE, items_naming
from tests.intercepted import Send, intercepted
from tests.jobs import ended
from tests.queries import (
    COMMENTS_PAGE,
    DELETE_COMMENT,
    EDIT_COMMENT,
    MODERATE_COMMENT,
    POST_COMMENT,
    REPORT_COMMENT,
    TAKE_BACK,
)
from tests.transfers import import_lines
from tests.waiting import LONGEST

THREAD = """id body rating title removed replyCount viewerCanEdit author { id name joinedAt } thread
  inReplyTo { id body removed }"""
PAGE = f"""query ($product: ID! = "42", $first: Int = 10) {{
  comments(product: $product, first: $first) {{
    totalCount nodes {{ {THREAD} replies(first: 12) {{ totalCount nodes {{ {THREAD} }} }} }} }} }}"""
ONE = f"query ($id: ID!) {{ comment(id: $id) {{ {THREAD} status }} }}"
REPLIES = """query ($id: ID!, $first: Int, $after: String) { comment(id: $id) {
  replies(first: $first, after: $after) { nodes { body } pageInfo { hasNextPage endCursor } } } }"""
NUMBERS = """query ($language: String) { commentStatistics(product: "42", language: $language) {
  total rated replies average histogram { rating count } languages { language count } } }"""
LATEST = "{ latestComments(first: 50) { nodes { body } } }"
OWN = "{ viewer { comments(first: 50) { nodes { body } } } }"


async def reply(member: Client, to: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    """Posts a reply; returns it as the answer shows it."""
    answered = to if isinstance(to, str) else to["id"]
    return await post(member, **{"rating": None, "inReplyTo": answered, "body": "I agree.", **more})


async def moderate(client: Client, comment: dict[str, Any], status: str) -> None:
    moderator = client.member("mod", Role.MODERATOR)
    answer = await moderator.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": status})
    assert answer["comment"]["status"] == status


async def delete(member: Client, comment: dict[str, Any]) -> None:
    assert "deletedId" in await member.ask(DELETE_COMMENT, input={"comment": comment["id"]})


async def shown(client: Client, **variables: Any) -> Any:
    await client.caught_up("every index shows what was written")
    return await client.ask(PAGE, **variables)


async def require_audited(client: Client) -> None:
    await client.services.close()
    await client.caught_up("every index shows what was written")
    assert await find_suspects(client.services, "comments") == []


def bodies(nodes: Sequence[dict[str, Any]]) -> list[str]:
    return [node["body"] for node in nodes]


# ── without a rating ──


async def test_a_comment_needs_no_rating(client: Client) -> None:
    """It is on pages without `ratings` only: all five are a filter too. The average is that of the rated ones."""
    ada = client.member("ada")
    for rating, language in ((5, "en"), (None, "en"), (2, "de"), (None, "de")):
        await post(ada, rating=rating, language=language, body=f"{rating} {language}")
    await client.caught_up("every index shows what was written")
    for asked, expected in (
        ({}, ["None de", "2 de", "None en", "5 en"]),
        ({"ratings": [1, 2, 3, 4, 5]}, ["2 de", "5 en"]),
        ({"ratings": [5, 1]}, ["5 en"]),
        ({"languages": ["de"]}, ["None de", "2 de"]),
        ({"languages": ["de", "en"], "ratings": [1, 2, 3, 4, 5]}, ["2 de", "5 en"]),
        ({"languages": ["en"], "ratings": [4]}, []),
    ):
        page = await client.ask(COMMENTS_PAGE, product="42", **asked)
        assert [edge["node"]["body"] for edge in page["edges"]] == expected
        assert page["totalCount"] == len(expected)
    numbers = await client.ask(NUMBERS)
    assert (numbers["total"], numbers["rated"], numbers["replies"], numbers["average"]) == (4, 2, 0, 3.5)
    assert [row["count"] for row in numbers["histogram"]] == [1, 0, 0, 1, 0]
    assert numbers["languages"] == [{"language": "de", "count": 2}, {"language": "en", "count": 2}]
    await require_audited(client)


async def test_an_edit_takes_the_stars_away_or_keeps_them(client: Client) -> None:
    """Null takes them away, leaving `rating` out keeps them, and stars can be given later."""
    ada = client.member("ada")
    posted = await post(ada, rating=5)
    for changes, rating, average in (
        ({"body": "Hm."}, 5, 5.0),
        ({"rating": None}, None, None),
        ({"body": "Well."}, None, None),
        ({"rating": 2}, 2, 2.0),
    ):
        edited = await ada.ask(EDIT_COMMENT, input={"comment": posted["id"], **changes})
        assert edited["comment"]["rating"] == rating
        assert (await client.ask(NUMBERS))["average"] == average
    await require_audited(client)


# ── replies ──


async def test_replies_stand_in_the_thread_of_the_comment(client: Client) -> None:
    """Oldest first; a reply to a reply stands in the same thread and names what it answers. None is on a page."""
    ada, bob = client.member("ada"), client.member("bob")
    question, other = await post(ada, rating=None, body="Which size?"), await post(bob, body="Fine.")
    first = await reply(bob, question, body="Large.", language="de")
    second = await reply(ada, first, body="Thanks!")
    page = await shown(client)
    assert bodies(page["nodes"]) == ["Fine.", "Which size?"]
    assert [node["replyCount"] for node in page["nodes"]] == [0, 2]
    thread = page["nodes"][1]["replies"]
    assert thread["totalCount"] == 2
    assert [node["id"] for node in thread["nodes"]] == [first["id"], second["id"]]
    assert [node["inReplyTo"]["body"] for node in thread["nodes"]] == ["Which size?", "Large."]
    assert [node["replyCount"] for node in thread["nodes"]] == [0, 0]
    assert page["nodes"][1]["inReplyTo"] is None
    assert page["totalCount"] == 2
    numbers = await client.ask(NUMBERS)
    assert (numbers["total"], numbers["replies"], numbers["rated"]) == (2, 2, 1)
    assert (await client.ask(NUMBERS, language="de"))["replies"] == 1
    assert (await client.ask(REPLIES, id=first["id"]))["replies"]["nodes"] == []
    assert (await client.ask(ONE, id=second["id"]))["inReplyTo"]["id"] == first["id"]
    mod = client.member("mod", Role.MODERATOR)
    assert bodies((await mod.ask(LATEST))["nodes"]) == ["Thanks!", "Large.", "Fine.", "Which size?"]
    assert bodies((await bob.ask(OWN))["comments"]["nodes"]) == ["Large.", "Fine."]
    assert (await client.ask(ONE, id=other["id"]))["replyCount"] == 0
    await require_audited(client)


async def test_a_reply_is_edited_reported_and_held_like_a_comment(client: Client) -> None:
    """It gets no rating by an edit; while it is held it is not counted, and seen by its author and moderators only."""
    ada, bob, mod = client.member("ada"), client.member("bob"), client.member("mod", Role.MODERATOR)
    question = await post(ada, rating=None)
    answer = await reply(bob, question)
    edited = await bob.ask(EDIT_COMMENT, input={"comment": answer["id"], "body": "Changed.", "rating": None})
    assert edited["comment"]["body"] == "Changed."
    refused = await bob.ask(EDIT_COMMENT, input={"comment": answer["id"], "rating": 5})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "rating"])
    assert "comment" in await ada.ask(REPORT_COMMENT, input={"comment": answer["id"], "reason": "Rude."})
    await client.caught_up("the queue shows the report")
    queue = "{ moderationQueue(status: %s) { waiting nodes { id body reportReasons } } }"
    assert await mod.ask(queue % "PUBLISHED") == {
        "waiting": 1,
        "nodes": [{"id": answer["id"], "body": "Changed.", "reportReasons": ["Rude."]}],
    }
    await moderate(client, answer, "REJECTED")
    for viewer, nodes in ((client, []), (ada, []), (bob, ["Changed."])):
        (node,) = (await shown(viewer))["nodes"]
        thread = node["replies"]
        assert (node["replyCount"], thread["totalCount"], bodies(thread["nodes"])) == (0, 0, nodes)
    assert (await client.ask(NUMBERS))["replies"] == 0
    assert await client.ask(ONE, id=answer["id"]) is None
    assert (await bob.ask(ONE, id=answer["id"]))["inReplyTo"]["id"] == question["id"]
    assert bodies((await mod.ask(queue % "REJECTED"))["nodes"]) == ["Changed."]
    await moderate(client, answer, "PUBLISHED")
    assert bodies((await shown(client))["nodes"][0]["replies"]["nodes"]) == ["Changed."]
    await require_audited(client)


async def test_what_cannot_be_answered_is_refused(client: Client) -> None:
    """Comments that are gone, held, on another product, or none at all; and a reply has no rating."""
    ada, bob = client.member("ada"), client.member("bob")
    there, gone, held, elsewhere = [await post(ada, body=text) for text in ("a", "b", "c")] + [await post(ada, "43")]
    await delete(ada, gone)
    await moderate(client, held, "REJECTED")
    stub = await post(ada)
    await reply(bob, stub)
    await delete(ada, stub)
    given = {"product": "42", "language": "en", "body": "No."}
    for member, answered, more, code, path in (
        (bob, gone["id"], {}, "NOT_FOUND", "inReplyTo"),
        (bob, stub["id"], {}, "NOT_FOUND", "inReplyTo"),
        (bob, held["id"], {}, "NOT_FOUND", "inReplyTo"),
        (ada, held["id"], {}, "CONFLICT", "inReplyTo"),
        (bob, elsewhere["id"], {}, "INVALID_INPUT", "inReplyTo"),
        (bob, there["id"], {"rating": 5}, "INVALID_INPUT", "rating"),
        (bob, node_id("User", "ada"), {}, "INVALID_INPUT", "inReplyTo"),
        (bob, node_id("Comment", "42#x"), {}, "NOT_FOUND", "inReplyTo"),
    ):
        refused = await member.ask(POST_COMMENT, input={**given, "inReplyTo": answered, **more})
        assert (refused["code"], refused["path"]) == (code, ["input", path]), refused
    await require_audited(client)


async def test_a_reply_to_a_removed_reply_answers_nothing(client: Client) -> None:
    """It stays in its thread, and says in which; what it answered is null, whether that was deleted or rejected."""
    ada, bob = client.member("ada"), client.member("bob")
    question = await post(ada, rating=None)
    deleted, rejected = await reply(bob, question), await reply(bob, question)
    for answered in (deleted, rejected):
        await reply(ada, answered, body="Why?")
    await delete(bob, deleted)
    await moderate(client, rejected, "REJECTED")
    (top,) = (await shown(client))["nodes"]
    thread = top["replies"]
    assert [(node["body"], node["inReplyTo"]) for node in thread["nodes"]] == [("Why?", None)] * 2
    assert (top["thread"], {node["thread"] for node in thread["nodes"]}) == (None, {question["id"]})
    assert thread["totalCount"] == 2
    await require_audited(client)


async def test_a_long_thread_has_pages(one_client: Client) -> None:
    """Its replies are posted at once; each is there exactly once, and they are counted."""
    ada = one_client.member("ada")
    question = await post(ada, rating=None)
    members = [one_client.member(f"m{number}") for number in range(8)]

    async def talk(member: Client, name: str) -> None:
        for number in range(5):
            await reply(member, question, body=f"{name} {number}")

    await asyncio.gather(*(talk(member, f"{number}") for number, member in enumerate(members)))
    found = await pages(one_client, REPLIES, size=7, id=question["id"])
    assert sorted(bodies(found)) == sorted(f"{name} {number}" for name in range(8) for number in range(5))
    assert (await shown(one_client))["nodes"][0]["replyCount"] == 40
    await require_audited(one_client)


async def test_a_repeated_request_posts_one_reply(one_client: Client) -> None:
    """Ten at once with one idempotency key, also while the thread begins."""
    ada, bob = one_client.member("ada"), one_client.member("bob")
    question = await post(ada, rating=None)
    answers = await asyncio.gather(*(reply(bob, question, idempotencyKey="one") for _ in range(10)))
    assert len({answer["id"] for answer in answers}) == 1
    assert (await shown(one_client))["nodes"][0]["replyCount"] == 1
    await require_audited(one_client)


async def test_threads_cost_nothing_where_there_are_none(one_client: Client) -> None:
    """A page waits for two calls, its threads' included; without threads it makes none for them."""
    ada = one_client.member("ada")
    one_client.keep_what_it_read()
    table, query = one_client.services.table, "{ comments(product: 42) { nodes { body replyCount author { name } } } }"
    quiet = [await post(ada, body=f"{number}") for number in range(3)]
    for expected, answered in ((1, None), (2, quiet[0])):
        if answered is not None:
            await reply(ada, answered)
        page, rounds = await dependent_calls(table, one_client.ask(query))
        assert [node["replyCount"] for node in page["nodes"]] == [0, 0, 1 if answered else 0]
        assert rounds == expected


async def test_a_reply_waits_for_few_calls(one_client: Client) -> None:
    """The comment, its thread, the transaction; the first reply also waits for the comment that it is to mark."""
    ada, table = one_client.member("ada"), one_client.services.table
    question = await post(ada)
    one_client.services.journal.confirm(inf)  # a mutation would read webhooks that were known ten seconds ago
    for expected in (4, 3):
        _, rounds = await dependent_calls(table, reply(ada, question))
        assert rounds == expected


async def test_a_new_reply_comes_over_the_stream(one_client: Client) -> None:
    """As the comments of its product do; a stub does not."""
    ada, bob = one_client.member("ada"), one_client.member("bob")
    question = await post(ada, rating=None, body="Which size?")
    ctx = Context(one_client.services, Viewer("v", Kind.VISITOR))
    async with aclosing(comment_posted(ctx, product="42", after=question["id"])) as stream, asyncio.timeout(LONGEST):
        await reply(bob, question, body="Large.")
        await delete(ada, question)
        await post(ada, body="Never mind.")
        assert [(await anext(stream)).body for _ in range(2)] == ["Large.", "Never mind."]


async def test_what_arrives_reads_nothing_for_each_who_listens(one_client: Client) -> None:
    """Pages show members their own held replies; a thousand listeners would read a thousand times for each comment."""
    services, made = one_client.services, list[str]()
    ctx = Context(services, Viewer("listener", Kind.MEMBER))

    async def call(name: str, send: Send) -> Any:
        made.append(name)
        return await send()

    before = await post(one_client.member("ada"), body="Old.")
    async with aclosing(comment_posted(ctx, product="42", after=before["id"])) as stream, asyncio.timeout(LONGEST):
        await post(one_client.member("ada"), body="New.")
        comment = await anext(stream)
        with intercepted(services.table, ("query", "batch_get_item"), call):
            page = await replies(ctx, comment, window=Window(3, services.seal))
    assert (list(page.nodes), made) == ([], [])


async def test_an_own_held_reply_follows_the_last_one(one_client: Client) -> None:
    """On the thread's last page only, also of a comment that has no other replies; of several the newest."""
    ada, bob, services = one_client.member("ada"), one_client.member("bob"), one_client.services
    question, other = await post(ada, rating=None), await post(ada, rating=None)
    services.policy = replace(services.policy, premoderation=True)
    await reply(bob, question, body="Waits.")
    for number in range(3):
        await reply(bob, other, body=f"Alone {number}.")
    services.policy = replace(services.policy, premoderation=False)
    for number in range(2):
        await reply(ada, question, body=f"{number}")
    await one_client.caught_up("every index shows what was written")
    latest = (await bob.ask(REPLIES, id=other["id"], first=2))["replies"]["nodes"]
    assert bodies(latest) == ["Alone 1.", "Alone 2."]
    for asked, expected in (({"first": 1}, ["0"]), ({"first": 2}, ["0", "1", "Waits."])):
        assert bodies((await bob.ask(REPLIES, id=question["id"], **asked))["replies"]["nodes"]) == expected
    assert [bodies(node["replies"]["nodes"]) for node in (await shown(bob))["nodes"]] == [
        ["Alone 0.", "Alone 1.", "Alone 2."], ["0", "1", "Waits."],
    ]  # fmt: skip


# ── stubs ──


async def test_a_deleted_comment_with_replies_leaves_a_stub(client: Client) -> None:
    """It has nothing of the comment, is counted nowhere, and goes with the last reply."""
    ada, bob, mod = client.member("ada"), client.member("bob"), client.member("mod", Role.MODERATOR)
    given: dict[str, Any] = {"rating": 4, "title": "A title", "body": "A secret text.", "idempotencyKey": "once"}
    question = await post(ada, **given)
    answers = [await reply(bob, question, body=f"{number}") for number in range(2)]
    await delete(ada, question)
    page = await shown(client)
    (stub,) = page["nodes"]
    assert page["totalCount"] == 0
    assert (stub["id"], stub["removed"], stub["body"], stub["title"]) == (question["id"], True, "", None)
    assert (stub["rating"], stub["author"]["name"], stub["viewerCanEdit"]) == (None, "Former member", False)
    assert stub["author"]["id"] != node_id("User", "ada")
    assert stub["author"]["joinedAt"] == "1970-01-01T00:00:00.000Z"
    assert bodies(stub["replies"]["nodes"]) == ["0", "1"]
    assert [node["inReplyTo"]["removed"] for node in stub["replies"]["nodes"]] == [True, True]
    assert (await client.ask(ONE, id=question["id"]))["author"] == stub["author"]
    numbers = await client.ask(NUMBERS)
    assert (numbers["total"], numbers["rated"], numbers["replies"], numbers["languages"]) == (0, 0, 2, [])
    for filtered in ({"languages": ["en"]}, {"ratings": [1, 2, 3, 4, 5]}):
        assert (await client.ask(COMMENTS_PAGE, product="42", **filtered))["edges"] == []
    assert await client.ask('{ comments(product: "42", order: HELPFUL, first: 9) { nodes { id } } }') == {"nodes": []}
    assert await items_naming(client.services.table, "A secret text.", "A title") == []
    assert await ada.code(POST_COMMENT, input={"product": "42", "language": "en", **given}) == "NOT_FOUND"
    for refused in (
        await mod.ask(MODERATE_COMMENT, input={"comment": question["id"], "status": "REJECTED"}),
        await bob.ask(REPORT_COMMENT, input={"comment": question["id"], "reason": "Gone."}),
    ):
        assert refused["code"] == "NOT_FOUND"
    await delete(mod, question)
    await require_audited(client)
    await reply(ada, answers[0], body="2")  # the thread goes on
    for number, answer in enumerate((await shown(client))["nodes"][0]["replies"]["nodes"]):
        assert len((await shown(client))["nodes"]) == 1, number
        await delete(mod, answer)
    assert (await shown(client))["nodes"] == []
    assert await client.ask(ONE, id=question["id"]) is None
    await require_audited(client)


async def test_others_see_a_stub_of_a_rejected_comment(client: Client) -> None:
    """Its author and moderators see the text, on the page too, and moderators may publish it again."""
    ada, bob, mod = client.member("ada"), client.member("bob"), client.member("mod", Role.MODERATOR)
    question = await post(ada, rating=4, body="Hm.")
    await reply(bob, question)
    await moderate(client, question, "REJECTED")
    for viewer, text in ((client, ""), (bob, ""), (ada, "Hm."), (mod, "Hm.")):
        (node,) = (await shown(viewer))["nodes"]
        assert (node["id"], node["body"], node["removed"], node["replyCount"]) == (question["id"], text, text == "", 1)
        assert (await viewer.ask(ONE, id=question["id"]))["body"] == text
        assert node["replies"]["nodes"][0]["inReplyTo"]["body"] == text
    assert (await client.ask(NUMBERS))["total"] == 0
    await moderate(client, question, "PENDING")
    await require_audited(client)
    await moderate(client, question, "PUBLISHED")
    page = await shown(client)
    assert (page["totalCount"], bodies(page["nodes"]), page["nodes"][0]["replyCount"]) == (1, ["Hm."], 1)
    await require_audited(client)


async def test_a_rejected_comment_loses_its_stub_with_the_last_reply(client: Client) -> None:
    """Nothing is left of it for others, and it can be published, or deleted, all the same."""
    ada, bob = client.member("ada"), client.member("bob")
    for then in ("PUBLISHED", "deleted"):
        question = await post(ada, body=then)
        answer = await reply(bob, question)
        await moderate(client, question, "REJECTED")
        await delete(bob, answer)
        assert (await shown(client))["nodes"] == []
        assert await client.ask(ONE, id=question["id"]) is None
        await require_audited(client)
        if then == "deleted":
            await delete(ada, question)
        else:
            await moderate(client, question, then)
            await reply(bob, question)
            await moderate(client, question, "REJECTED")
            await delete(ada, question)
            (stub,) = (await shown(client))["nodes"]
            await delete(bob, stub["replies"]["nodes"][0])
        await require_audited(client)


async def test_a_held_reply_is_published_under_a_comment_that_is_gone(client: Client) -> None:
    """The comment was deleted, or rejected, while the reply waited: a stub appears over it."""
    services = client.services
    ada, bob = client.member("ada"), client.member("bob")
    for hide in ("deleted", "REJECTED"):
        question = await post(ada)
        services.policy = replace(services.policy, premoderation=True)
        waiting = await reply(bob, question)
        assert waiting["status"] == "PENDING"
        services.policy = replace(services.policy, premoderation=False)
        await (delete(ada, question) if hide == "deleted" else moderate(client, question, hide))
        assert (await shown(client))["nodes"] == []
        await moderate(client, waiting, "PUBLISHED")
        (stub,) = (await shown(client))["nodes"]
        assert (stub["removed"], stub["replyCount"]) == (True, 1)
        await require_audited(client)
        if hide == "REJECTED":
            await moderate(client, question, "PUBLISHED")
            assert [node["replyCount"] for node in (await shown(client))["nodes"]] == [1]
            await require_audited(client)
            await delete(ada, question)
        await delete(bob, waiting)
        assert (await shown(client))["nodes"] == []
        await require_audited(client)


async def test_a_thread_is_right_whoever_is_first(one_client: Client) -> None:
    """Replies are posted and deleted while their comment is rejected, published and deleted."""
    ada, mod = one_client.member("ada"), one_client.member("mod", Role.MODERATOR)
    members = [one_client.member(f"m{number}") for number in range(4)]
    for turn in range(6):
        question = await post(ada, body=f"{turn}")

        async def talk(member: Client, question: dict[str, Any]) -> None:
            given = {"product": "42", "language": "en", "body": "Hm.", "inReplyTo": question["id"]}
            for _ in range(3):
                answer = await member.ask(POST_COMMENT, input=given)
                if "comment" in answer:
                    await member.ask(DELETE_COMMENT, input={"comment": answer["comment"]["id"]})
                await member.ask(POST_COMMENT, input=given)

        async def decide(question: dict[str, Any], turn: int) -> None:
            for status in ("REJECTED", "PUBLISHED", "REJECTED")[: 1 + turn % 3]:
                await mod.ask(MODERATE_COMMENT, input={"comment": question["id"], "status": status})
            if turn % 2:
                await mod.ask(DELETE_COMMENT, input={"comment": question["id"]})

        await asyncio.gather(*(talk(member, question) for member in members), decide(question, turn))
        await require_audited(one_client)
    for node in (await shown(one_client))["nodes"]:
        assert node["replyCount"] == len(node["replies"]["nodes"])


# ── erasing, taking back, transfer ──


@pytest.mark.parametrize("contributions", ["REMOVE", "ANONYMISE"])
async def test_an_erased_member_leaves_threads_that_are_right(one_client: Client, contributions: str) -> None:
    """Their comments with replies become stubs, or a former member's; their replies are gone, or a former member's."""
    ada, zoltan = one_client.member("ada"), one_client.member("zoltan-q")
    own, others = await post(zoltan, body="Their own."), await post(ada, body="Another's.")
    await reply(ada, own)
    await reply(zoltan, own)
    await reply(zoltan, others)
    erased = await zoltan.ask(ERASE, input={"user": node_id("User", "zoltan-q"), "contributions": contributions})
    await ended(one_client.member("root", Role.ADMIN), erased["job"]["id"])
    page = await shown(one_client)
    removed = contributions == "REMOVE"
    assert bodies(page["nodes"]) == ["Another's.", "" if removed else "Their own."]
    assert [node["replyCount"] for node in page["nodes"]] == ([0, 1] if removed else [1, 2])
    assert page["totalCount"] == (1 if removed else 2)
    naming = await items_naming(one_client.services.table, "zoltan-q", "Their own.", but=("answer",))
    assert any('"PRODUCT#' in item for item in naming) != removed
    await require_audited(one_client)


async def test_what_is_taken_back_leaves_stubs(one_client: Client) -> None:
    """A member's comments with replies are rejected, so others see stubs; their replies are not counted any more."""
    ada, eve, mod = one_client.member("ada"), one_client.member("eve"), one_client.member("mod", Role.MODERATOR)
    own, others = await post(eve, body="Spam."), await post(ada, body="Another's.")
    await reply(ada, own)
    await reply(eve, others)
    begun = await mod.ask(TAKE_BACK, input={"user": node_id("User", "eve"), "parts": ["COMMENTS"]})
    await ended(mod, begun["job"]["id"])
    page = await shown(one_client)
    assert [(node["body"], node["replyCount"]) for node in page["nodes"]] == [("Another's.", 0), ("", 1)]
    assert bodies((await mod.ask(PAGE))["nodes"]) == ["Another's.", "Spam."]
    await require_audited(one_client)


async def test_threads_are_exported_and_imported(one_client: Client, tmp_path: Path) -> None:
    """Into an empty table they come back as they were, stubs too. A second import changes nothing."""
    ada, bob = one_client.member(author_id("ada")), one_client.member(author_id("bob"))
    for number in range(4):
        question = await post(ada, f"p{number % 2}", rating=None, body=f"{number}")
        answer = await reply(bob, question, product=f"p{number % 2}", body=f"to {number}")
        await reply(ada, answer, product=f"p{number % 2}", body=f"to the answer to {number}")
        if number == 1:
            await delete(ada, question)
        if number == 2:
            await moderate(one_client, question, "REJECTED")
        if number == 3:
            await delete(bob, answer)
    file, table = tmp_path / "comments.jsonl", one_client.services.table
    number = await write_comments(one_client.services, file, None)
    before = [await shown(one_client, product=f"p{place}") for place in range(2)]
    lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    assert sum("inReplyTo" in line for line in lines) == 7
    async for item in table.scan_items():
        await table.client.delete_item(TableName=table.name, Key={"pk": item["pk"], "sk": item["sk"]})
    one_client.services.cache = type(one_client.services.cache)()
    assert await import_lines(one_client.services, io.BytesIO(file.read_bytes())) == (number, number, 0)
    after = [await shown(one_client, product=f"p{place}") for place in range(2)]
    assert nameless(after) == nameless(before)
    assert await import_lines(one_client.services, io.BytesIO(file.read_bytes())) == (number, 0, 0)
    await require_audited(one_client)


def nameless(pages_: Any) -> Any:
    """Without the names of authors, whose profiles an export of comments does not have."""
    text = orjson.dumps(pages_).decode()
    return [part.split('"', 1)[1] for part in text.split('"name":"')]


async def test_an_imported_reply_names_a_comment(one_client: Client) -> None:
    """One on the same product that comes before it, in the file or in the table; a reply's thread is found."""
    ada = one_client.member("ada")
    posted = await post(ada, body="There.")
    ulid = parse_node_key("Comment", posted["id"]).split("#")[1]
    line = {
        "product": "42",
        "language": "en",
        "body": "b",
        "author": author_id("ada"),
        "createdAt": "2026-01-01T00:00:00Z",
    }
    other = "01J" + "0" * 23
    good = [{**line, "id": other, "inReplyTo": ulid}, {**line, "inReplyTo": other, "body": "c"}]
    await import_lines(one_client.services, io.BytesIO(b"\n".join(map(orjson.dumps, good))))
    (node,) = (await shown(one_client))["nodes"]
    assert [(one["body"], one["inReplyTo"]["body"]) for one in node["replies"]["nodes"]] in (
        [("c", "b"), ("b", "There.")],
        [("b", "There."), ("c", "b")],
    )
    for wrong, message in (
        ({"inReplyTo": "01J" + "1" * 23}, "inReplyTo: There is no such comment"),
        ({"inReplyTo": ulid, "product": "43"}, "inReplyTo: There is no such comment"),
        ({"inReplyTo": "x"}, "inReplyTo: An id has 26 characters"),
        ({"thread": ulid}, "thread: An id has 26 characters"),
        ({"inReplyTo": ulid, "rating": 5}, "rating: A reply has no rating"),
    ):
        with pytest.raises(Failed, match=message):
            await import_lines(one_client.services, io.BytesIO(orjson.dumps({**line, **wrong})))
    await require_audited(one_client)


async def test_a_repeated_import_passes_over_replies_to_what_is_gone(one_client: Client) -> None:
    """Also where the question stands far before them in the file, and members have deleted both since."""
    author, services = author_id("ada"), one_client.services
    line = {"product": "42", "language": "en", "body": "b", "author": author, "createdAt": "2026-01-01T00:00:00Z"}
    question, answer = "01J" + "0" * 23, "01J" + "1" * 23
    others = [{**line, "product": "43", "body": f"{number}"} for number in range(150)]
    lines = [{**line, "id": question}, *others, {**line, "id": answer, "inReplyTo": question}]
    assert await import_lines(services, io.BytesIO(b"\n".join(map(orjson.dumps, lines)))) == (152, 152, 0)
    for ulid in (answer, question):
        await delete(one_client.member(author), {"id": node_id("Comment", f"42#{ulid}")})
    lines.append({**line, "product": "43", "body": "New."})
    assert await import_lines(services, io.BytesIO(b"\n".join(map(orjson.dumps, lines)))) == (153, 1, 0)
    await require_audited(one_client)


async def test_the_audit_finds_a_thread_that_is_wrong(one_client: Client) -> None:
    """A lost reply, a lost mark, a stub that stands for nothing."""
    ada, table = one_client.member("ada"), one_client.services.table
    question = await post(ada)
    await reply(ada, question)
    await one_client.services.close()
    stored = await table.get(COMMENT.at(product="42", ulid=parse_node_key("Comment", question["id"]).split("#")[1]))
    assert stored is not None
    await table.write(COMMENT.put(replace(stored, threaded=None)))
    assert await find_suspects(one_client.services, "comments") == [
        f"comments: product 42, thread {stored.ulid}: its comment is GONE, but it says published"
    ]
