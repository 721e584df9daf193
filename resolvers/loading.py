"""Fields of many records at once.

A `batched` resolver takes a sequence of records and returns their answers in the same order, with an exception in
place of an answer that failed. The answer for a record does not depend on the other records. So calls with one record
each give the same answers, only slower: compiled plans call it once per page, graphql-core once per record.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

R = TypeVar("R", bound=Callable[..., Awaitable[Sequence[Any]]])


def batched(resolver: R) -> R:
    """Mark a resolver of many records: `async def authors(ctx, comments, /) -> list[Profile]`."""
    resolver.is_batched = True  # type: ignore[attr-defined]  # a note on the function
    return resolver


def is_batched(resolver: Callable[..., Any]) -> bool:
    return getattr(resolver, "is_batched", False)
