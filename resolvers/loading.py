"""Fields of many records at once, and what a process remembers that no read answers.

A `batched` resolver takes a sequence of records and returns their answers in the same order, with an exception in
place of an answer that failed. The answer for a record does not depend on the other records. So calls with one record
each give the same answers, only slower: compiled plans call it once per page, graphql-core once per record.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=Callable[..., Awaitable[Sequence[Any]]])


def batched(resolver: R) -> R:
    """Mark a resolver of many records: `async def authors(ctx, comments, /) -> list[Profile]`."""
    resolver.is_batched = True  # type: ignore[attr-defined]
    return resolver


def is_batched(resolver: Callable[..., Any]) -> bool:
    return getattr(resolver, "is_batched", False)


class BoundedDict(OrderedDict[K, V]):
    """Forgets its oldest entry beyond `most` of them. An entry that is set again becomes the newest.

    Clients choose the keys of most of what is remembered, and may choose any number of them.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
