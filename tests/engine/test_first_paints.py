"""What elements ask for as a page is opened: each with one GET, without a preflight, and few dependent calls."""

import json
import re
from typing import Any

import pytest
from graphql import parse, print_ast, separate_operations

from datastore.dynamo import Table
from server.demo import seed
from server.http.browser_pages import Elements
from server.settings import Settings
from tests.client import Client, serving
from tests.comments import post
from tests.dependent_calls import dependent_calls
from tests.generated import ROOT

FIRST: dict[str, dict[str, Any]] = {
    "Board": {"board": "main"},
    "Comments": {"product": "ringside-tee", "languages": [], "ratings": [], "after": None},
    "NextEvent": {"season": None},
    "LatestSeason": {},
    "LatestEvents": {"after": None},
    "Standings": {"season": "2026", "after": None},
    "Words": {},
    "Viewer": {},
}
"""The document of each element's first request, with its variables."""
MOST = {"Board": 3, "LatestSeason": 3, "Comments": 3}
"""Calls in a row where two are not enough.

A board's settings, its counters, and the pictures of those who lead; which season is the latest, its page, and ranks
and names; a page of comments, replies and authors, and the names of those who replied.
"""


def document_of(name: str) -> str:
    """The id by which the elements name one of their queries."""
    known = Elements().documents()
    if not known:
        pytest.skip("the elements are not here: make pages")
    (found,) = [digest for digest, text in known.items() if re.match(rf"query {name}\b", text)]
    return found


async def test_a_first_paint_is_one_simple_request_and_few_dependent_calls(
    settings: Settings, one_table: Table
) -> None:
    """Of a visitor on another site, asked of a process that has read nothing yet."""
    site = "https://www.example.com"
    async with serving(settings, one_table) as client:
        _ = [part async for part in seed(client.services)]
    for name, variables in FIRST.items():
        asked = {"documentId": document_of(name), "variables": json.dumps(variables)}
        waited = list[int]()
        # A busy machine may answer the calls of one round one after the other.
        while len(waited) < 5 and min(waited, default=9) > MOST.get(name, 2):
            async with serving(settings.model_copy(update={"cors_origins": [site]}), one_table) as visitor:
                getting = visitor.http.get("/graphql", params=asked, headers={"origin": site, "accept": "*/*"})
                response, rounds = await dependent_calls(visitor.services.table, getting)
            assert "errors" not in response.json()
            assert response.headers["access-control-allow-origin"] == site
            waited.append(rounds)
        assert min(waited) <= MOST.get(name, 2), name


def document(name: str) -> str:
    """The text of an operation of the elements, with the fragments that it needs."""
    files = sorted((ROOT / "elements" / "documents").glob("*.graphql"))
    together = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return print_ast(separate_operations(parse(together))[name])


async def test_comments_with_their_first_replies_wait_for_two_calls(one_client: Client) -> None:
    """A process that does not know the names of those who replied asks for them with a third."""
    writers = [one_client.member(f"writer {number}") for number in range(12)]
    roots = [await post(writer, rating=4) for writer in writers[:8]]
    for root in roots[::2]:
        for writer in writers[6:]:
            await post(writer, rating=None, inReplyTo=root["id"])
    given: dict[str, Any] = {"product": "42", "languages": [], "ratings": [], "order": "NEWEST"}
    for known, expected in ((set(), 3), ({"profiles"}, 2)):
        waited = []
        for _ in range(3):  # a busy machine may answer the calls of one round one after the other
            for kind in one_client.services.cache.kinds:
                if kind.name not in known:
                    kind.forget_all()
            asked = one_client.ask(document("Comments"), **given)
            answer, rounds = await dependent_calls(one_client.services.table, asked)
            nodes = answer["comments"]["nodes"]
            assert [len(node["replies"]["nodes"]) for node in nodes] == [0, 3] * 4
            assert all(reply["author"]["name"] for node in nodes for reply in node["replies"]["nodes"])
            waited.append(rounds)
        assert min(waited) == expected
