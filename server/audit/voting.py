"""Votes, tallies and contenders agree; no voter sees a pair twice in a cycle; every name leads to its contender."""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from datastore.changes.unit_of_work import VISITOR_PREFIX
from datastore.voting.boards import BLOCK_SIZE, Board, all_boards
from datastore.voting.contenders import NO_VOTES, Contender, Counts, Name, ResultsBlock
from datastore.voting.votes import COUNTERS, PairTally, Tally, Vote, VotingRecord, all_records
from resolvers.requests.context import Services
from resolvers.voting.settling import BoardCache


@dataclass(slots=True)
class _Records:
    """One board's records, with its votes counted again."""

    board: Board | None = None
    contenders: dict[int, Contender] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    counts: dict[int, Counts] = field(default_factory=dict)
    tallied: Counter[tuple[int, str]] = field(default_factory=Counter)
    tallied_pairs: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    voted: Counter[tuple[int, str]] = field(default_factory=Counter)
    voted_pairs: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    shards: int = 0
    votes: dict[str, list[tuple[int, tuple[int, int, int]]]] = field(default_factory=lambda: defaultdict(list))
    """The number of each vote, and its cycle and pair, by voter."""

    def add(self, record: VotingRecord) -> None:
        match record:
            case Board():
                self.board = record
            case Contender():
                self.contenders[record.ordinal] = record
            case Name():
                self.names[record.folded] = record.ordinal
            case ResultsBlock():
                self.counts |= dict(enumerate(record.counts, record.block * BLOCK_SIZE))
            case Tally():
                self.shards = max(self.shards, record.shard + 1)
                for counter in ("wins", "losses", "ties"):
                    self.tallied[record.ordinal, counter] += getattr(record, counter)
            case PairTally():
                self.shards = max(self.shards, record.shard + 1)
                for counter in ("low_wins", "high_wins", "ties"):
                    self.tallied_pairs[record.low, record.high, counter] += getattr(record, counter)
            case Vote():
                self._add_vote(record)

    def _add_vote(self, vote: Vote) -> None:
        self.votes[vote.voter].append((vote.number, (vote.pair_walk().cycle, vote.low, vote.high)))
        if vote.counts:
            counters = COUNTERS[vote.verdict]
            self.voted[vote.low, counters.low] += 1
            self.voted[vote.high, counters.high] += 1
            self.voted_pairs[vote.low, vote.high, counters.pair] += 1


async def breaches(services: Services) -> AsyncIterator[str]:
    """Read every board first: that settles the votes which a killed process left unsettled, if this one may write."""
    unsettled = {board.slug async for board in all_boards(services.table) if not await _is_settled(services, board)}
    boards: dict[str, _Records] = defaultdict(_Records)
    async for record in all_records(services.table):
        boards[record.slug if isinstance(record, Board) else record.board].add(record)
    for slug, records in sorted(boards.items()):
        if records.board is None:
            yield f"voting: there are records of a board {slug}, but no board"
            continue
        settling = _left_unsettled if slug in unsettled else _settling_breaches
        for check in (_contender_breaches, _tally_breaches, settling):
            for breach in check(records.board, records):
                yield f"voting: {slug}: {breach}"
        for breach in _cycle_breaches(records):
            yield f"voting: {slug}: {breach}"


async def _is_settled(services: Services, board: Board) -> bool:
    cache = services.get(BoardCache)
    await cache.board(board.slug)
    current = await cache.boards.load(board.slug)
    return current is None or not cache.settler(board.slug).is_overdue(current)


def _contender_breaches(board: Board, records: _Records) -> Iterator[str]:
    """Ordinals have no gaps; names, retirements and restorations are stored in two places that agree."""
    if sorted(records.contenders) != list(range(board.size)):
        yield f"{board.size} ordinals were given out, and there are {len(records.contenders)} contenders"
    for ordinal, contender in records.contenders.items():
        if records.names.get(contender.sort_name) != ordinal:
            yield f"the name {contender.name!r} does not lead to its contender {ordinal}"
        if contender.retired == board.eligible.has(ordinal):
            yield f"{contender.name!r} is {'' if contender.retired else 'not '}retired, and the board says otherwise"
    if len(records.names) != len(records.contenders):
        yield f"{len(records.names)} names for {len(records.contenders)} contenders"


def _tally_breaches(board: Board, records: _Records) -> Iterator[str]:
    """Tallies equal a recount of the votes."""
    if records.shards > board.read_shards:
        yield f"votes are counted in {records.shards} shards, but only {board.read_shards} are read"
    for ordinal, counter in sorted(records.voted.keys() | records.tallied.keys()):
        tallied, voted = records.tallied[ordinal, counter], records.voted[ordinal, counter]
        if tallied != voted:
            yield f"contender {ordinal} has {tallied} {counter} tallied and {voted} voted"
    for low, high, counter in sorted(records.voted_pairs.keys() | records.tallied_pairs.keys()):
        tallied, voted = records.tallied_pairs[low, high, counter], records.voted_pairs[low, high, counter]
        if tallied != voted:
            yield f"the pair {low}, {high} has {tallied} {counter} tallied and {voted} voted"


def _left_unsettled(_: Board, __: _Records) -> Iterator[str]:
    """What the board shows says nothing then."""
    yield (
        "votes that a process has left are not settled, and this process could not settle them: it needs the right to "
        "write. Ask the service for the board, which settles it, and audit again"
    )


def _settling_breaches(board: Board, records: _Records) -> Iterator[str]:
    """The board's votes and its contenders' counts equal the tallies."""
    votes = sum(records.voted_pairs.values())
    if votes != board.votes:
        yield f"the board shows {board.votes} votes, and {votes} were counted (settled within two seconds of a read)"
    for ordinal, contender in records.contenders.items():
        sums = Counts(*(records.tallied[ordinal, counter] for counter in ("wins", "losses", "ties")))
        shown = records.counts.get(ordinal, NO_VOTES)
        if shown != sums:
            yield f"{contender.name!r} shows {tuple(shown)}, and its tallies add up to {tuple(sums)}"


def _cycle_breaches(records: _Records) -> Iterator[str]:
    """A member's votes are numbered without a gap, and no pair of a voter's comes twice in a cycle.

    A visitor may have ballots left when the member who went on with their walk is erased with their votes.
    """
    for voter, votes in records.votes.items():
        is_visitor = voter.startswith(VISITOR_PREFIX)
        if not is_visitor and sorted(number for number, _ in votes) != list(range(1, len(votes) + 1)):
            yield f"the votes of {voter} are not numbered 1 to {len(votes)}"
        for (cycle, low, high), times in Counter(pair for _, pair in votes).items():
            if times > 1:
                yield f"{voter} voted on the pair {low}, {high} {times} times in cycle {cycle}"
