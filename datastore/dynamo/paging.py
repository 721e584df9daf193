"""Pages of a connection: the window asked for, the page found, and cursors of one position.

A cursor is a signed position in an order: the sort key of one record, nothing about where it is stored. It goes into
the key condition of the next query, never into a start key, so it still works when its record is gone. It is bound to
its `scope`, the text that names the connection and all of its filters, and opened before the engine is asked.

    base64url( key id 1 B · version 1 B · scope hash 6 B · position · HMAC-SHA256 cut to 8 B )

A page reads one record more than it shows: that one says whether there is a next page. Forward pages call
`hasPreviousPage` whether an `after` was given; backward pages mirror this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

from datastore.refusals import InvalidCursor
from datastore.seal import Forged, Seal

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")
S = TypeVar("S")

_VERSION = b"\x01"
_SCOPE_BYTES = 6
_MAC_BYTES = 8
_PURPOSE = "cursor"


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a connection that is asked for: `size` records after or before a cursor."""

    size: int
    seal: Seal = field(repr=False)
    forward: bool = True
    cursor: str | None = None

    def position(self, scope: str) -> str | None:
        """The position that the window begins past; InvalidCursor if its cursor is not of this scope."""
        if self.cursor is None:
            return None
        try:
            opened = self.seal.open_text(_PURPOSE, self.cursor, size=_MAC_BYTES)
        except Forged:
            raise InvalidCursor from None
        if opened[:1] != _VERSION or opened[1 : 1 + _SCOPE_BYTES] != _scope_hash(scope):
            raise InvalidCursor
        return opened[1 + _SCOPE_BYTES :].decode()

    def cursor_at(self, scope: str, position: str) -> str:
        payload = _VERSION + _scope_hash(scope) + position.encode()
        return self.seal.sign_text(_PURPOSE, payload, size=_MAC_BYTES)


@lru_cache(maxsize=1024)  # the cursors of a page have one scope
def _scope_hash(scope: str) -> bytes:
    return hashlib.sha256(scope.encode()).digest()[:_SCOPE_BYTES]


class Positions(Sequence[str]):
    """The positions of records, spelled only when they are asked for: pages without cursors are frequent."""

    __slots__ = ("_of", "_records")

    def __init__(self, records: Sequence[R], of: Callable[[R], str]) -> None:
        self._records = records
        self._of = of

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return tuple(self._of(record) for record in self._records[place])
        return self._of(self._records[place])

    def __iter__(self) -> Iterator[str]:
        return map(self._of, self._records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class Edge(NamedTuple, Generic[R]):
    """A record and its place in the page's order."""

    node: R
    position: str
    window: Window
    scope: str

    @property
    def cursor(self) -> str:
        """Signed only when it is asked for."""
        return self.window.cursor_at(self.scope, self.position)


class PageInfo(NamedTuple):
    has_next_page: bool
    has_previous_page: bool
    first: Edge[Any] | None
    last: Edge[Any] | None

    @property
    def start_cursor(self) -> str | None:
        return self.first.cursor if self.first else None

    @property
    def end_cursor(self) -> str | None:
        return self.last.cursor if self.last else None


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """The records of one window, always in the connection's own order."""

    nodes: tuple[R, ...]
    positions: Sequence[str]
    has_next_page: bool
    has_previous_page: bool
    window: Window
    scope: str
    total_count: int | None = None

    @classmethod
    def cut(cls, found: Sequence[R], window: Window, scope: str, position: Callable[[R], str]) -> Page[R]:
        """From up to `window.size + 1` records in the order they were read."""
        shown = list(found[: window.size])
        further = len(found) > window.size
        if not window.forward:
            shown.reverse()
        behind = window.cursor is not None
        return cls(
            tuple(shown),
            Positions(shown, position),
            has_next_page=further if window.forward else behind,
            has_previous_page=behind if window.forward else further,
            window=window,
            scope=scope,
        )

    @property
    def edges(self) -> list[Edge[R]]:
        return [
            Edge(node, position, self.window, self.scope)
            for node, position in zip(self.nodes, self.positions, strict=True)
        ]

    @property
    def page_info(self) -> PageInfo:
        first, last = (self._edge(0), self._edge(-1)) if self.nodes else (None, None)
        return PageInfo(self.has_next_page, self.has_previous_page, first, last)

    def _edge(self, place: int) -> Edge[R]:
        return Edge(self.nodes[place], self.positions[place], self.window, self.scope)

    def map(self, nodes: Sequence[S]) -> Page[S]:
        """The same page of other nodes, one for each."""
        return replace(self, nodes=tuple(nodes))  # type: ignore[arg-type,return-value]

    def counted(self, total: int) -> Page[R]:
        return replace(self, total_count=total)
