"""Each event of a subscription has the deadline of a request, and its client's turns."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import strawberry

from datastore.dynamo import request_budget
from datastore.dynamo.budgets import current
from server.execution.answers import Answer, subscribe
from server.execution.documents import Documents, GraphQLRequest, Turns
from server.execution.limits import Limits


@strawberry.type
class Tick:
    """An event, of which the first is never complete."""

    number: int

    @strawberry.field
    async def late(self) -> int:
        if self.number == 0:
            await asyncio.Event().wait()
        return self.number


@strawberry.type
class Query:
    nothing: int


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def tick(self) -> AsyncIterator[Tick]:
        for number in range(2):
            yield Tick(number=number)

    @strawberry.subscription
    async def client(self) -> AsyncIterator[str]:
        for _ in range(2):
            yield f"{current().callers.all[0].client} {current().payer}"


async def heard_by_ada(query: str, begin: Callable[[], Awaitable[None]]) -> list[Answer]:
    schema = strawberry.Schema(Query, subscription=Subscription)
    documents = Documents(schema._schema, Limits(tokens=1000, complexity=1000), manifest=None, cache_bytes=10**6)
    operation = documents.operation(GraphQLRequest(query), introspection=True)
    ctx: Any = SimpleNamespace(address="", notes={}, event_id="its place")
    answers = await subscribe(
        operation, {}, ctx, lambda: request_budget(0.05, 10, 10, "ada"), Turns(), suggestions=True, begin=begin
    )
    if isinstance(answers, Answer):
        pytest.fail(str(answers.errors))
    return [answer async for answer in answers]


async def test_an_event_that_takes_too_long_is_an_error_and_the_next_one_comes() -> None:
    """A table that does not answer must not silence a subscription for good.

    The client asks for it again by the id of the event before, so it has none itself.
    """
    heard = await heard_by_ada("subscription { tick { late } }", partial(asyncio.sleep, 0))
    assert [answer.executed for answer in heard] == [True, True]
    assert [error["extensions"]["code"] for error in heard[0].errors] == ["UNAVAILABLE"]
    assert heard[1].data == {"tick": {"late": 1}}
    assert [answer.event_id for answer in heard] == [None, "its place"]


async def test_a_stream_reads_and_makes_its_events_in_its_client_s_turns() -> None:
    """Otherwise what a stranger has missed in years is read as the service's own, before others' requests.

    However much it reads before the next event: thousands of votes may leave the rows that it shows as they are.
    """
    turns = 0

    async def begin() -> None:
        nonlocal turns
        turns += 1

    heard = await heard_by_ada("subscription { client }", begin)
    assert [answer.data for answer in heard] == [{"client": "ada None"}] * 2
    assert turns == 2
