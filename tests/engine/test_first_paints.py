"""What elements ask for as a page is opened: each with one GET, without a preflight, and few dependent calls."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from datastore.dynamo import Table
from server.demo import seed
from server.http.elements import Elements
from server.settings import Settings
from tests.client import serving
from tests.dependent_calls import dependent_calls

FIRST: dict[str, dict[str, Any]] = {
    "Board": {"board": "main"},
    "Comments": {"product": "ringside-tee", "languages": [], "ratings": [], "after": None},
    "NextEvent": {"season": None},
    "LatestSeason": {},
    "Words": {},
    "Viewer": {},
}
"""The document of each element's first request, with its variables."""


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
    calls = {}
    for name, variables in FIRST.items():
        asked = {"documentId": document_of(name), "variables": json.dumps(variables)}
        async with serving(settings.model_copy(update={"cors_origins": [site]}), one_table) as visitor:
            getting = visitor.http.get("/graphql", params=asked, headers={"origin": site, "accept": "*/*"})
            response, calls[name] = await dependent_calls(visitor.services.table, getting)
        assert "errors" not in response.json()
        assert response.headers["access-control-allow-origin"] == site
    board = calls.pop("Board")
    assert board <= 3  # its settings, its counters, and the pictures of those who lead
    assert calls.pop("Comments") <= 3  # the page, replies and authors, and the names of those who replied
    assert all(number <= 2 for number in calls.values()), calls
