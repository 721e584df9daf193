"""What the tests of comments share: how to post and read, and what must be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.client import Client

COMMENT = "id product language rating title body status createdAt editedAt viewerCanEdit author { name }"
POST = """
mutation ($input: PostCommentInput!) {
  postComment(input: $input) {
    ... on CommentPosted { comment { COMMENT } }
    ... on Refused { code message path retryAfterSeconds }
  }
}
""".replace("COMMENT", COMMENT)
EDIT = """
mutation ($input: EditCommentInput!) {
  editComment(input: $input) {
    ... on CommentEdited { comment { COMMENT } }
    ... on Refused { code message path }
  }
}
""".replace("COMMENT", COMMENT)
DELETE = """
mutation ($input: DeleteCommentInput!) {
  deleteComment(input: $input) { ... on CommentDeleted { id } ... on Refused { code message path } }
}
"""
REPORT = """
mutation ($input: ReportCommentInput!) {
  reportComment(input: $input) {
    ... on CommentReported { comment { id status } }
    ... on Refused { code message path }
  }
}
"""
MODERATE = """
mutation ($input: ModerateCommentInput!) {
  moderateComment(input: $input) {
    ... on CommentModerated { comment { id status moderationNote } }
    ... on Refused { code message path }
  }
}
"""
PAGE = """
query ($product: ID!, $languages: [String!], $ratings: [Int!], $first: Int, $after: String, $last: Int,
       $before: String) {
  comments(product: $product, languages: $languages, ratings: $ratings, first: $first, after: $after, last: $last,
           before: $before) {
    edges { cursor node { id body rating language } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    totalCount
  }
}
"""
STATISTICS = """
query ($product: ID!, $language: String) {
  commentStatistics(product: $product, language: $language) {
    product language total average histogram { rating count } languages { language count }
  }
}
"""
ONE = f"query ($id: ID!) {{ comment(id: $id) {{ {COMMENT} moderationNote reportReasons }} }}"
QUEUE = """
query ($status: CommentStatus, $first: Int, $after: String) {
  moderationQueue(status: $status, first: $first, after: $after) {
    nodes { id status reportReasons }
    pageInfo { hasNextPage endCursor }
  }
}
"""
TOP = "{ topProducts(first: 100) { nodes { product fiveStars statistics { total } } } }"


async def post(
    member: Client, product: str = "42", rating: int = 5, language: str = "en", **more: Any
) -> dict[str, Any]:
    """A posted comment, as the answer shows it."""
    given = {"product": product, "rating": rating, "language": language, "body": "Well made.", **more}
    answer = await member.ask(POST, input=given)
    assert "comment" in answer, answer
    comment: dict[str, Any] = answer["comment"]
    return comment


@dataclass(frozen=True)
class Walk:
    """A traversal of one filter, in one direction."""

    client: Client
    product: str
    filter: dict[str, Any]

    async def page(self, **window: Any) -> dict[str, Any]:
        found: dict[str, Any] = await self.client.ask(PAGE, product=self.product, **self.filter, **window)
        return found

    async def forwards(self, size: int) -> list[str]:
        """The bodies of all pages, first to last."""
        bodies: list[str] = []
        after = None
        while True:
            page = await self.page(first=size, after=after)
            bodies += [edge["node"]["body"] for edge in page["edges"]]
            if not page["pageInfo"]["hasNextPage"]:
                return bodies
            after = page["pageInfo"]["endCursor"]

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
