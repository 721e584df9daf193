"""Each event of a subscription has the deadline of a request."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
import strawberry

from datastore.dynamo import request_budget
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


async def test_an_event_that_takes_too_long_is_an_error_and_the_next_one_comes() -> None:
    """A table that does not answer must not silence a subscription for good."""
    schema = strawberry.Schema(Query, subscription=Subscription)
    documents = Documents(schema._schema, Limits(tokens=1000, complexity=1000), manifest=None, cache_bytes=10**6)
    operation = documents.operation(GraphQLRequest("subscription { tick { late } }"), introspection=True)
    ctx: Any = SimpleNamespace(address="", notes={}, event_id=None)
    answers = await subscribe(
        operation, {}, ctx, lambda: request_budget(0.05, 10, 10, "ada"), Turns(), suggestions=True
    )
    if isinstance(answers, Answer):
        pytest.fail(str(answers.errors))
    heard = [answer async for answer in answers]
    assert [answer.executed for answer in heard] == [True, True]
    assert [error["extensions"]["code"] for error in heard[0].errors] == ["UNAVAILABLE"]
    assert heard[1].data == {"tick": {"late": 1}}
