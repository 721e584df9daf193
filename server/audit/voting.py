"""Votes, tallies and rows agree, no voter met a pair twice in a cycle, and every name leads to its contender."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from datastore.voting import (
    BOARD,
    CONTENDER,
    NAME,
    PAIR,
    TALLY,
    VOTE,
    Board,
    Contender,
    Name,
    PairTally,
    Tally,
    Vote,
    all_boards,
)
from resolvers.context import Services
from resolvers.voting.board_cache import BoardCache

_COUNTER = {"lo": ("wins", "losses"), "hi": ("losses", "wins"), "t": ("ties", "ties")}


@dataclass(slots=True)
class _Seen:
    """One board's records."""

    board: Board | None = None
    rows: dict[int, Contender] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    tallied: Counter[tuple[int, str]] = field(default_factory=Counter)
    tallied_pairs: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    voted: Counter[tuple[int, str]] = field(default_factory=Counter)
    voted_pairs: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    shards: int = 0
    votes: dict[str, list[tuple[int, tuple[int, int, int]]]] = field(default_factory=lambda: defaultdict(list))


async def breaches(services: Services) -> AsyncIterator[str]:
    """As a reader finds the table: one who looks at a board settles what a killed process left."""
    async for board in all_boards(services.table):
        await services.get(BoardCache).board(board.slug)
    boards: dict[str, _Seen] = defaultdict(_Seen)
    async for record in services.table.scan(BOARD, CONTENDER, NAME, TALLY, PAIR, VOTE):
        _note(boards[record.slug if isinstance(record, Board) else record.board], record)
    for slug, seen in sorted(boards.items()):
        if seen.board is None:
            yield f"voting: there are records of a board {slug}, but no board"
            continue
        for breach in (*_roll(seen.board, seen), *_sums(seen.board, seen), *_cycles(seen)):
            yield f"voting: {slug}: {breach}"


def _note(seen: _Seen, record: Board | Contender | Name | Tally | PairTally | Vote) -> None:
    match record:
        case Board():
            seen.board = record
        case Contender():
            seen.rows[record.ordinal] = record
        case Name():
            seen.names[record.folded] = record.ordinal
        case Tally():
            seen.shards = max(seen.shards, record.shard + 1)
            for name, number in (("wins", record.w), ("losses", record.l), ("ties", record.t)):
                seen.tallied[record.ordinal, name] += number
        case PairTally():
            seen.shards = max(seen.shards, record.shard + 1)
            for name in ("lo", "hi", "t"):
                seen.tallied_pairs[record.low, record.high, name] += getattr(record, name)
        case Vote():
            seen.votes[record.voter].append((record.number, (record.pair_walk().cycle, record.low, record.high)))
            if record.counts:
                of_low, of_high = _COUNTER[record.verdict.value]
                seen.voted[record.low, of_low] += 1
                seen.voted[record.high, of_high] += 1
                seen.voted_pairs[record.low, record.high, record.verdict.value] += 1


def _roll(board: Board, seen: _Seen) -> Iterator[str]:
    """Ordinals are given out without a gap, names and retirements are kept in two places that agree."""
    if sorted(seen.rows) != list(range(board.size)):
        yield f"{board.size} ordinals were given out, and there are {len(seen.rows)} contenders"
    for ordinal, row in seen.rows.items():
        if seen.names.get(row.sort_name) != ordinal:
            yield f"the name {row.name!r} does not lead to its contender {ordinal}"
        if row.retired == board.eligible.has(ordinal):
            yield f"{row.name!r} is {'' if row.retired else 'not '}retired, and the board says otherwise"
    if len(seen.names) != len(seen.rows):
        yield f"{len(seen.names)} names for {len(seen.rows)} contenders"


def _sums(board: Board, seen: _Seen) -> Iterator[str]:
    """Votes make the tallies; settled rows are their sums."""
    if seen.shards > board.spread:
        yield f"votes are counted in {seen.shards} shards, and readers sum {board.spread}"
    for key in seen.voted | seen.tallied:
        if seen.voted[key] != seen.tallied[key]:
            yield f"contender {key[0]} has {seen.tallied[key]} {key[1]} tallied and {seen.voted[key]} voted"
    for pair in seen.voted_pairs | seen.tallied_pairs:
        if seen.voted_pairs[pair] != seen.tallied_pairs[pair]:
            yield f"the pair {pair} has {seen.tallied_pairs[pair]} tallied and {seen.voted_pairs[pair]} voted"
    votes = sum(seen.voted_pairs.values())
    if votes != board.votes:
        yield f"the board says {board.votes} votes, and {votes} were counted (settled within two seconds of a read)"
    for ordinal, row in seen.rows.items():
        sums = tuple(seen.tallied[ordinal, name] for name in ("wins", "losses", "ties"))
        if row.counts != sums:
            yield f"{row.name!r} shows {row.counts}, and its tallies make {sums}"


def _cycles(seen: _Seen) -> Iterator[str]:
    """A voter's votes are numbered without a gap, and no pair comes twice in a cycle."""
    for voter, votes in seen.votes.items():
        if sorted(number for number, _ in votes) != list(range(1, len(votes) + 1)):
            yield f"the votes of {voter} are not numbered 1 to {len(votes)}"
        for met, times in Counter(met for _, met in votes).items():
            if times > 1:
                cycle, low, high = met
                yield f"{voter} met the pair {low}, {high} {times} times in cycle {cycle}"
