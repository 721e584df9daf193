"""A client in Python: reads all pages of a list, and retries a write safely.

    python3 examples/client.py [http://127.0.0.1:8000/graphql] [TOKEN]

With a token (`ringside token --user ada`) it also posts a comment.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx

COMMENTS = """
query Comments($product: ID!, $after: String) {
  comments(product: $product, ratings: [5], first: 50, after: $after) {
    nodes { rating language body author { name } }
    pageInfo { hasNextPage endCursor }
  }
}
"""

POST = """
mutation Post($input: PostCommentInput!) {
  postComment(input: $input) {
    ... on CommentPosted { comment { id } }
    ... on Refused { code message path retryAfterSeconds }
  }
}
"""


class Ringside:
    """The API at an address, used as a visitor or, with a token, as a member."""

    def __init__(self, address: str, token: str | None = None) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        # The service ends a request after ten seconds; httpx would leave after five.
        self._http = httpx.Client(headers={"accept": "application/graphql-response+json", **headers}, timeout=60)
        self._address = address

    def ask(self, document: str, **variables: Any) -> dict[str, Any]:
        """Return the data of a response, or exit with the service's error messages."""
        answer = self._http.post(self._address, json={"query": document, "variables": variables}).json()
        if "errors" in answer:
            raise SystemExit("\n".join(error["message"] for error in answer["errors"]))
        data: dict[str, Any] = answer["data"]
        return data

    def comments(self, product: str) -> Iterator[dict[str, Any]]:
        """Yield all comments of a product, page by page. Cursors stay valid while others write."""
        after = None
        while True:
            page = self.ask(COMMENTS, product=product, after=after)["comments"]
            yield from page["nodes"]
            if not page["pageInfo"]["hasNextPage"]:
                return
            after = page["pageInfo"]["endCursor"]

    def post(self, **comment: Any) -> str:
        """Return the new comment's id. All attempts share one idempotency key, so a retry posts no second comment."""
        asked = {**comment, "idempotencyKey": str(uuid4())}
        for pause in (1, 2, 4, None):
            try:
                answer = self.ask(POST, input=asked)["postComment"]
            except httpx.TransportError:
                if pause is None:
                    raise
                time.sleep(pause)
            else:
                break
        if "code" in answer:
            raise SystemExit(f"{answer['code']}: {answer['message']}")
        posted: str = answer["comment"]["id"]
        return posted


def main() -> None:
    address, token = (*sys.argv[1:], None, None)[:2]
    ringside = Ringside(address or "http://127.0.0.1:8000/graphql", token)
    found = list(ringside.comments("ringside-tee"))
    print(f"{len(found)} comments with five stars, in {len({comment['language'] for comment in found})} languages")
    if token:
        print("Posted", ringside.post(product="ringside-tee", language="en", rating=5, body="Fits like a glove."))


if __name__ == "__main__":
    main()
