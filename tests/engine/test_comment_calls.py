"""How many engine calls a request about comments waits for, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from time import monotonic
from typing import Any

from resolvers.comments.counts import LeaderSettler
from tests.client import Client
from tests.comments import post
from tests.intercepted import Send, intercepted, is_of_request
from tests.queries import COMMENT_STATISTICS, EDIT_COMMENT, POST_COMMENT

METHODS = ("batch_get_item", "get_item", "put_item", "query", "transact_write_items", "update_item")
AUTHORS = "edges { node { id body author { name } } }"


class Steps:
    """An engine that answers in steps: in each one everything that was asked for before it."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Event] = []
        self._sent = 0

    async def hold(self, _: str, send: Send) -> Any:
        if not is_of_request():
            return await send()
        released = asyncio.Event()
        self._waiting.append(released)
        await released.wait()
        self._sent += 1
        try:
            return await send()
        finally:
            self._sent -= 1

    async def count(self, request: Awaitable[Any]) -> int:
        """The steps until a request is answered."""
        answer, steps = asyncio.ensure_future(request), 0
        while not answer.done():
            before = len(self._waiting)
            await asyncio.wait({answer}, timeout=0.1)
            if answer.done() or self._sent or not before or len(self._waiting) != before:
                continue
            released, self._waiting = self._waiting, []
            for each in released:
                each.set()
            steps += 1
        await answer
        return steps


def forget(client: Client) -> None:
    """Lets short-lived caches expire."""
    client.services.cache.clock = lambda: monotonic() + 60.0
    client.services.get(LeaderSettler)._swept_at = float("-inf")


async def test_a_request_waits_for_few_calls_in_a_row(one_client: Client) -> None:
    """Caches have expired: a page and its authors 2, post 1, edit 2, ranking and statistics 1, a member one more."""
    ada = one_client.member("ada")
    posted = [await post(ada, rating=number % 5 + 1) for number in range(30)]
    await one_client.ask("{ topProducts { nodes { product } } }")
    await one_client.services.get(LeaderSettler)._tasks.close()
    steps = Steps()
    given = {"product": "42", "language": "en", "rating": 4, "body": "Once more."}
    with intercepted(one_client.services.table, METHODS, steps.hold):
        for most, client, query, variables in (
            (2, one_client, f'{{ comments(product: "42", languages: ["en"], ratings: [4, 5]) {{ {AUTHORS} }} }}', {}),
            (2, one_client, f'{{ comments(product: "42") {{ {AUTHORS} }} }}', {}),
            (2, ada, POST_COMMENT, {"input": given}),
            (3, ada, EDIT_COMMENT, {"input": {"comment": posted[0]["id"], "rating": 4}}),
            (1, one_client, "{ topProducts { nodes { product fiveStars } } }", {}),
            (1, one_client, COMMENT_STATISTICS, {"product": "42"}),
        ):
            forget(one_client)
            assert await steps.count(client.ask(query, **variables)) <= most, query
