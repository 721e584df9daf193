"""What editors do: change boards; add contenders, change, retire and restore them.

Every change of a contender writes it and the board's `contender_changes` in one transaction.

A retired contender keeps its row, name and records. Nothing is counted again when it is restored: votes on ballots
drawn before its retirement kept being added to its tallies.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Stale, Table, check_before_each_attempt, optimistic
from datastore.dynamo.entity import shard_of
from datastore.dynamo.writes import Put, Write, absent, present, where
from datastore.refusals import Conflict, NotFound, require_revision
from datastore.voting.boards import (
    BLOCK_SIZE,
    BOARD,
    MAIN,
    Board,
    BoardWithMarks,
    board_not_found,
    ensure_main,
    read_board_with_marks,
    shard_count,
)
from datastore.voting.contenders import (
    CONTENDER,
    DETAILS,
    IMPORTED_NAME,
    NAME,
    NO_VOTES,
    PICTURE,
    RESULTS,
    Contender,
    ContenderKey,
    Counts,
    Details,
    ImportedName,
    Name,
    Picture,
    ResultsBlock,
    read_contender,
)
from datastore.voting.votes import COUNTERS, PAIR, TALLY, VOTE, PairTally, Tally, Vote

# ── what may change ──

MAX_CONTENDERS = 10_000
"""Per board, retired ones included. Settling reads as many tallies per shard, and there are 50 million pairs."""

_MAX_LATEST_RESTORED = 64
"""Restorations that a board names. A voter who has not drawn since an earlier one meets the pairs they missed in their
next cycle."""

_CHANGED = {"contender_changes": 1}


@dataclass(frozen=True, slots=True)
class ContenderChange:
    """An editor's new or changed contender. A name of None leaves the name, an `svg` of None removes the picture.

    `details` has the changed fields of `Details`. An import remembers the name it gave. `revision` is the one that the
    editor saw, if they say so.
    """

    request_id: str
    name: str | None
    svg: str | None = None
    replaces_picture: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)
    imported: bool = False
    revision: int | None = None


# ── boards ──

_SETTINGS = ("title", "opens_at", "closes_at", "electorate", "members_since", "results_visible", "revision")


async def change_board(
    table: Table, slug: str, change: Callable[[Board], Board], check: Callable[[Board, Board], None], unit: UnitOfWork
) -> Board:
    """Change a board's settings. `check` may refuse the board before and after, at each attempt to write it."""

    async def write(current: BoardWithMarks | None) -> Board:
        if current is None:
            raise board_not_found(slug, "slug")
        before = current.board
        after = replace(change(before), revision=before.revision + 1)
        new = {name: getattr(after, name) for name in _SETTINGS}
        put = BOARD.update(BOARD.item_key(before), values=new, when=where(revision=before.revision))
        with check_before_each_attempt(partial(check, before, after)):
            await unit.transact(table, after, put, *unit.occurred(Kind.BOARD_CHANGED, f"Board:{slug}"))
        return after

    return await optimistic(lambda: read_board_with_marks(table, slug), write)


# ── new and changed contenders ──


def _conflicting_names(failed: ConditionFailed) -> list[Name]:
    """The stored names that made a transaction fail."""
    items = [item for item in failed.failures.values() if item]
    return [NAME.read(item) for item in items if NAME.recognises(item["pk"]["S"], item["sk"]["S"])]


def _name_taken(name: str) -> Conflict:
    return Conflict(f"This board already has a contender called {name}. Choose another name.", path=("input", "name"))


async def add_contender(
    table: Table, board: str, change: ContenderChange, now: datetime, unit: UnitOfWork
) -> Contender:
    """Take the next ordinal and write the name, the row and the picture, all or none. Conflict if the name is taken."""

    async def add(unnamed: Contender) -> Contender:
        contender = replace(unnamed, name=change.name or "")
        try:
            occurrence = _occurrence(unit, Kind.CONTENDER_ADDED, contender)
            await unit.transact(table, contender, *_additions(contender, change), *occurrence)
        except ConditionFailed as failed:
            for name in _conflicting_names(failed):
                if name.request_id != change.request_id:
                    raise _name_taken(contender.name) from None
                return replace(contender, ordinal=name.ordinal)  # added by an earlier attempt whose answer was lost
            raise Stale from None
        return contender

    return await optimistic(lambda: _next_contender(table, board, now), add)


def _occurrence(unit: UnitOfWork, kind: Kind, contender: Contender) -> Iterable[Write]:
    return unit.occurred(kind, f"Contender:{contender.node_key}")


def _additions(contender: Contender, change: ContenderChange) -> Iterator[Write]:
    board, ordinal = contender.board, contender.ordinal
    yield BOARD.update(BOARD.at(slug=board), values={"size": ordinal + 1}, add=_CHANGED, when=where(size=ordinal))
    yield NAME.put(Name(board, contender.sort_name, ordinal, change.request_id), when=absent())
    yield CONTENDER.put(contender, when=absent())
    if change.imported:
        yield IMPORTED_NAME.put(ImportedName(board, contender.sort_name, ordinal))
    if change.svg is not None:
        yield PICTURE.put(Picture(board, ordinal, change.svg))
    details = Details(board, ordinal, **change.details)
    if not details.is_empty:
        yield DETAILS.put(details)


async def _next_contender(table: Table, slug: str, now: datetime) -> Contender:
    """A contender without a name at the board's next ordinal. The board `main` is created if it does not exist."""
    current = await read_board_with_marks(table, slug)
    if current is None and slug == MAIN:
        await ensure_main(table, now)
        current = await read_board_with_marks(table, slug)
    if current is None:
        raise board_not_found(slug)
    if current.board.size >= MAX_CONTENDERS:
        raise Conflict(
            f"This board has had {MAX_CONTENDERS} contenders, which is the limit. Start another board.",
            path=("input", "board"),
        )
    return Contender(slug, current.board.size, "", now)


async def change_contender(table: Table, key: ContenderKey, change: ContenderChange, unit: UnitOfWork) -> Contender:
    """Change a contender's name, picture and details. Conflict if the name is taken."""

    async def write(current: Contender | None) -> Contender:
        # After the contender, whose version then says that they are what was read.
        details = await table.get(DETAILS.at(board=key[0], ordinal=key[1]), consistent=True)
        if current is None:
            raise NotFound(path=("input", "contender"))
        require_revision(current.revision, change.revision)
        name = change.name or current.name
        changed = replace(current, name=name, version=current.version + 1)
        try:
            await unit.transact(
                table,
                changed,
                *_changes(current, changed, change),
                *_on_details(replace(details or Details(*key), **change.details), change),
                *_occurrence(unit, Kind.CONTENDER_CHANGED, changed),
            )
        except ConditionFailed as failed:
            if any(name.ordinal != changed.ordinal for name in _conflicting_names(failed)):
                raise _name_taken(changed.name) from None
            raise
        return changed

    return await optimistic(lambda: read_contender(table, *key), write)


def _changes(current: Contender, changed: Contender, change: ContenderChange) -> Iterator[Write]:
    board, ordinal = current.board, current.ordinal
    yield CONTENDER.update_with_indexes(changed, "name", "version", when=where(version=current.version))
    if change.replaces_picture and change.svg is None:
        yield PICTURE.delete(PICTURE.at(board=board, ordinal=ordinal))
    elif change.replaces_picture and change.svg is not None:
        yield PICTURE.put(Picture(board, ordinal, change.svg))
    if changed.sort_name != current.sort_name:
        yield NAME.put(Name(board, changed.sort_name, ordinal, change.request_id), when=absent())
        yield NAME.delete(NAME.at(board=board, folded=current.sort_name))
    yield BOARD.update(BOARD.at(slug=board), add=_CHANGED, when=present())


def _on_details(changed: Details, change: ContenderChange) -> Iterator[Write]:
    """No condition: the contender's version, which every change raises, says that they are what was read."""
    if change.details:
        yield DETAILS.delete(DETAILS.item_key(changed)) if changed.is_empty else DETAILS.put(changed)


# ── retirement ──


async def set_retired(table: Table, key: ContenderKey, unit: UnitOfWork, *, retired: bool) -> Contender:
    """Remove a contender from the leaderboard and from every draw, or bring it back. Its row, name and records stay."""

    async def read() -> tuple[Contender | None, BoardWithMarks | None]:
        return await asyncio.gather(read_contender(table, *key), read_board_with_marks(table, key[0]))

    async def write(found: tuple[Contender | None, BoardWithMarks | None]) -> Contender:
        contender, current = found
        if contender is None or current is None:
            raise NotFound(path=("input", "contender"))
        if contender.retired == retired:
            await unit.store_receipt(table, contender)
            return contender
        changed = replace(contender, retired=retired, version=contender.version + 1)
        writes = (
            CONTENDER.update_with_indexes(changed, "retired", "version", when=where(version=contender.version)),
            _retirement_on_board(current.board, changed),
            *_occurrence(unit, Kind.CONTENDER_RETIRED if retired else Kind.CONTENDER_RESTORED, changed),
        )
        await unit.transact(table, changed, *writes)
        return changed

    return await optimistic(read, write, idempotent=True)


def _retirement_on_board(board: Board, contender: Contender) -> Write:
    """The board's bit set with or without a contender; a restoration is noted."""
    bit = 1 << contender.ordinal
    retired = board.eligible.retired | bit if contender.retired else board.eligible.retired & ~bit
    values: dict[str, Any] = {"retired": f"{retired:x}"}
    if not contender.retired:
        latest = (*board.latest_restored, contender.ordinal)[-_MAX_LATEST_RESTORED:]
        values |= {"restorations": board.restorations + 1, "latest_restored": latest}
    return BOARD.update(
        BOARD.item_key(board),
        values=values,
        add=_CHANGED,
        when=where(contender_changes=board.contender_changes),
    )


# ── seeding ──
# Seeding: writes a board with its contenders and votes in bulk, counted as if each vote had been cast.

_REQUEST_ID = "demo"


class Shown(NamedTuple):
    """What is shown about a seeded contender besides its name."""

    svg: str
    description: str


async def seed_board(
    table: Table, board: Board, contenders: Mapping[Contender, Shown], votes: Sequence[Vote], now: datetime
) -> bool:
    """Write a board with its contenders, what is shown about them, and their votes. False if the board has contenders.

    The board is written last. Nothing else is visible without it, so an interrupted seeding can be repeated.
    """
    shards = shard_count(len(contenders), board.rate)
    votes = [replace(vote, shard=shard_of(vote.voter, shards)) for vote in votes]
    await table.write_many(_items(board.slug, contenders, votes))
    counted = replace(
        board,
        size=len(contenders),
        contender_changes=len(contenders),
        votes=sum(vote.counts for vote in votes),
        read_shards=shards,
        term=1,
        settled=1,
        settled_at=now,
    )
    return await table.try_write(BOARD.put(counted, when=absent() | where(size=0)))


def _tallies(board: str, votes: Sequence[Vote]) -> Iterator[Tally]:
    counts: dict[tuple[int, int], Counter[str]] = {}
    for vote in votes:
        if vote.counts:
            counters = COUNTERS[vote.verdict]
            counts.setdefault((vote.shard, vote.low), Counter())[counters.low] += 1
            counts.setdefault((vote.shard, vote.high), Counter())[counters.high] += 1
    return (Tally(board, shard, ordinal, **numbers) for (shard, ordinal), numbers in counts.items())


def _pair_tallies(board: str, votes: Sequence[Vote]) -> Iterator[PairTally]:
    counts: dict[tuple[int, int, int], Counter[str]] = {}
    for vote in votes:
        if vote.counts:
            counts.setdefault((vote.shard, vote.low, vote.high), Counter())[COUNTERS[vote.verdict].pair] += 1
    return (PairTally(board, shard, low, high, **numbers) for (shard, low, high), numbers in counts.items())


def _items(board: str, contenders: Mapping[Contender, Shown], votes: Sequence[Vote]) -> Iterator[Put]:
    tallies = list(_tallies(board, votes))
    for contender, shown in contenders.items():
        yield CONTENDER.put(contender)
        yield NAME.put(Name(board, contender.sort_name, contender.ordinal, _REQUEST_ID))
        yield PICTURE.put(Picture(board, contender.ordinal, shown.svg))
        yield DETAILS.put(Details(board, contender.ordinal, shown.description))
    yield from map(VOTE.put, votes)
    yield from map(TALLY.put, tallies)
    yield from map(PAIR.put, _pair_tallies(board, votes))
    yield from _results(board, len(contenders), tallies)


def _results(board: str, contenders: int, tallies: Sequence[Tally]) -> Iterator[Put]:
    sums: dict[int, Counts] = {}
    for tally in tallies:
        wins, losses, ties = sums.get(tally.ordinal, NO_VOTES)
        sums[tally.ordinal] = Counts(wins + tally.wins, losses + tally.losses, ties + tally.ties)
    for block in range(-(-contenders // BLOCK_SIZE)):
        yield RESULTS.put(ResultsBlock.of(board, block, sums))
