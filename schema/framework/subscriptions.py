"""Subscriptions: fields that stream records."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import strawberry
from strawberry.types import Info

from resolvers.requests.context import Context
from schema.framework.arguments import Parameters
from schema.framework.fields import declare_signature


def subscription(resolver: Callable[..., Any], description: str, /, **arguments: str) -> Any:
    """A subscription field: the resolver is an async generator of records."""
    parameters = Parameters.of(resolver)

    async def subscribe(info: Info, **given: Any) -> AsyncGenerator[Any]:
        ctx: Context = info.context
        async with aclosing(resolver(ctx, **parameters.parse(given, ctx))) as records:
            async for record in records:
                yield record

    declare_signature(subscribe, resolver.__name__, parameters.arguments(arguments), root=False)
    return strawberry.subscription(resolver=subscribe, description=description)


class Schema(strawberry.Schema):
    """Strawberry's schema with a description, whose subscriptions may also take an argument called `event`.

    Strawberry prints no description. It resolves each record of a stream with `lambda event, *_, **arguments: event`,
    which fails there.
    """

    def __init__(self, *, description: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._schema.description = description
        streams = self._schema.subscription_type
        for stream in streams.fields.values() if streams else ():
            stream.resolve = _record

    def as_str(self) -> str:
        roots = "schema {\n  query: Query\n  mutation: Mutation\n  subscription: Subscription\n}"
        return f'"""\n{self._schema.description}\n"""\n{roots}\n\n{super().as_str()}'


def _record(record: object, _: object, /, **__: object) -> object:
    return record
