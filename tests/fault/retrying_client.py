"""A client over HTTP that repeats unanswered requests, with the same input and the same idempotency key."""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from random import Random
from types import TracebackType
from typing import Any, Self

import httpx

_TLS = ssl.create_default_context()
"""Shared, since each client would take 60 ms to load one."""


class RetryingClient:
    """Asks one of several services, and another one until it gets an answer. The addresses may change meanwhile."""

    def __init__(self, name: str, token: str, urls: Sequence[str], random: Random) -> None:
        self.name = name
        self.random = random
        self.retries = 0
        self._urls = urls
        self._http = httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=20, verify=_TLS)
        self._keys = 0

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    async def ask(self, query: str, **variables: Any) -> Any:
        """The value of the answer's single field."""
        request = {"query": query, "variables": variables}
        while True:
            try:
                response = await self._http.post(f"{self.random.choice(self._urls)}/graphql", json=request)
                body = response.json()
            except (httpx.HTTPError, ValueError):  # the service was killed, perhaps while it answered
                body = {}
            codes = {error["extensions"]["code"] for error in body.get("errors", ())}
            assert codes <= {"UNAVAILABLE", "OVERLOADED"}, body
            if body and not codes:
                answer = next(iter(body["data"].values()))
                if not isinstance(answer, Mapping) or answer.get("code") != "UNAVAILABLE":
                    return answer
            self.retries += 1
            await asyncio.sleep(self.random.uniform(0.02, 0.2))

    async def mutate(self, mutation: str, *refusals: str, **fields: Any) -> dict[str, Any] | None:
        """The payload of a mutation with a key of its own; None if it was refused for one of these reasons.

        An empty one if a comment was changed, and its repeat found it gone: the answer has nothing to show.
        """
        self._keys += 1
        answer: dict[str, Any] = await self.ask(mutation, input={**fields, "idempotencyKey": f"{self._keys}"})
        if "code" not in answer:
            return answer
        assert answer["code"] in refusals, answer
        was_changed = "comment" in fields and answer["code"] == "NOT_FOUND" and answer["path"] is None
        return {} if was_changed else None
