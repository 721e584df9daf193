"""The loop of every import, and the one of every export.

An import that was interrupted is completed by running it again. Most stores remember no position: they leave alone what
exists, and tell how many records were new. So the file may also have grown meanwhile, and two runs may overlap.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import islice
from typing import Any, BinaryIO, Generic, NamedTuple, Self, TypeVar

import orjson

from datastore.refusals import InvalidInput, Refusal
from resolvers.transfer.readers import Row

T = TypeVar("T")
MOST_BYTES = 8 * 2**20
"""Of rows that are held at once."""
Advance = Callable[..., None]
"""Told how many records were read, or written, and with `title` what is being done."""


class OnProblem(Enum):
    """What becomes of the other records if one is not valid."""

    REFUSE = auto()
    """All are read first, and nothing is imported."""
    SKIP = auto()
    """They are imported."""
    STOP = auto()
    """Those before it are imported."""


class Added(NamedTuple):
    """What a store did with some records: the others existed already."""

    new: int
    left_out: int = 0
    """Records that it must not add."""
    altered: Sequence[tuple[object, str]] = ()
    """Records of which it has not added everything, and what not."""


class Store(ABC, Generic[T]):
    """Where an import's records go."""

    at_once = 1
    """How many records it is given at once."""

    async def begin(self) -> int:
        """Called first. How many records an earlier run has stored: so many are passed over."""
        return 0

    @abstractmethod
    def parse(self, row: Row) -> T:
        """The record; InvalidInput if the row is none."""

    @abstractmethod
    async def add(self, records: Sequence[T]) -> Added:
        """Add those that are missing. RecordRefused if some cannot be added; then it is given others of them alone."""

    async def finish(self) -> None:
        """Called last, unless nothing was imported because of a problem."""


class PreviewedStore(Store[T]):
    """One that can say beforehand what it would add."""

    @abstractmethod
    async def are_missing(self, records: Sequence[T]) -> Sequence[bool]:
        """Of each, whether it would be added; of equal ones, only the first. Called after `begin`."""


class RecordRefused(Exception):
    """What only the table shows to be wrong with records. There may be further ones; some may have been `added`."""

    def __init__(self, records: Sequence[object], refused: Refusal, added: Sequence[object] = ()) -> None:
        super().__init__(refused.message)
        self.records = records
        self.refused = refused
        self.added = added


class Problem(NamedTuple):
    """A row that was not imported, and why."""

    row: Row
    message: str

    @classmethod
    def of(cls, row: Row, refused: Refusal) -> Self:
        path = ".".join(refused.path[1:] if refused.path[:1] == ("input",) else refused.path)
        return cls(row, f"{path}: {refused.message}" if path else refused.message)

    def __str__(self) -> str:
        return f"{self.row.place}: {self.message}"


@dataclass(slots=True)
class Imported:
    """What an import did."""

    read: int = 0
    added: int = 0
    left_out: int = 0
    problems: list[Problem] = field(default_factory=list)
    altered: list[Problem] = field(default_factory=list)
    """Rows of which not everything was imported, and what not."""

    @property
    def existing(self) -> int:
        return self.read - self.added - self.left_out


async def import_records(
    rows: Iterable[Row], store: Store[T], on_problem: OnProblem, advance: Advance = lambda _: None
) -> Imported:
    """Add the records that rows have. Problems are part of what is returned."""
    done = Imported()
    passed = await store.begin()
    records = _parsed(islice(rows, passed, None), store, on_problem, done.problems)
    if on_problem is OnProblem.REFUSE:
        records = iter(list(records))
        if done.problems:
            return done
    batches = _limited_batches(records, store.at_once, lambda pair: len(pair[0].raw))
    while some := await _next(batches, store):
        goes_on = await _add(some, store, done, on_problem)
        advance(passed + done.read)
        if not goes_on:
            break
    await store.finish()
    return done


async def _next(batches: Iterator[T], store: Store[Any]) -> T | None:
    """In a thread, if a process that answers requests may import this: to parse a picture takes tens of milliseconds.

    Other sources may be databases, which their own thread alone may read.
    """
    return await asyncio.to_thread(next, batches, None) if isinstance(store, PreviewedStore) else next(batches, None)


class Preview(NamedTuple):
    """The rows that an import would add, and those that are not valid."""

    missing: Sequence[Row]
    problems: Sequence[Problem]


async def preview_records(rows: Iterable[Row], store: PreviewedStore[T], on_problem: OnProblem) -> Preview:
    """What `import_records` would do; nothing is added."""
    await store.begin()
    problems: list[Problem] = []
    # In a thread, since a process that answers requests previews what people paste.
    records = await asyncio.to_thread(lambda: list(_parsed(rows, store, on_problem, problems)))
    if problems and on_problem is OnProblem.REFUSE:
        return Preview((), problems)
    missing = await store.are_missing([record for _, record in records])
    return Preview([row for (row, _), is_missing in zip(records, missing, strict=True) if is_missing], problems)


async def _add(some: Sequence[tuple[Row, T]], store: Store[T], done: Imported, on_problem: OnProblem) -> bool:
    """Add records, and say whether others follow. If some are refused, all others are added, or those before them."""
    try:
        added = await store.add([record for _, record in some])
    except RecordRefused as failed:
        refused, new = set(map(id, failed.records)), set(map(id, failed.added))
        places = [place for place, (_, record) in enumerate(some) if id(record) in refused]
        is_skipped = on_problem is OnProblem.SKIP
        others = [pair for pair in (some if is_skipped else some[: places[0]]) if id(pair[1]) not in refused]
        done.added += sum(id(record) in new for _, record in others)
        if is_skipped:
            done.problems += [Problem.of(some[place][0], failed.refused) for place in places]
            return not others or await _add(others, store, done, on_problem)
        if not others or await _add(others, store, done, on_problem):
            done.problems.append(Problem.of(some[places[0]][0], failed.refused))
        return False
    done.read += len(some)
    done.added += added.new
    done.left_out += added.left_out
    rows = {id(record): row for row, record in some}
    done.altered += [Problem(rows[id(record)], message) for record, message in added.altered]
    return True


def _parsed(
    rows: Iterable[Row], store: Store[T], on_problem: OnProblem, problems: list[Problem]
) -> Iterator[tuple[Row, T]]:
    for row in rows:
        try:
            row.require_read()
            record = store.parse(row)
        except InvalidInput as refused:
            problems.append(Problem.of(row, refused))
            if on_problem is OnProblem.STOP:
                return
            continue
        yield row, record


def _limited_batches(items: Iterable[T], most: int, size: Callable[[T], int]) -> Iterator[list[T]]:
    """So many at a time, and no more than `MOST_BYTES`."""
    batch: list[T] = []
    total = 0
    for item in items:
        batch.append(item)
        total += size(item)
        if len(batch) == most or total >= MOST_BYTES:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


async def export_records(lines: AsyncIterable[bytes], target: BinaryIO, advance: Advance = lambda _: None) -> int:
    """Write lines, and return their number."""
    written = 0
    async for line in lines:
        target.write(line)
        written += 1
        advance(written)
    return written


def json_line(fields: Mapping[str, Any]) -> bytes:
    """A line of an export."""
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
