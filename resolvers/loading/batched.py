"""Fields answered for many records at once.

Law: a `batched` resolver takes a sequence of records instead of one and returns their answers in the same order, an
exception in the place of one that failed; what it answers for a record does not depend on the others. So asking for
one at a time gives the same answers, only later: compiled plans ask once per page, graphql-core once per record.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

R = TypeVar("R", bound=Callable[..., Awaitable[Sequence[Any]]])


def batched(resolver: R) -> R:
    """Marks a resolver of many records: `async def authors(ctx, comments, /) -> list[Profile]`."""
    resolver.is_batched = True  # type: ignore[attr-defined]
    return resolver


def is_batched(resolver: Callable[..., Any]) -> bool:
    return getattr(resolver, "is_batched", False)
