"""Refusals of comments: their codes and paths, before any engine call."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from datastore.values.seal import Seal
from resolvers.comments.counts import LeaderSettler
from resolvers.requests.context import Role
from tests.client import Client
from tests.comments import post
from tests.conftest import SECRET
from tests.intercepted import WRITES, Send, intercepted, is_of_request
from tests.queries import (
    COMMENT_BY_ID,
    COMMENT_STATISTICS,
    COMMENTS_PAGE,
    DELETE_COMMENT,
    EDIT_COMMENT,
    MODERATE_COMMENT,
    POST_COMMENT,
    REPORT_COMMENT,
    TOP_PRODUCTS,
)

GOOD = {"product": "42", "language": "en", "rating": 5, "body": "Well made."}

BAD_INPUT: list[tuple[dict[str, Any], str]] = [
    ({"rating": 0}, "rating"),
    ({"rating": 6}, "rating"),
    ({"rating": -1}, "rating"),
    ({"body": ""}, "body"),
    ({"body": " \t\n\u200b"}, "body"),
    ({"body": "\u3164 \u2800\ufe0f\u2065"}, "body"),
    ({"body": "x" * 10_001}, "body"),
    ({"body": "half \ud800"}, "body"),
    ({"body": "nul \x00"}, "body"),
    ({"title": "x" * 201}, "title"),
    ({"language": "xx"}, "language"),
    ({"language": "english"}, "language"),
    ({"language": ""}, "language"),
    ({"language": "~"}, "language"),
    ({"language": "und"}, "language"),
    ({"language": "en-x-secret"}, "language"),
    ({"language": "e" * 2_000}, "language"),
    ({"product": ""}, "product"),
    ({"product": " "}, "product"),
    ({"product": "4#2"}, "product"),
    ({"product": "4\x002"}, "product"),
    ({"product": "4\ud8002"}, "product"),
    ({"product": "4" * 2_000}, "product"),
    ({"product": "4" * 129}, "product"),
    ({"product": "4\n2"}, "product"),
]


@pytest.fixture
def calls(one_client: Client) -> Iterator[list[str]]:
    """The engine calls made since, in every request."""
    made: list[str] = []

    async def noted(name: str, send: Send) -> Any:
        if is_of_request():
            made.append(name)
        return await send()

    with intercepted(one_client.services.table, ("get_item", "batch_get_item", "query", *WRITES), noted):
        yield made


async def test_bad_input_is_refused(one_client: Client) -> None:
    """With INVALID_INPUT and the path of the field; half a character may fail the whole request."""
    ada = one_client.member("ada")
    for change, name in BAD_INPUT:
        request = json.dumps({"query": POST_COMMENT, "variables": {"input": {**GOOD, **change}}})
        response = await ada.http.post("/graphql", content=request, headers={"content-type": "application/json"})
        if response.status_code == 400:
            assert "\\ud800" in request, change
            continue
        refused = response.json()["data"]["postComment"]
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", name]), change


async def test_texts_of_the_maximum_length_are_accepted(one_client: Client) -> None:
    """10,000 characters of four bytes, 200 in the title, 128 in the product's id, and their page."""
    ada = one_client.member("ada")
    posted = await post(ada, "🛒" * 128, title="🛒" * 200, body="🛒" * 10_000, language="zh-Hant-TW", rating=1)
    assert len((await one_client.ask(COMMENT_BY_ID, id=posted["id"]))["body"]) == 10_000
    page = await one_client.ask(COMMENTS_PAGE, product="🛒" * 128, languages=["zh-hant-tw"], ratings=[1, 2])
    assert page["totalCount"] == 1
    unheard_of = "\U0001fadf"  # an emoji younger than the oldest Python that this runs on
    assert (await post(ada, "43", body=unheard_of))["body"] == unheard_of


BAD_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"ratings": [0]}, "ratings.0"),
    ({"ratings": [5, 6]}, "ratings.1"),
    ({"ratings": [1] * 26}, "ratings"),
    ({"languages": ["xx"]}, "languages.0"),
    ({"languages": ["en"] * 26}, "languages"),
    ({"product": "4#2"}, "product"),
    ({"product": "4" * 2_000}, "product"),
    ({"first": 0}, "first"),
    ({"first": -1}, "first"),
    ({"first": 101}, "first"),
    ({"last": 0}, "last"),
    ({"first": 1, "last": 1}, "first"),
    ({"first": 1, "before": "x"}, "first"),
    ({"after": "x", "before": "x"}, "after"),
]


async def test_invalid_arguments_are_refused_without_an_engine_call(one_client: Client, calls: list[str]) -> None:
    """With BAD_USER_INPUT and the argument's name."""
    for arguments, argument in BAD_ARGUMENTS:
        error = (await one_client.answer(COMMENTS_PAGE, **{"product": "42", **arguments}))["errors"][0]
        assert error["extensions"] == {"code": "BAD_USER_INPUT", "argument": argument}
    assert calls == []


async def test_a_cursor_is_valid_for_its_own_list_only(one_client: Client, calls: list[str]) -> None:
    """Another product, filter or list, or an altered cursor: INVALID_CURSOR before any engine call."""
    ada = one_client.member("ada")
    one_client.services.get(LeaderSettler).patience = 60.0  # the ranking shows the product, on a busy machine too
    for rating in (5, 4, 5, 1):
        await post(ada, rating=rating)
    arguments = {"product": "42", "ratings": [4, 5]}
    page = await one_client.ask(COMMENTS_PAGE, **arguments, first=1)
    cursor = page["pageInfo"]["endCursor"]
    top = await one_client.ask("{ topProducts(first: 1) { edges { cursor } } }")
    again = await one_client.ask(COMMENTS_PAGE, product="42", ratings=[5, 4], first=50, after=cursor)
    assert len(again["edges"]) == 2, "page size and the ratings' order may change"
    await one_client.services.get(LeaderSettler).close()  # it would settle the product again, two seconds later
    assert calls, "the meter counts"
    calls.clear()
    altered = [
        cursor[:index] + ("A" if cursor[index] != "A" else "B") + cursor[index + 1 :] for index in range(len(cursor))
    ]
    bad = [
        *({**arguments, "after": text} for text in altered),
        *({**arguments, "before": text} for text in altered[:3]),
        {**arguments, "after": cursor + "A"},
        {**arguments, "after": cursor[:-1]},
        {**arguments, "after": cursor + "="},
        {**arguments, "after": ""},
        {**arguments, "after": "é"},
        {**arguments, "after": "x" * 100_000},
        {**arguments, "after": top["edges"][0]["cursor"]},
        {"product": "43", "ratings": [4, 5], "after": cursor},
        {"product": "42", "ratings": [5], "after": cursor},
        {"product": "42", "after": cursor},
        {**arguments, "languages": ["en"], "after": cursor},
    ]
    for altered_arguments in bad:
        assert await one_client.code(COMMENTS_PAGE, **altered_arguments) == "INVALID_CURSOR", altered_arguments
    assert await one_client.code(f'{{ topProducts(after: "{cursor}") {{ nodes {{ product }} }} }}') == "INVALID_CURSOR"
    assert calls == []


async def test_cursors_stay_valid_until_their_secret_is_removed(one_client: Client) -> None:
    """Adding a secret changes nothing for readers; removing one invalidates the cursors that it sealed."""
    ada = one_client.member("ada")
    for _ in range(2):
        await post(ada)
    cursor = (await one_client.ask(COMMENTS_PAGE, product="42", first=1))["pageInfo"]["endCursor"]
    one_client.services.seal = Seal(["a newer secret than the tests'", SECRET])
    assert len((await one_client.ask(COMMENTS_PAGE, product="42", after=cursor))["edges"]) == 1
    one_client.services.seal = Seal(["a newer secret than the tests'"])
    assert await one_client.code(COMMENTS_PAGE, product="42", after=cursor) == "INVALID_CURSOR"


async def test_an_id_of_another_type_is_not_a_comment(one_client: Client) -> None:
    """A user's id, an altered id, and texts that are no ids."""
    ada, mod = one_client.member("ada"), one_client.member("mod", Role.MODERATOR)
    posted = await post(ada)
    user = (await ada.ask("{ viewer { id } }"))["id"]
    for bad in (user, posted["id"][:-1], "x", ""):
        assert await one_client.code(COMMENT_BY_ID, id=bad) == "BAD_USER_INPUT"
        assert await ada.code(EDIT_COMMENT, input={"comment": bad, "rating": 1}) == "INVALID_INPUT"
        assert await ada.code(REPORT_COMMENT, input={"comment": bad, "reason": "x"}) == "INVALID_INPUT"
        assert await mod.code(MODERATE_COMMENT, input={"comment": bad, "status": "PENDING"}) == "INVALID_INPUT"
    assert await ada.code(EDIT_COMMENT, input={"comment": posted["id"], "rating": 9}) == "INVALID_INPUT"
    assert await ada.code(EDIT_COMMENT, input={"comment": posted["id"], "body": " "}) == "INVALID_INPUT"
    assert await ada.code(REPORT_COMMENT, input={"comment": posted["id"], "reason": "x" * 501}) == "INVALID_INPUT"


async def test_statistics_validate_their_language(one_client: Client) -> None:
    """An unknown language is refused; one without comments has the total 0."""
    assert await one_client.code(COMMENT_STATISTICS, product="42", language="xx") == "BAD_USER_INPUT"
    assert (await one_client.ask(COMMENT_STATISTICS, product="42", language="ja"))["total"] == 0
    assert (await one_client.ask(TOP_PRODUCTS))["nodes"] == []


@pytest.mark.parametrize("status", ["PENDING", "REJECTED"])
async def test_a_held_comment_of_another_is_not_found(client: Client, status: str) -> None:
    """For deleting it as for editing and reporting it; it stays, and its author deletes it."""
    ada, eve, mod = client.member("ada"), client.member("eve"), client.member("mod", Role.MODERATOR)
    posted = await post(ada)
    given = {"comment": posted["id"]}
    await mod.ask(MODERATE_COMMENT, input={**given, "status": status})
    assert await eve.code(DELETE_COMMENT, input=given) == "NOT_FOUND"
    assert await eve.code(EDIT_COMMENT, input={**given, "body": "Mine."}) == "NOT_FOUND"
    assert await eve.code(REPORT_COMMENT, input={**given, "reason": "Spam."}) == "NOT_FOUND"
    for _ in range(2):
        assert await ada.ask(DELETE_COMMENT, input=given) == {"deletedId": posted["id"]}
    assert await eve.ask(DELETE_COMMENT, input=given) == {"deletedId": posted["id"]}
