"""Ballots and votes.

A ballot is a drawn pair as a sealed token. Nothing is stored until the voter uses it.

    voter · board · number · lower and higher ordinal · whether the lower is left · expiry    as JSON
    the pair walk after this pair                                                             as bytes

It is accepted from the voter it names, before it expires, and only if that voter has no vote of its number yet.

A vote is a record of its own, written in one transaction with the counters it adds to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum, StrEnum
from functools import reduce
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import orjson

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Page, PageRequest, Table, Window, chunks
from datastore.dynamo.entity import Entity, Key, shard_of
from datastore.dynamo.paging import merge
from datastore.dynamo.retries import BATCH_READ
from datastore.dynamo.writes import Update, Write, absent
from datastore.refusals import Refusal
from datastore.values.seal import Forged, Seal
from datastore.voting.boards import BOARD, Board
from datastore.voting.contenders import CONTENDER, NAME, NO_VOTES, RESULTS, Contender, Counts, Name, ResultsBlock
from datastore.voting.pair_walk import PairWalk

# ── ballots ──

_PURPOSE = "ballot"


class TokenUnknown(Refusal):
    code = "TOKEN_UNKNOWN"
    explanation = "This pair was not drawn for you. Draw another one."


class TokenExpired(Refusal):
    code = "TOKEN_EXPIRED"
    explanation = "This pair was drawn too long ago. Draw again: the same pair comes."


class TokenSpent(Refusal):
    code = "TOKEN_SPENT"
    explanation = "You have decided about this pair before, and otherwise. Draw the next one."


class Verdict(Enum):
    """A voter's verdict on the pair as it was shown."""

    LEFT = "LEFT"
    RIGHT = "RIGHT"
    TIE = "TIE"
    SKIP = "SKIP"


@dataclass(frozen=True, slots=True)
class Ballot:
    """One pair issued to one voter: the ordinals of its sides, and the voter's walk after it."""

    voter: str
    board: str
    number: int
    left: int
    right: int
    expires_at: datetime
    walk: bytes
    order: str | None = None
    """The visitor in whose order of pairs a member goes on."""

    def sealed(self, seal: Seal) -> str:
        low, high = min(self.left, self.right), max(self.left, self.right)
        expires = round(self.expires_at.timestamp() * 1000)
        head = orjson.dumps([self.voter, self.board, self.number, low, high, self.left == low, expires, self.order])
        return seal.sign_text(_PURPOSE, len(head).to_bytes(2) + head + self.walk)

    @classmethod
    def opened(cls, seal: Seal, token: str) -> Ballot:
        """The ballot in a token; TokenUnknown if the token was not sealed here."""
        try:
            payload = seal.open_text(_PURPOSE, token)
        except Forged:
            raise TokenUnknown(path=("input", "token")) from None
        end = 2 + int.from_bytes(payload[:2])
        voter, board, number, low, high, low_is_left, expires, order = orjson.loads(payload[2:end])
        return cls(
            voter=voter,
            board=board,
            number=number,
            left=low if low_is_left else high,
            right=high if low_is_left else low,
            expires_at=datetime.fromtimestamp(expires / 1000, UTC),
            walk=payload[end:],
            order=order,
        )


# ── tallies ──

_LOOK_UPS = 160
"""Keys that a page of one contender's pairs looks up: 20 pairs in eight shards. Each costs half a read unit, always."""
_ORDINAL_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Tally:
    """One contender's votes in one shard."""

    board: str
    shard: int
    ordinal: int
    wins: int = 0
    losses: int = 0
    ties: int = 0


@dataclass(frozen=True, slots=True)
class PairTally:
    """The votes on one pair, in one shard or in all of them."""

    board: str
    shard: int
    low: int
    high: int
    low_wins: int = 0
    high_wins: int = 0
    ties: int = 0

    @property
    def votes(self) -> int:
        return self.low_wins + self.high_wins + self.ties


TALLY = Entity(Tally, Key("TALLY#{board}#{shard}", "CONTENDER#{ordinal:06d}"))
PAIR = Entity(PairTally, Key("TALLY#{board}#{shard}", "PAIR#{low:06d}#{high:06d}"))


async def read_contender_sums(table: Table, board: Board) -> Mapping[int, Counts]:
    """The counts of every contender with votes, by ordinal."""
    sums: dict[int, Counts] = {}

    async def add(shard: int) -> None:
        tallies = TALLY.on(board=board.slug, shard=shard)
        async for tally in table.iterate(tallies, consistent=True, at_once=1000):
            wins, losses, ties = sums.get(tally.ordinal, NO_VOTES)
            sums[tally.ordinal] = Counts(wins + tally.wins, losses + tally.losses, ties + tally.ties)

    await asyncio.gather(*(add(shard) for shard in range(board.read_shards)))
    return sums


async def read_pair_record(table: Table, board: Board, low: int, high: int) -> PairTally:
    """The head-to-head record of a pair, by consistent reads."""
    [record] = await _read_records(table, board.slug, range(board.read_shards), [(low, high)], consistent=True)
    return record


async def _read_records(
    table: Table, board: str, shards: Sequence[int], pairs: Sequence[tuple[int, int]], *, consistent: bool = False
) -> list[PairTally]:
    """The head-to-head record of each pair, as the sum of these shards."""
    keys = [PAIR.at(board=board, shard=shard, low=low, high=high) for low, high in pairs for shard in shards]
    records = {pair: PairTally(board, 0, *pair) for pair in pairs}
    for tally in await table.find_many(keys, consistent=consistent):
        records[tally.low, tally.high] = _sum(records[tally.low, tally.high], tally)
    return [records[pair] for pair in pairs]


async def read_pairs_page(table: Table, board: Board, request: PageRequest) -> Page[PairTally]:
    """The records of pairs that were voted on, in the order of their ordinals."""
    shards = [PAIR.on(board=board.slug, shard=shard) for shard in range(board.read_shards)]
    return await table.page(shards, request, combine=_record)


def _record(tallies: Sequence[PairTally]) -> PairTally | None:
    """The sum of a pair's tallies; None if all of its votes were voided."""
    record = reduce(_sum, tallies)
    return record if record.votes else None


def contender_pairs_request(board: str, ordinal: int, window: Window) -> PageRequest:
    return window.open(f"matchups {board}/{ordinal}")


async def read_contender_pairs_page(table: Table, board: Board, ordinal: int, request: PageRequest) -> Page[PairTally]:
    """The records of one contender's pairs that were voted on, in the opponents' joining order.

    Pairs with later contenders lie side by side in each shard, those with earlier ones must be looked up. A page looks
    up `_LOOK_UPS`, so it may have fewer records than asked for, or none; its end is then the last opponent looked at.
    """
    position = -1 if request.position is None else int(request.position)
    has_earlier = position + 1 < ordinal
    shards = await _shards_with_votes(table, board, ordinal) if has_earlier else range(board.read_shards)
    records: list[PairTally] = []
    end: int | None = None
    if shards and has_earlier:
        records, end = await _read_earlier(table, board.slug, shards, ordinal, position, request.wanted)
    if shards and end is None and len(records) < request.wanted:
        missing = request.wanted - len(records)
        later, end = await _read_later(table, board.slug, shards, ordinal, max(position, ordinal), missing)
        records += later
    read = [(str(record.high if record.low == ordinal else record.low), record) for record in records]
    return Page.cut(read, request, end=None if end is None else str(end))


async def _shards_with_votes(table: Table, board: Board, ordinal: int) -> list[int]:
    """The shards where a contender has votes. A vote is added to its pair and to its contenders in the same shard."""
    keys = [TALLY.at(board=board.slug, shard=shard, ordinal=ordinal) for shard in range(board.read_shards)]
    return [tally.shard for tally in await table.find_many(keys) if tally.wins + tally.losses + tally.ties]


async def _read_earlier(
    table: Table, board: str, shards: Sequence[int], ordinal: int, position: int, wanted: int
) -> tuple[list[PairTally], int | None]:
    """Records with the opponents after a position who joined earlier, and the last one looked at if more follow."""
    most = max(1, _LOOK_UPS // len(shards))
    # At first as many as are wanted: on most boards nearly all pairs were voted on.
    bounds = [min(position + 1 + number, ordinal) for number in (0, min(wanted, most), most)]
    records: list[PairTally] = []
    for start, end in pairwise(bounds):
        if len(records) < wanted:
            records += await _look_up(table, board, shards, [(opponent, ordinal) for opponent in range(start, end)])
    return records, None if bounds[-1] == ordinal else bounds[-1] - 1


async def _look_up(
    table: Table, board: str, shards: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> list[PairTally]:
    """The records of those pairs that were voted on."""
    step = max(1, BATCH_READ // len(shards))
    read = await asyncio.gather(*(_read_records(table, board, shards, batch) for batch in chunks(pairs, step)))
    return [record for records in read for record in records if record.votes]


async def _read_later(
    table: Table, board: str, shards: Sequence[int], ordinal: int, position: int, wanted: int
) -> tuple[list[PairTally], int | None]:
    """Records with the opponents after a position who joined later, and the last one looked at if more follow."""
    after = PAIR.sort_key(PairTally(board, 0, ordinal, position))
    partitions = [PAIR.on(board=board, shard=shard, low=ordinal).past(after) for shard in shards]
    # A second round would be needed only for pairs whose votes were all voided.
    merged = await merge(table, partitions, [wanted] * len(shards), wanted, combine=_record, most_rounds=1)
    end = None if merged.frontier is None else int(merged.frontier[-_ORDINAL_DIGITS:])
    return [record for _, record in merged.items], end


async def read_pair_tallies(table: Table, board: Board) -> list[PairTally]:
    """Every pair's tally in every shard. Consistent, since what follows from them is kept until the next settling."""

    async def read_shard(shard: int) -> list[PairTally]:
        tallies = table.iterate(PAIR.on(board=board.slug, shard=shard), at_once=1000, consistent=True)
        return [tally async for tally in tallies]

    shards = await asyncio.gather(*(read_shard(shard) for shard in range(board.read_shards)))
    return [tally for shard in shards for tally in shard]


def _sum(left: PairTally, right: PairTally) -> PairTally:
    low_wins, high_wins = left.low_wins + right.low_wins, left.high_wins + right.high_wins
    return replace(left, shard=0, low_wins=low_wins, high_wins=high_wins, ties=left.ties + right.ties)


# ── votes ──


class PairVerdict(StrEnum):
    """The verdict on a pair by its ordinals, whichever was shown on the left."""

    LOW_WINS = "lo"
    HIGH_WINS = "hi"
    TIE = "t"
    SKIP = "skip"


class Counters(NamedTuple):
    """The fields that a vote adds to: in the tallies of the lower and the higher ordinal, and in that of the pair."""

    low: str
    high: str
    pair: str


COUNTERS: Mapping[PairVerdict, Counters] = {
    PairVerdict.LOW_WINS: Counters("wins", "losses", "low_wins"),
    PairVerdict.HIGH_WINS: Counters("losses", "wins", "high_wins"),
    PairVerdict.TIE: Counters("ties", "ties", "ties"),
}


@dataclass(frozen=True, slots=True)
class Vote:
    """One verdict of one voter on one board, the `number`-th. `walk` is the voter's pair walk after this pair.

    `origin` names the `Origin` item that knows the address it came from, until that item expires. `voided_by` is the
    job that can bring it back. `order` is the visitor in whose order of pairs a member goes on (`continuing`), and
    `continued_by` the member who goes on instead of this voter.
    """

    voter: str
    board: str
    number: int
    low: int
    high: int
    verdict: PairVerdict
    at: datetime
    walk: bytes
    shard: int = 0
    void: bool = False
    origin: str | None = None
    voided_by: str | None = None
    order: str | None = None
    continued_by: str | None = None

    @property
    def is_verdict(self) -> bool:
        """False for the two items between which a walk changes hands; they are stored as skips of no pair."""
        return self.low != self.high

    @property
    def counts(self) -> bool:
        return self.verdict is not PairVerdict.SKIP and not self.void

    @property
    def can_count(self) -> bool:
        """Whether it counts, or a job can let it count again."""
        return self.counts or self.voided_by is not None

    def pair_walk(self) -> PairWalk:
        return PairWalk.unpacked(self.walk)


VOTE = Entity(Vote, Key("VOTER#{voter}#{board}", "VOTE#{number:010d}"))


def vote_on(ballot: Ballot, board: Board, verdict: Verdict, now: datetime, origin: str | None = None) -> Vote:
    """The vote that a verdict on a ballot makes."""
    return Vote(
        voter=ballot.voter,
        board=ballot.board,
        number=ballot.number,
        low=min(ballot.left, ballot.right),
        high=max(ballot.left, ballot.right),
        verdict=_pair_verdict(verdict, left_is_low=ballot.left < ballot.right),
        at=now,
        walk=ballot.walk,
        shard=shard_of(ballot.voter, board.write_shards),
        origin=origin,
        order=ballot.order,
    )


def _pair_verdict(verdict: Verdict, *, left_is_low: bool) -> PairVerdict:
    match verdict:
        case Verdict.TIE:
            return PairVerdict.TIE
        case Verdict.SKIP:
            return PairVerdict.SKIP
        case Verdict.LEFT | Verdict.RIGHT:
            return PairVerdict.LOW_WINS if (verdict is Verdict.LEFT) == left_is_low else PairVerdict.HIGH_WINS


_MOST_SEARCHED = 4_000
"""Skips and voided votes of one voter, about 1 MB, behind which a counted vote is not looked for."""


async def read_latest_vote(table: Table, voter: str, board: str) -> Vote | None:
    newest = await table.query(VOTE.on(voter=voter, board=board).newest_first(), limit=1, consistent=True)
    return newest.records[0] if newest.records else None


async def any_counts(table: Table, voter: str, board: str) -> bool:
    """Whether one of the voter's latest votes counts."""
    first: Vote | None = None
    async for vote in table.iterate(VOTE.on(voter=voter, board=board).newest_first(), consistent=True, at_once=1000):
        first = first or vote
        if vote.counts or first.number - vote.number >= _MOST_SEARCHED:
            return vote.counts
    return False


async def read_seen_pairs(table: Table, voter: str, board: str, cycle: int) -> frozenset[tuple[int, int]]:
    """The pairs that a voter has voted on or skipped in their present cycle, as lower and higher ordinal."""
    pairs: set[tuple[int, int]] = set()
    newest_first = VOTE.on(voter=voter, board=board).newest_first()
    async for vote in table.iterate(newest_first, consistent=True, at_once=1000):
        if vote.pair_walk().cycle != cycle:
            break
        if vote.is_verdict:
            pairs.add((vote.low, vote.high))
        elif vote.order is not None:
            pairs |= await read_seen_pairs(table, vote.order, board, cycle)
    return frozenset(pairs)


def all_votes(table: Table) -> AsyncIterator[Vote]:
    """The votes on all boards, in the order of the table."""
    return table.scan(VOTE)


def counter_updates(vote: Vote, by: int = 1) -> tuple[Update, ...]:
    """The updates of the two contenders' tallies and of their pair's, in the vote's shard. A skip has none."""
    if vote.verdict is PairVerdict.SKIP:
        return ()
    board, shard, low, high = vote.board, vote.shard, vote.low, vote.high
    counters = COUNTERS[vote.verdict]
    return (
        TALLY.update(TALLY.at(board=board, shard=shard, ordinal=low), add={counters.low: by}),
        TALLY.update(TALLY.at(board=board, shard=shard, ordinal=high), add={counters.high: by}),
        PAIR.update(PAIR.at(board=board, shard=shard, low=low, high=high), add={counters.pair: by}),
    )


def with_vote(record: PairTally, vote: Vote) -> PairTally:
    """The head-to-head record of a vote's pair with one more vote."""
    if vote.verdict is PairVerdict.SKIP:
        return record
    counter = COUNTERS[vote.verdict].pair
    return replace(record, **{counter: getattr(record, counter) + 1})


def vote_occurrence(unit: UnitOfWork, kind: Kind, vote: Vote) -> tuple[Write, ...]:
    return unit.occurred(kind, f"Vote:{vote.board}:{vote.number}:{vote.voter}")


async def read_vote(table: Table, voter: str, board: str, number: int) -> Vote | None:
    return await table.get(VOTE.at(voter=voter, board=board, number=number), consistent=True)


async def cast(table: Table, vote: Vote, unit: UnitOfWork) -> Vote:
    """Count a vote once. Return the stored vote of its number: this one, or an earlier one.

    It is recorded in the journal only if a webhook wants votes.
    """
    try:
        occurrence = vote_occurrence(unit, Kind.VOTE_CAST, vote)
        await unit.apply(table, VOTE.put(vote, when=absent()), *counter_updates(vote), *occurrence)
    except ConditionFailed as failed:
        return failed.stored(VOTE) or vote
    return vote


# ── auditing ──
# Reads for `ringside audit`: every record of boards, contenders and votes.

VotingRecord: TypeAlias = Board | Contender | Name | ResultsBlock | Tally | PairTally | Vote


def all_records(table: Table) -> AsyncIterator[VotingRecord]:
    return table.scan(BOARD, CONTENDER, NAME, RESULTS, TALLY, PAIR, VOTE)
