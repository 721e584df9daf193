"""The arguments of a page, and the window that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import strawberry

from datastore.dynamo import Window
from datastore.refusals import InvalidInput
from datastore.values.seal import Seal

PAGE_SIZE = 20
LARGEST_PAGE = 100

FORWARD: Mapping[str, tuple[Any, str]] = {
    "first": (int | None, f"The number of items from the start: 1 to {LARGEST_PAGE}, default {PAGE_SIZE}."),
    "after": (str | None, "Return items after this cursor."),
}
BACKWARD: Mapping[str, tuple[Any, str]] = {
    "last": (
        int | None,
        f"The number of items from the end: 1 to {LARGEST_PAGE}. Not together with `first` or `after`.",
    ),
    "before": (str | None, "Return items before this cursor. Not together with `first` or `after`."),
}


def parse_window(given: Mapping[str, Any], seal: Seal) -> Window:
    """The window that first/after or last/before ask for. Nothing is clamped: wrong values are refused."""
    first, after, last, before = (
        None if given.get(name) is strawberry.UNSET else given.get(name)
        for name in ("first", "after", "last", "before")
    )
    backward = last is not None or before is not None
    if backward and (first is not None or after is not None):
        raise InvalidInput(
            "Ask for first and after, or for last and before; not for both directions at once.",
            path=("first" if first is not None else "after",),
        )
    name, size = ("last", last) if backward else ("first", first)
    if size is None:
        size = PAGE_SIZE
    if not 1 <= size <= LARGEST_PAGE:
        raise InvalidInput(f"`{name}` is 1 to {LARGEST_PAGE}.", path=(name,))
    return Window(size, seal, forward=not backward, cursor=before if backward else after)
