"""Pages of a connection: the requested window, the page, and cursors.

A cursor is a signed position in an order: the sort key of one record, not where it is stored. It becomes part of the
next query's key condition, never its start key, so it still works when its record is gone. It is bound to its `scope`:
the text that names the connection and all of its filters. `Window.open` checks it once for each page, before any read.

    base64url( key id 1 B · version 1 B · scope hash 6 B · position · HMAC-SHA256 cut to 8 B )

A page reads one record more than it shows, to know whether there is a next page. On a forward page, `hasPreviousPage`
is whether an `after` was given; backward pages mirror this.
"""

from __future__ import annotations

import asyncio
import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil, sqrt
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

from datastore.dynamo.entity import Partition, Slice
from datastore.refusals import InvalidCursor, InvalidInput
from datastore.values.seal import Forged, Seal

# ── pages ──

R = TypeVar("R")
S = TypeVar("S")

_VERSION = b"\x01"
_SCOPE_BYTES = 6
_MAC_BYTES = 8
_PURPOSE = "cursor"

PAGE_SIZE = 20
LARGEST_PAGE = 100


def page_size(requested: int | None, argument: str = "first") -> int:
    """How many records a client asks for. Nothing is clamped: a wrong number is refused."""
    size = PAGE_SIZE if requested is None else requested
    if not 1 <= size <= LARGEST_PAGE:
        raise InvalidInput(f"`{argument}` is 1 to {LARGEST_PAGE}.", path=(argument,))
    return size


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


def page_of(positions: Sequence[str], rows: Sequence[R], request: PageRequest) -> Page[R]:
    """The page of a list in memory, whose positions ascend. There need not be a row at the cursor any more."""
    if request.forward:
        start = 0 if request.position is None else bisect_right(positions, request.position)
        places = range(start, min(start + request.wanted, len(rows)))
    else:
        end = len(rows) if request.position is None else bisect_left(positions, request.position)
        places = range(end - 1, max(end - request.wanted, 0) - 1, -1)
    return Page.cut([(positions[place], rows[place]) for place in places], request)


# ── merge ──
# Merges several partitions into one order: a k-way merge of sorted slices, usually in at most two rounds.
#
# All partitions are read in parallel, each up to its own limit. The last key read of an unfinished partition is its
# frontier: records after it may have to come before records of other partitions. If fewer than the wanted records lie
# before the nearest frontier, each unfinished partition is read for exactly the number missing before its own frontier.
# After that, each has given enough by itself. So a third round happens only if records were left out, by a partition's
# filter or by `combine`. From then on every round reads twice as much.

LARGEST_READ = 1000
_DEVIATIONS = 4.0


class Queries(Protocol):
    """A table, as far as `merge` uses it."""

    async def query(self, partition: Partition[R], *, limit: int, consistent: bool) -> Slice[R]: ...


def shard_limit(wanted: int, shards: int) -> int:
    """How many of the first `wanted` records are read from one of several even shards: the mean and four deviations."""
    share = 1 / shards
    return min(wanted, ceil(wanted * share + _DEVIATIONS * sqrt(wanted * share * (1 - share))))


last_read: Final = itemgetter(-1)
"""Records with the same sort key are one record, found in several partitions while a write moves it."""


@dataclass(frozen=True, slots=True)
class Merged(Generic[R]):
    """The first sort keys and records of the common order, and how they were read.

    `frontier` is the sort key up to which every partition was read; None if all were read to the end.
    """

    items: list[tuple[str, R]]
    frontier: str | None
    rounds: int
    queries: int
    read: int


@dataclass(slots=True)
class _PartitionState(Generic[R]):
    """How far one partition was read."""

    rest: Partition[R]
    limit: int
    items: list[tuple[str, R]]
    frontier: str | None = None
    """None: nothing is left."""


async def merge(
    table: Queries,
    partitions: Sequence[Partition[R]],
    limits: Sequence[int],
    wanted: int,
    *,
    combine: Callable[[Sequence[R]], R | None] = last_read,
    most_rounds: int | None = None,
    consistent: bool = False,
) -> Merged[R]:
    """The first `wanted` records of all partitions, which must share one direction and one kind of sort key.

    `combine` makes one record, or none, of those with the same sort key. After `most_rounds`, if given, there may be
    fewer records: those before the frontier.
    """
    descending = partitions[0].descending
    states = [_PartitionState(partition, limit, []) for partition, limit in zip(partitions, limits, strict=True)]
    unfinished, rounds, slices = states, 0, list[Slice[R]]()
    while True:
        slices += await _advance(table, unfinished, consistent=consistent)
        rounds += 1
        unfinished = [state for state in states if state.frontier is not None]
        frontiers = [state.frontier for state in unfinished if state.frontier is not None]
        frontier = (max if descending else min)(frontiers, default=None)
        items = _combined(states, combine, descending=descending)
        certain = _count_up_to(items, frontier, descending=descending)
        if certain >= wanted or frontier is None or rounds == most_rounds:
            read = sum(part.read for part in slices)
            return Merged(items[: min(certain, wanted)], frontier, rounds, len(slices), read)
        for state in unfinished:
            missing = max(0, wanted - _count_up_to(items, state.frontier, descending=descending))
            state.limit = min(LARGEST_READ, missing << (rounds - 1))
            state.rest = state.rest.past(state.frontier)


async def _advance(table: Queries, states: Sequence[_PartitionState[R]], *, consistent: bool) -> list[Slice[R]]:
    reading = [state for state in states if state.limit]
    reads = [table.query(state.rest, limit=state.limit, consistent=consistent) for state in reading]
    # A single read needs no task.
    slices: list[Slice[R]] = [await reads[0]] if len(reads) == 1 else await asyncio.gather(*reads)
    for state, part in zip(reading, slices, strict=True):
        state.items += part.items
        state.frontier = part.last
    return slices


def _combined(
    states: Sequence[_PartitionState[R]], combine: Callable[[Sequence[R]], R | None], *, descending: bool
) -> list[tuple[str, R]]:
    by_sort: dict[str, list[R]] = {}
    for state in states:
        for sort, record in state.items:
            by_sort.setdefault(sort, []).append(record)
    combined = ((sort, combine(by_sort[sort])) for sort in sorted(by_sort, reverse=descending))
    return [(sort, record) for sort, record in combined if record is not None]


def _count_up_to(items: Sequence[tuple[str, R]], edge: str | None, *, descending: bool) -> int:
    """The number of items before an edge or at it; without an edge, all of them."""
    if edge is None:
        return len(items)
    return sum(1 for sort, _ in items if (sort >= edge if descending else sort <= edge))
