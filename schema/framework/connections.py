"""Connections: pages of a list, and the cursors to go on from."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import strawberry
from strawberry.types import Info

from resolvers.requests.context import Context
from schema.framework.arguments import Parameters
from schema.framework.fields import declare_signature, described
from schema.framework.types import object_type

# ── connections ──


@strawberry.type(description="A page's position in its list.")
class PageInfo:
    has_next_page: bool = described(
        "Whether items follow this page. When paging backwards: whether `before` was given."
    )
    has_previous_page: bool = described(
        "Whether items precede this page. When paging forwards: whether `after` was given."
    )
    start_cursor: str | None = described("The cursor of the page's first edge.")
    end_cursor: str | None = described("The cursor of the page's last edge.")


def connection(
    node: type,
    description: str,
    *,
    edge: str,
    name: str | None = None,
    total_count: Any = None,
    **more: tuple[Any, Any],
) -> Any:
    """The connection type of a list; `edge` describes its edges, and `total_count` is a field if the list is counted.

    Both types are named after the type of the nodes unless a `name` is given. `more` are fields of the page's own: of
    each the type and a field.
    """
    name = name or node.__name__
    edge_type = object_type(
        f"{name}Edge",
        edge,
        cursor=(str, "This edge's position, for `after` or `before`. It stays valid if the object is deleted."),
        node=(node, "The object itself."),
    )
    counted_fields = {} if total_count is None else {"total_count": (int, total_count)}
    return object_type(
        f"{name}Connection",
        description,
        edges=(list[edge_type], "The page's objects with their cursors."),
        nodes=(list[node], "The page's objects without cursors."),
        page_info=(PageInfo, "Whether there are more items, and the cursors for the next page."),
        **counted_fields,
        **more,
    )


def counted() -> Any:
    """The total count of a list whose pages hold it."""
    return described("The number of items in the whole list.")


# ── subscriptions ──
# Subscriptions: fields that stream records.


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
