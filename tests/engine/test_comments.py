"""Comments, over HTTP on every engine."""

from asyncio import gather
from dataclasses import replace
from typing import Any

import pytest

from resolvers.requests.context import Role
from server.audit import find_suspects
from tests.client import Client
from tests.comments import Traversal, post
from tests.queries import (
    COMMENT_BY_ID,
    COMMENT_STATISTICS,
    COMMENTS_PAGE,
    DELETE_COMMENT,
    EDIT_COMMENT,
    MODERATE_COMMENT,
    MODERATION_QUEUE,
    POST_COMMENT,
    REPORT_COMMENT,
    TOP_PRODUCTS,
)

PLAN = [("en", 5), ("en", 1), ("de", 5), ("de", 3), ("fr", 4), ("en", 5), ("de", 5), ("fr", 1), ("en", 3), ("en", 2)]


async def post_plan(member: Client, product: str = "42") -> list[tuple[str, int, str]]:
    """Post the comments of the plan; returns them newest first."""
    for place, (language, rating) in enumerate(PLAN):
        await post(member, product, rating, language, body=f"{place}")
    return [(language, rating, f"{place}") for place, (language, rating) in enumerate(PLAN)][::-1]


@pytest.mark.quick
@pytest.mark.lagging
async def test_a_posted_comment_can_be_read(client: Client) -> None:
    """By its id, as a node and in its list. Only its author may edit it."""
    ada = client.member("ada", name="Ada")
    posted = await post(ada, title=" Fine ", body="<b>Well</b> made.\n", language="EN-us")
    assert posted["language"] == "en"
    assert posted["title"] == "Fine"
    assert posted["body"] == "<b>Well</b> made.\n"
    assert (posted["status"], posted["viewerCanEdit"], posted["editedAt"]) == ("PUBLISHED", True, None)
    assert posted["author"] == {"name": "Ada"}
    seen = await client.ask(COMMENT_BY_ID, id=posted["id"])
    assert seen == {**posted, "viewerCanEdit": False, "moderationNote": None, "reportReasons": None}
    again = await client.ask("query ($id: ID!) { node(id: $id) { id ... on Comment { body } } }", id=posted["id"])
    assert again == {"id": posted["id"], "body": posted["body"]}
    await client.caught_up("a comment is in its list")
    page = await client.ask(COMMENTS_PAGE, product="42")
    assert [edge["node"]["id"] for edge in page["edges"]] == [posted["id"]]
    assert page["totalCount"] == 1


async def test_what_a_browser_calls_its_language_is_found_in_every_region(client: Client) -> None:
    """A comment with the `navigator.language` of one reader is counted and listed for those of others."""
    ada = client.member("ada")
    for language in ("en-US", "en-GB", "en", "zh-TW", "zh-CN"):
        await post(ada, "42", language=language)
    await client.caught_up("comments are in their lists")
    counted = await client.ask(
        '{ commentStatistics(product: "42") { languages { language count } }'
        '  english: commentStatistics(product: "42", language: "en-AU") { language total }'
        '  commentStatisticsOf(products: ["42"], language: "zh-HK") { language total } }',
    )
    assert counted["commentStatistics"]["languages"] == [
        {"language": "en", "count": 3},
        {"language": "zh", "count": 1},
        {"language": "zh-Hant", "count": 1},
    ]
    assert counted["english"] == {"language": "en", "total": 3}
    assert counted["commentStatisticsOf"] == [{"language": "zh-Hant", "total": 1}]
    for tag, total in {"en-NZ": 3, "zh-MO": 1, "zh-SG": 1}.items():
        assert (await client.ask(COMMENTS_PAGE, product="42", languages=[tag]))["totalCount"] == total, tag


@pytest.mark.lagging
async def test_every_filter_shows_its_comments_newest_first(client: Client) -> None:
    """In both directions, with the exact total."""
    every = await post_plan(client.member("ada"))
    await client.caught_up("every comment is in the lists that it belongs to")
    for languages in (None, ["en"], ["en", "fr", "it"], ["ja"]):
        for ratings in (None, [], [5], [5, 1, 4]):
            expected = [
                body for lang, rating, body in every
                if (not languages or lang in languages) and (not ratings or rating in ratings)
            ]  # fmt: skip
            walk = Traversal(client, "42", {"languages": languages, "ratings": ratings})
            assert await walk.forwards(3) == expected
            assert await walk.backwards(4) == expected
            assert (await walk.page())["totalCount"] == len(expected)


@pytest.mark.every_engine
async def test_a_page_says_exactly_whether_more_follows(client: Client) -> None:
    """Ten comments in pages of five: the second is the last, and the first has none before it."""
    await post_plan(client.member("ada"))
    await client.caught_up("every comment is in the lists that it belongs to")
    walk = Traversal(client, "42", {})
    first = (await walk.page(first=5))["pageInfo"]
    assert (first["hasNextPage"], first["hasPreviousPage"]) == (True, False)
    second = (await walk.page(first=5, after=first["endCursor"]))["pageInfo"]
    assert (second["hasNextPage"], second["hasPreviousPage"]) == (False, True)
    back = await walk.page(last=5, before=second["startCursor"])
    assert back["pageInfo"]["startCursor"] == first["startCursor"]
    assert (back["pageInfo"]["hasPreviousPage"], back["pageInfo"]["hasNextPage"]) == (False, True)


@pytest.mark.lagging
async def test_a_cursor_outlives_its_comment(client: Client) -> None:
    """After the cursor's comment is deleted, the next page begins at the same position."""
    ada = client.member("ada")
    await post_plan(ada)
    await client.caught_up("every comment is in the lists that it belongs to")
    walk = Traversal(client, "42", {"ratings": [1, 5]})
    page = await walk.page(first=2)
    await ada.ask(DELETE_COMMENT, input={"comment": page["edges"][1]["node"]["id"]})
    await client.caught_up("a deleted comment is in no list")
    rest = await walk.page(first=10, after=page["edges"][1]["cursor"])
    assert [edge["node"]["body"] for edge in rest["edges"]] == ["5", "2", "1", "0"]


@pytest.mark.lagging
async def test_statistics_follow_every_change(client: Client) -> None:
    """Post, edit of rating and language, delete: total, average, histogram and languages are a recount."""
    ada = client.member("ada")
    posted = [await post(ada, rating=rating, language=language) for language, rating in PLAN[:5]]
    edited = await ada.ask(EDIT_COMMENT, input={"comment": posted[0]["id"], "rating": 1, "language": "it"})
    assert (edited["comment"]["rating"], edited["comment"]["language"]) == (1, "it")
    assert edited["comment"]["editedAt"] is not None
    await ada.ask(DELETE_COMMENT, input={"comment": posted[1]["id"]})
    await client.services.close()  # or a settling two seconds later may be seen in half
    await client.caught_up("statistics follow every change")
    statistics = await client.ask(COMMENT_STATISTICS, product="42")
    assert statistics["total"] == 4
    assert statistics["average"] == pytest.approx((1 + 5 + 3 + 4) / 4)
    assert [row["rating"] for row in statistics["histogram"]] == [5, 4, 3, 2, 1]
    assert [row["count"] for row in statistics["histogram"]] == [1, 1, 1, 0, 1]
    assert statistics["languages"] == [
        {"language": "de", "count": 2}, {"language": "fr", "count": 1}, {"language": "it", "count": 1}
    ]  # fmt: skip
    german = await client.ask(COMMENT_STATISTICS, product="42", language="DE")
    assert (german["language"], german["total"], german["average"]) == ("de", 2, 4.0)
    nothing = await client.ask(COMMENT_STATISTICS, product="unheard of")
    assert (nothing["total"], nothing["average"], len(nothing["histogram"])) == (0, None, 5)
    assert await find_suspects(client.services, "comments") == []


@pytest.mark.lagging
async def test_products_are_ranked_by_five_star_comments(client: Client) -> None:
    """Most first, equal ones by id, none without; an edit moves a product down."""
    ada = client.member("ada")
    posted = [await post(ada, product) for product in ("b", "c", "a", "c", "d")]
    await post(ada, "e", rating=4)
    await client.services.close()  # settles the counts, which the ranking does not wait for
    await client.caught_up("products are ranked by their comments")
    products = (await client.ask(TOP_PRODUCTS))["nodes"]
    assert [(row["product"], row["fiveStars"]) for row in products] == [("c", 2), ("a", 1), ("b", 1), ("d", 1)]
    assert products[0]["statistics"] == {"total": 2}
    await ada.ask(EDIT_COMMENT, input={"comment": posted[4]["id"], "rating": 2})
    await client.services.close()
    await client.caught_up("products are ranked by their comments")
    assert [row["product"] for row in (await client.ask(TOP_PRODUCTS))["nodes"]] == ["c", "a", "b"]


@pytest.mark.lagging
async def test_deleting_a_deleted_comment_succeeds(client: Client) -> None:
    """Five concurrent deletions and one more: all return the id, and the comment is counted once."""
    ada = client.member("ada")
    posted = await post(ada)
    await post(ada)
    answers = await gather(*(ada.ask(DELETE_COMMENT, input={"comment": posted["id"]}) for _ in range(5)))
    answers.append(await ada.ask(DELETE_COMMENT, input={"comment": posted["id"]}))
    assert answers == [{"deletedId": posted["id"]}] * 6
    assert (await client.ask(COMMENT_STATISTICS, product="42"))["total"] == 1
    assert await ada.code(EDIT_COMMENT, input={"comment": posted["id"], "rating": 1}) == "NOT_FOUND"


@pytest.mark.every_engine
async def test_a_key_posts_once(client: Client) -> None:
    """Ten concurrent requests with one key post one comment; another input with that key is refused."""
    ada = client.member("ada")
    posted = await gather(*(post(ada, idempotencyKey="k") for _ in range(10)))
    assert all(comment == posted[0] for comment in posted)
    assert (await client.ask(COMMENTS_PAGE, product="42"))["totalCount"] == 1
    given = {"product": "42", "rating": 4, "language": "en", "body": "Well made.", "idempotencyKey": "k"}
    assert await ada.code(POST_COMMENT, input=given) == "IDEMPOTENCY_MISMATCH"


@pytest.mark.quick
@pytest.mark.lagging
async def test_a_moderator_rejects_and_publishes(client: Client) -> None:
    """A held comment is in no list and no count; only its author and moderators see it."""
    ada, bob, mod = client.member("ada"), client.member("bob"), client.member("mod", Role.MODERATOR)
    posted = await post(ada)
    id_ = posted["id"]
    reported = await bob.ask(REPORT_COMMENT, input={"comment": id_, "reason": "An advertisement."})
    assert reported["comment"] == {"id": id_, "status": "PUBLISHED"}
    await client.caught_up("a reported comment is in the queue")
    waiting = await mod.ask(MODERATION_QUEUE, status="PUBLISHED")
    assert waiting["nodes"] == [{"id": id_, "status": "PUBLISHED", "reportReasons": ["An advertisement."]}]
    decision = {"comment": id_, "status": "REJECTED", "note": "No advertisements."}
    assert (await mod.ask(MODERATE_COMMENT, input=decision))["comment"]["status"] == "REJECTED"
    await client.caught_up("a rejected comment is among the rejected ones, and nowhere else")
    assert (await mod.ask(MODERATION_QUEUE, status="PUBLISHED"))["nodes"] == []
    assert [row["id"] for row in (await mod.ask(MODERATION_QUEUE, status="REJECTED"))["nodes"]] == [id_]
    for ratings in (None, [5]):
        page = await client.ask(COMMENTS_PAGE, product="42", ratings=ratings)
        assert (page["edges"], page["totalCount"]) == ([], 0)
    assert (await client.ask(COMMENT_STATISTICS, product="42"))["total"] == 0
    assert await client.ask(COMMENT_BY_ID, id=id_) is None
    assert await bob.ask(COMMENT_BY_ID, id=id_) is None
    assert await bob.code(REPORT_COMMENT, input={"comment": id_, "reason": "Why?"}) == "NOT_FOUND"
    assert (await ada.ask(COMMENT_BY_ID, id=id_))["moderationNote"] == "No advertisements."
    assert (await mod.ask(COMMENT_BY_ID, id=id_))["status"] == "REJECTED"
    assert (await ada.ask(EDIT_COMMENT, input={"comment": id_, "body": "Without it."}))["comment"][
        "status"
    ] == "PENDING"
    await client.caught_up("an edited comment waits for a decision again")
    assert [row["id"] for row in (await mod.ask(MODERATION_QUEUE))["nodes"]] == [id_]
    assert await bob.code(MODERATION_QUEUE) == "NOT_ALLOWED"
    await mod.ask(MODERATE_COMMENT, input={"comment": id_, "status": "PUBLISHED"})
    await client.services.close()
    await client.caught_up("a published comment is in its lists")
    assert (await client.ask(COMMENTS_PAGE, product="42", ratings=[5]))["totalCount"] == 1
    assert await find_suspects(client.services, "comments") == []


async def test_a_note_stays_until_a_held_comment_is_published_or_a_published_one_held(one_client: Client) -> None:
    """The author of a comment that is rejected again later is not told the reason of the first time.

    Nor is the author told an old one of a comment that an edit holds, or one of a rejection that was taken back.
    """
    ada, mod = one_client.member("ada"), one_client.member("mod", Role.MODERATOR)
    id_ = (await post(ada))["id"]
    notes = []
    for status, note in (
        ("PENDING", "Which shop?"),
        ("REJECTED", None),
        ("PENDING", None),
        ("REJECTED", "No."),
        ("PUBLISHED", None),
        ("PUBLISHED", "Thank you."),
        ("PUBLISHED", None),
        ("REJECTED", None),
    ):
        await mod.ask(MODERATE_COMMENT, input={"comment": id_, "status": status, "note": note})
        notes.append((await ada.ask(COMMENT_BY_ID, id=id_))["moderationNote"])
    assert notes == ["Which shop?", "Which shop?", None, "No.", None, "Thank you.", "Thank you.", None]
    await mod.ask(MODERATE_COMMENT, input={"comment": id_, "status": "PUBLISHED", "note": "Thank you."})
    one_client.services.policy = replace(one_client.services.policy, premoderation=True)
    await ada.ask(EDIT_COMMENT, input={"comment": id_, "body": "Changed."})
    held = await ada.ask(COMMENT_BY_ID, id=id_)
    assert (held["status"], held["moderationNote"]) == ("PENDING", None)
    await mod.ask(MODERATE_COMMENT, input={"comment": id_, "status": "REJECTED", "note": "Why?"})
    await ada.ask(EDIT_COMMENT, input={"comment": id_, "body": "Because."})
    assert (await ada.ask(COMMENT_BY_ID, id=id_))["moderationNote"] == "Why?"


@pytest.mark.lagging
async def test_statistics_equal_a_recount_after_concurrent_changes(client: Client) -> None:
    """Twenty concurrent edits and deletions of five comments."""
    ada = client.member("ada")
    posted = [(await post(ada, rating=place % 5 + 1))["id"] for place in range(5)]

    async def change(turn: int) -> dict[str, Any]:
        id_ = posted[turn % 5]
        if turn % 7 == 3:
            return await ada.answer(DELETE_COMMENT, input={"comment": id_})
        language = ("en", "de", "fr")[turn % 3]
        return await ada.answer(EDIT_COMMENT, input={"comment": id_, "rating": turn * 3 % 5 + 1, "language": language})

    answers = await gather(*(change(turn) for turn in range(20)))
    codes = {next(iter(answer["data"].values())).get("code") for answer in answers}
    assert codes <= {None, "NOT_FOUND"}
    await client.services.close()
    await client.caught_up("statistics follow every change")
    assert await find_suspects(client.services, "comments") == []
    left = await client.ask(COMMENTS_PAGE, product="42")
    statistics = await client.ask(COMMENT_STATISTICS, product="42")
    assert statistics["total"] == left["totalCount"] == len(left["edges"]) == 2


@pytest.mark.lagging
async def test_the_audit_finds_a_wrong_count(client: Client) -> None:
    """And names its product."""
    await post(client.member("ada"))
    await client.services.close()
    await client.caught_up("a comment is in its lists")
    assert await find_suspects(client.services, "comments") == []
    await client.services.table.client.update_item(
        TableName=client.services.table.name,
        Key={"pk": {"S": "STATISTICS#42"}, "sk": {"S": "COUNTS#en#00"}},
        UpdateExpression="ADD r3 :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
    )
    await client.caught_up("the wrong count is read")
    [breach] = await find_suspects(client.services, "comments")
    assert "42" in breach
