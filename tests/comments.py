"""Helpers for the tests of comments: posting one, an author, all pages of a filter, what belongs on them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from datastore.comments.planner import Filter
from datastore.values.ids import derived_id
from resolvers.comments.counts import LeaderSettler
from tests.client import Client, next_cursor
from tests.queries import COMMENTS_PAGE, POST_COMMENT


def matches(wanted: Filter, language: str, rating: int | None) -> bool:
    """Whether a comment in this language with this rating belongs on the pages of a filter."""
    return (wanted.languages is None or language in wanted.languages) and (
        wanted.ratings is None or rating in wanted.ratings
    )


def author_id(name: str) -> str:
    """A member's id, as an export has it."""
    return derived_id(datetime(2025, 1, 1, tzinfo=UTC), name.encode())


async def post(
    member: Client, product: str = "42", rating: int | None = 5, language: str = "en", **more: Any
) -> dict[str, Any]:
    """Posts a comment; returns it as the answer shows it."""
    fields = {"product": product, "rating": rating, "language": language, "body": "Well made.", **more}
    answer = await member.ask(POST_COMMENT, input=fields)
    assert "comment" in answer, answer
    comment: dict[str, Any] = answer["comment"]
    return comment


def settle_nothing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a process post as one that is killed before it settles the product."""
    monkeypatch.setattr(client.services.get(LeaderSettler), "comment_changed", lambda _: None)


@dataclass(frozen=True)
class Traversal:
    """Reads all pages of a filter, in either direction."""

    client: Client
    product: str
    filter: dict[str, Any]

    async def page(self, **window: Any) -> dict[str, Any]:
        page: dict[str, Any] = await self.client.ask(COMMENTS_PAGE, product=self.product, **self.filter, **window)
        return page

    async def forwards(self, size: int) -> list[str]:
        """The bodies of all pages, first to last."""
        bodies: list[str] = []
        after = None
        while True:
            page = await self.page(first=size, after=after)
            bodies += [edge["node"]["body"] for edge in page["edges"]]
            after = next_cursor(page, after)
            if after is None:
                return bodies

    async def backwards(self, size: int) -> list[str]:
        """The bodies of all pages, read from the end, in the order of the list."""
        bodies: list[str] = []
        before = None
        while True:
            page = await self.page(last=size, before=before)
            bodies = [edge["node"]["body"] for edge in page["edges"]] + bodies
            if not page["pageInfo"]["hasPreviousPage"]:
                return bodies
            before = page["pageInfo"]["startCursor"]
