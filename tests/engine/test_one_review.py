"""One rated comment of each member on a product, where the site wants that."""

import asyncio
import io
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from datastore.comments.reviews import REVIEW_PLACE
from resolvers.comments.transfer import CommentStore
from resolvers.requests.context import Role
from resolvers.transfer.loop import Imported, OnProblem, import_records
from resolvers.transfer.readers import json_lines
from server.audit import find_suspects
from server.settings import Settings
from tests.client import Client, serving
from tests.comments import author_id, post
from tests.dependent_calls import dependent_calls
from tests.queries import COMMENT_STATISTICS, COMMENTS_PAGE, DELETE_COMMENT, EDIT_COMMENT, MODERATE_COMMENT, mutation

POST = mutation("postComment", "CommentPosted", "comment { id rating }", refused="code path existing")
EDIT = mutation("editComment", "CommentEdited", "comment { id }", refused="code path existing")
RATED = "query ($product: ID!) { commentStatistics(product: $product) { rated } }"
REVIEW = {"product": "42", "language": "en", "rating": 4, "body": "Good."}


@pytest.fixture
async def shop(client: Client) -> AsyncIterator[Client]:
    """The same table, where one review a product is allowed."""
    settings: Settings = client.settings.model_copy(update={"one_review_per_product": True})
    async with serving(settings) as other:
        yield other


async def moderate(client: Client, comment: dict[str, Any], status: str) -> dict[str, Any]:
    moderator = client.member("mod", Role.MODERATOR)
    answer: dict[str, Any] = await moderator.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": status})
    return answer


async def bring(client: Client, *lines: dict[str, Any]) -> Imported:
    rows = json_lines(io.BytesIO(b"\n".join(map(orjson.dumps, lines))))
    return await import_records(rows, CommentStore(client.services), OnProblem.STOP)


async def test_a_second_review_is_refused_and_names_the_first(shop: Client) -> None:
    """On this product, by this member; without a rating one may write more."""
    ada = shop.member("ada")
    first = await post(ada)
    refused = await ada.ask(POST, input=REVIEW)
    assert refused == {"code": "CONFLICT", "path": ["input", "product"], "existing": first["id"]}
    unrated = await post(ada, rating=None)
    edit = await ada.ask(EDIT_COMMENT, input={"comment": unrated["id"], "rating": 3})
    assert (edit["code"], edit["path"]) == ("CONFLICT", ["input", "comment"])
    assert (await ada.ask(EDIT_COMMENT, input={"comment": first["id"], "rating": 3}))["comment"]["rating"] == 3
    await post(ada, "43")
    await post(shop.member("bob"))
    assert await find_suspects(shop.services, "comments") == []


async def test_of_many_reviews_at_once_one_is_posted(shop: Client) -> None:
    ada = shop.member("ada")
    answers = await asyncio.gather(*(ada.ask(POST, input=REVIEW) for _ in range(6)))
    assert [answer.get("code") for answer in answers].count("CONFLICT") == 5
    assert (await shop.ask(COMMENT_STATISTICS, product="42"))["total"] == 1
    assert await find_suspects(shop.services, "comments") == []


async def test_a_review_that_is_gone_or_rejected_frees_its_place(shop: Client) -> None:
    """So does one that loses its stars; a rejected one comes back only while the place is free."""
    ada = shop.member("ada")
    first = await post(ada)
    await ada.ask(DELETE_COMMENT, input={"comment": first["id"]})
    second = await post(ada)
    await ada.ask(EDIT_COMMENT, input={"comment": second["id"], "rating": None})
    third = await post(ada)
    await moderate(shop, third, "REJECTED")
    fourth = await post(ada)
    assert (await moderate(shop, third, "PUBLISHED"))["code"] == "CONFLICT"
    again = await ada.ask(EDIT, input={"comment": third["id"], "body": "Better."})
    assert again == {"code": "CONFLICT", "path": ["input", "comment"], "existing": fourth["id"]}
    await moderate(shop, fourth, "PENDING")
    assert (await ada.ask(POST, input=REVIEW))["existing"] == fourth["id"]
    await moderate(shop, fourth, "REJECTED")
    assert (await moderate(shop, third, "PUBLISHED"))["comment"]["status"] == "PUBLISHED"
    assert await find_suspects(shop.services, "comments") == []


async def test_what_was_there_before_stays(client: Client, shop: Client) -> None:
    """Two reviews of before may be edited and deleted; a third is refused until both are gone."""
    old = [await post(client.member("ada")) for _ in range(2)]
    ada = shop.member("ada")
    assert (await ada.ask(POST, input=REVIEW))["code"] == "CONFLICT"
    for comment in old:
        assert (await ada.ask(EDIT_COMMENT, input={"comment": comment["id"], "rating": 2}))["comment"]["rating"] == 2
    for comment in old:
        assert (await ada.ask(POST, input=REVIEW))["code"] == "CONFLICT"
        await ada.ask(DELETE_COMMENT, input={"comment": comment["id"]})
    new = await ada.ask(POST, input=REVIEW)
    assert new["comment"]["rating"] == 4
    # With the setting off again nothing is refused, and the place is freed all the same.
    await client.member("ada").ask(DELETE_COMMENT, input={"comment": new["comment"]["id"]})
    assert (await ada.ask(POST, input=REVIEW))["comment"]["rating"] == 4
    assert await find_suspects(shop.services, "comments") == []


async def test_a_first_review_waits_for_few_calls_however_much_its_author_wrote(shop: Client) -> None:
    """What they have said on the product without stars is read at once, and not one after the other."""
    ada, table = shop.member("ada"), shop.services.table
    for _ in range(12):
        await post(ada, rating=None)
    posted, calls = await dependent_calls(table, ada.ask(POST, input=REVIEW))
    assert posted["comment"]["rating"] == 4
    assert calls <= 5


async def test_an_import_keeps_a_second_review_without_its_rating(shop: Client) -> None:
    """Of a member's reviews of a product, in the table or in the file, the first stays; the others' lines are named."""
    ada = author_id("ada")
    first = await post(shop.member(ada, name="Ada"), "posted")
    line = {"language": "en", "rating": 3, "body": "Fine.", "author": ada}
    lines = [
        {**line, "product": product, "createdAt": f"2026-01-0{day}T00:00:00Z"}
        for day, product in enumerate(("posted", "new", "other", "new"), 1)
    ]
    for added in (4, 0):
        imported = await bring(shop, *lines)
        assert (imported.added, imported.problems) == (added, [])
        assert [problem.row.place for problem in imported.altered] == ["line 1", "line 4"]
    rated = [(await shop.ask(RATED, product=product))["rated"] for product in ("posted", "new", "other")]
    assert rated == [1, 1, 1]
    refused = await shop.member(ada, name="Ada").ask(POST, input={**REVIEW, "product": "new"})
    assert refused["code"] == "CONFLICT"
    assert (await shop.ask("query ($id: ID!) { comment(id: $id) { rating } }", id=first["id"]))["rating"] == 5
    assert await find_suspects(shop.services, "comments") == []


@pytest.mark.parametrize("ended", ["rejected", "unrated", "deleted"])
async def test_a_review_that_ended_takes_no_stars_from_another_one_of_its_file(shop: Client, ended: str) -> None:
    """The file has it still, with its stars and before the other one."""
    ada = author_id("ada")
    line = {"product": "new", "language": "en", "rating": 3, "author": ada}
    first, second = ({**line, "body": f"{day}", "createdAt": f"2026-01-0{day}T00:00:00Z"} for day in (1, 2))
    await bring(shop, first)
    (imported,) = (await shop.ask(COMMENTS_PAGE, product="new"))["edges"]
    comment = imported["node"]["id"]
    if ended == "rejected":
        await moderate(shop, imported["node"], "REJECTED")
    elif ended == "unrated":
        await shop.member(ada).ask(EDIT_COMMENT, input={"comment": comment, "rating": None})
    else:  # its reply keeps it from coming back
        await post(shop.member("bob"), "new", None, inReplyTo=comment)
        await shop.member(ada).ask(DELETE_COMMENT, input={"comment": comment})
    assert (await bring(shop, first, second)).altered == []
    page = (await shop.ask(COMMENTS_PAGE, product="new"))["edges"]
    assert {edge["node"]["body"]: edge["node"]["rating"] for edge in page}["2"] == 3
    assert await find_suspects(shop.services, "comments") == []


async def test_a_lost_place_is_found(shop: Client) -> None:
    """By the audit: without its place nobody can take a review away."""
    ada, table = shop.member("ada"), shop.services.table
    await post(ada)
    await post(ada, "43")
    assert await find_suspects(shop.services, "comments") == []
    await table.write(REVIEW_PLACE.delete(REVIEW_PLACE.at(author="ada", product="42")))
    (found,) = await find_suspects(shop.services, "comments")
    assert found.startswith("comments: the places of ada's reviews differ from their comments by ")
