"""Pages of a connection: the requested window, the page, and cursors.

A cursor is a signed position in an order: the sort key of one record, not where it is stored. It becomes part of the
next query's key condition, never its start key, so it still works when its record is gone. It is bound to its `scope`:
the text that names the connection and all of its filters. `Window.open` checks it once for each page, before any read.

    base64url( key id 1 B · version 1 B · scope hash 6 B · position · HMAC-SHA256 cut to 8 B )

A page reads one record more than it shows, to know whether there is a next page. On a forward page, `hasPreviousPage`
is whether an `after` was given; backward pages mirror this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Self, TypeVar

from datastore.refusals import InvalidCursor
from datastore.values.seal import Forged, Seal

R = TypeVar("R")
S = TypeVar("S")

_VERSION = b"\x01"
_SCOPE_BYTES = 6
_MAC_BYTES = 8
_PURPOSE = "cursor"


@dataclass(frozen=True, slots=True)
class Window:
    """The requested part of a connection: `size` records after or before a cursor."""

    size: int
    seal: Seal = field(repr=False)
    forward: bool = True
    cursor: str | None = None

    def open(self, scope: str) -> PageRequest:
        """The window on one connection; InvalidCursor if the cursor belongs to another one."""
        position = None if self.cursor is None else _position(self.seal, self.cursor, scope)
        return PageRequest(self.size, self.forward, position, scope, self.seal)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A window whose cursor was opened: the page begins after `position`, or at the beginning if that is None."""

    size: int
    forward: bool
    position: str | None
    scope: str
    seal: Seal = field(repr=False)

    @property
    def wanted(self) -> int:
        """One record more than the page shows: it tells whether another page follows."""
        return self.size + 1

    def cursor(self, position: str) -> str:
        return _cursor(self.seal, self.scope, position)


@lru_cache(maxsize=4_096)  # the same pages are shown again and again
def _cursor(seal: Seal, scope: str, position: str) -> str:
    payload = _VERSION + _scope_hash(scope) + position.encode()
    return seal.sign_text(_PURPOSE, payload, size=_MAC_BYTES)


def _position(seal: Seal, cursor: str, scope: str) -> str:
    try:
        opened = seal.open_text(_PURPOSE, cursor, size=_MAC_BYTES)
    except Forged:
        raise InvalidCursor from None
    if opened[:1] != _VERSION or opened[1 : 1 + _SCOPE_BYTES] != _scope_hash(scope):
        raise InvalidCursor
    return opened[1 + _SCOPE_BYTES :].decode()


@lru_cache(maxsize=1024)  # the cursors of a page have one scope
def _scope_hash(scope: str) -> bytes:
    return hashlib.sha256(scope.encode()).digest()[:_SCOPE_BYTES]


class Edge(NamedTuple, Generic[R]):
    """A record and its position in the page's order."""

    position: str
    node: R
    request: PageRequest

    @property
    def cursor(self) -> str:
        """Signed only when a client selects it."""
        return self.request.cursor(self.position)


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """The records of one window with their positions, always in the connection's own order.

    Some of what was read may be left out. `first` and `last` lie around all of it, so an empty page may have cursors.
    """

    items: tuple[tuple[str, R], ...]
    has_next_page: bool
    has_previous_page: bool
    request: PageRequest
    first: str | None
    last: str | None
    total_count: int | None = None

    @classmethod
    def cut(cls, read: Sequence[tuple[str, R]], request: PageRequest, *, end: str | None = None, **more: Any) -> Self:
        """A page of up to `request.wanted` positions and records in the order of reading. `more` is for subclasses.

        `end`, of a forward page, is the last position that was looked at, if there may be more after it.
        """
        shown = tuple(read[: request.size])
        follows = len(read) > request.size
        first, last = (shown[0][0], shown[-1][0]) if shown else (end, end)
        if end is not None and not follows:
            follows, last = True, end
        began_past_cursor = request.position is not None
        if request.forward:
            return cls(shown, follows, began_past_cursor, request, first, last, **more)
        return cls(shown[::-1], began_past_cursor, follows, request, last, first, **more)

    @classmethod
    def of(cls, page: Page[Any], nodes: Iterable[R | None], **more: Any) -> Self:
        """The same page with other nodes, one for each; None leaves a position out. `more` is for subclasses."""
        pairs = zip(page.items, nodes, strict=True)
        shown = tuple((position, node) for (position, _), node in pairs if node is not None)
        around = (page.has_next_page, page.has_previous_page, page.request, page.first, page.last, page.total_count)
        return cls(shown, *around, **more)

    def map(self, nodes: Iterable[S | None]) -> Page[S]:
        return Page.of(self, nodes)

    def counted(self, total: int) -> Page[R]:
        return replace(self, total_count=total)

    @property
    def nodes(self) -> list[R]:
        return [node for _, node in self.items]

    @property
    def edges(self) -> list[Edge[R]]:
        return [Edge(position, node, self.request) for position, node in self.items]

    @property
    def page_info(self) -> Self:
        """The page itself: it has the attributes that the schema shows as `PageInfo`."""
        return self

    @property
    def start_cursor(self) -> str | None:
        return None if self.first is None else self.request.cursor(self.first)

    @property
    def end_cursor(self) -> str | None:
        return None if self.last is None else self.request.cursor(self.last)
