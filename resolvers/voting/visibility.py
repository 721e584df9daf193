"""What a viewer sees of boards: every record of voting becomes one of the types here before a field shows it.

A board's results are its number of votes, its contenders' counts, ranks and strengths, the order of its leaderboard and
its head-to-head records. All of them come from `results`, which knows the board and the viewer. What it answers reads
the pages itself, so that it decides about their order, counts and cursors too.

Where results are hidden, numbers are None and lists are empty, and nothing that depends on votes is read or waited for:
two boards that differ in their votes only are the same to the viewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import ClassVar, Final, NamedTuple, NewType

from datastore.dynamo import Page, PageRequest, Window
from datastore.refusals import NotFound
from datastore.voting import suspects as suspect_store
from datastore.voting.boards import Board, ResultsVisible
from datastore.voting.contenders import Contender, CountedContender, read_contenders_page
from datastore.voting.suspects import Suspect
from datastore.voting.votes import PairTally, read_contender_pairs_page, read_pair_record, read_pairs_page
from resolvers.requests.context import Context, Role
from resolvers.voting.bradley_terry import Strength, Strengths
from resolvers.voting.rules import is_over
from resolvers.voting.settling import BoardCache

# ── results ──

AS_STORED: Final[Mapping[str, str]] = {
    "BoardProgress": "The viewer's own.",
    "Ballot": "Made for the viewer; it names contenders, and its token hides the rest.",
    "Visit": "Made for the viewer.",
    "VoteCast": "The viewer's own verdict.",
    "VoterVoided": "For editors, who void it.",
    "Board.closed": "Its hours are public.",
    "Contender.description": "No result.",
    "Contender.link": "No result.",
    "Contender.svg": "No result.",
    "Contender.imageUrl": "No result.",
    "PicturePreview": "The viewer's own text.",
    "Query.previewContender": "The viewer's own text.",
}
"""What fields show without passing here, and why that gives nothing away."""

ShownContender = NewType("ShownContender", Contender)
"""A `CountedContender`, or a `HiddenContender`."""
ShownStrength = NewType("ShownStrength", Strength)


@dataclass(frozen=True, slots=True)
class ShownBoard(Board):
    """A board, and whether its results are hidden from the viewer."""

    results_hidden: bool = False


@dataclass(frozen=True, slots=True)
class HiddenContender(Contender):
    """A contender whose counts the viewer may not see."""

    wins: ClassVar[None] = None
    losses: ClassVar[None] = None
    ties: ClassVar[None] = None
    score: ClassVar[None] = None
    win_rate: ClassVar[None] = None


@dataclass(frozen=True, slots=True)
class LeaderboardPage(Page["LeaderboardRow"]):
    """A page of a leaderboard, and whether that is hidden from the viewer."""

    results_hidden: bool = False


class LeaderboardRow(NamedTuple):
    """A contender and its rank."""

    rank: int
    contender: ShownContender
    wins: int
    losses: int
    ties: int
    score: int

    @classmethod
    def of(cls, rank: int, leader: CountedContender) -> LeaderboardRow:
        return cls(rank, ShownContender(leader), leader.wins, leader.losses, leader.ties, leader.score)


@dataclass(frozen=True, slots=True)
class Matchup:
    """The head-to-head record of two contenders, as seen from one of them."""

    results: Results = field(repr=False)
    left_ordinal: int
    right_ordinal: int
    left_wins: int | None = None
    right_wins: int | None = None
    ties: int | None = None

    @property
    def votes(self) -> int | None:
        counts = (self.left_wins, self.right_wins, self.ties)
        return sum(count for count in counts if count is not None) if None not in counts else None


# ── whose results are hidden ──


async def _are_hidden(ctx: Context, board: Board) -> bool:
    if board.results_visible is ResultsVisible.ALWAYS or is_over(board, ctx.now()) or ctx.viewer.may(Role.EDITOR):
        return False
    if board.results_visible is ResultsVisible.AFTER_CLOSE:
        return True
    return not await board_cache(ctx).has_voted(ctx.viewer.id, board.slug)


def board_cache(ctx: Context) -> BoardCache:
    return ctx.services.get(BoardCache)


async def results(ctx: Context, board: Board) -> Results:
    """The results of a board, as far as the viewer may see them; of a board that they see, as that says."""
    hidden = board.results_hidden if isinstance(board, ShownBoard) else await _are_hidden(ctx, board)
    return Results(ctx, board, hidden)


async def results_of(ctx: Context, slug: str) -> Results:
    """The results of the board that a record names."""
    cached = await board_cache(ctx).boards.load(slug)
    if cached is None:
        raise NotFound
    return await results(ctx, cached.board)


async def contenders_of(places: Sequence[tuple[Results, int]]) -> list[ShownContender]:
    """The contenders that records name, those of a board together. None is ever deleted."""
    ordinals: dict[int, tuple[Results, list[int]]] = {}
    for results, ordinal in places:
        ordinals.setdefault(id(results), (results, []))[1].append(ordinal)
    found = {
        (of_board, each.ordinal): each
        for of_board, (results, wanted) in ordinals.items()
        for each in await results.contenders_at(wanted)
        if each is not None
    }
    return [found[id(results), ordinal] for results, ordinal in places]


async def settled_results(ctx: Context, slug: str) -> Results | None:
    """A board's results, which include all votes of two seconds ago; None if there is no such board.

    Hidden ones are not waited for: the time that it takes would tell whether somebody votes.
    """
    cached = await board_cache(ctx).boards.load(slug)
    if cached is None:
        return None
    shown = await results(ctx, cached.board)
    current = None if shown.hidden else await board_cache(ctx).board(slug)
    return shown if current is None else Results(ctx, current, hidden=False)


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a board, all of them shown or all `hidden`."""

    _ctx: Context
    _board: Board
    hidden: bool

    @property
    def board(self) -> ShownBoard:
        values = {each.name: getattr(self._board, each.name) for each in fields(Board)}
        return ShownBoard(**values, results_hidden=self.hidden)

    async def of_contenders(self, contenders: Sequence[Contender]) -> list[ShownContender]:
        if self.hidden:
            return [_without_counts(each) for each in contenders]
        counted = await board_cache(self._ctx).counted(self._board, contenders)
        return list(map(ShownContender, counted))

    async def contender(self, ordinal: int) -> ShownContender | None:
        return (await self.contenders_at([ordinal]))[0]

    async def contender_at(self, ordinal: int) -> ShownContender:
        """A contender that a record names."""
        found = await self.contender(ordinal)
        if found is None:
            raise NotFound
        return found

    async def contenders_at(self, ordinals: Sequence[int]) -> list[ShownContender | None]:
        cache = board_cache(self._ctx)
        if self.hidden:
            named = await cache.contenders_of(self._board, ordinals)
            return [None if each is None else _without_counts(each) for each in named]
        found = await cache.contenders_at(self._board, ordinals)
        return [None if each is None else ShownContender(each) for each in found]

    async def contenders(self, request: PageRequest) -> Page[ShownContender]:
        page = await read_contenders_page(self._ctx.table, self._board, request)
        return page.map(await self.of_contenders(page.nodes)).counted(self._board.size)

    async def rank(self, contender: ShownContender) -> int | None:
        if self.hidden or not isinstance(contender, CountedContender):
            return None
        return (await board_cache(self._ctx).results(self._board)).rank(contender.score)

    async def leaderboard(self, request: PageRequest) -> LeaderboardPage:
        if self.hidden:
            return empty_leaderboard(request, hidden=True)
        results = await board_cache(self._ctx).results(self._board)
        leaders = results.leaders(request.position, request.wanted)
        rows = [(results.place(each), LeaderboardRow.of(results.rank(each.score), each)) for each in leaders]
        return LeaderboardPage.cut(rows, request, total_count=self._board.contender_count)

    async def strength(self, contender: Contender) -> ShownStrength | None:
        if self.hidden:
            return None
        found = (await self._ctx.services.get(Strengths).load(self._board)).get(contender.ordinal)
        return None if found is None else ShownStrength(found)

    async def matchup(self, left: int, right: int) -> Matchup:
        if self.hidden:
            return Matchup(self, left, right)
        pair = (min(left, right), max(left, right))
        return self._matchup_of(await read_pair_record(self._ctx.table, self._board, *pair), left)

    async def matchups(self, request: PageRequest) -> Page[Matchup]:
        """The pairs with votes in the order of joining; the one that joined first is on the left."""
        if self.hidden:
            return Page.cut((), request)
        page = await read_pairs_page(self._ctx.table, self._board, request)
        return page.map([self._matchup_of(record, record.low) for record in page.nodes])

    async def matchups_of(self, contender: Contender, request: PageRequest) -> Page[Matchup]:
        """The matchups with this contender on the left, in the order in which the others joined."""
        if self.hidden:
            return Page.cut((), request)
        ordinal = contender.ordinal
        page = await read_contender_pairs_page(self._ctx.table, self._board, ordinal, request)
        return page.map([self._matchup_of(record, ordinal) for record in page.nodes])

    async def cast_matchup(self, left: int, right: int, record: PairTally | None) -> Matchup | None:
        """The record of a pair that was just voted on: the one given, if it is known."""
        if self.hidden:
            return None
        return await self.matchup(left, right) if record is None else self._matchup_of(record, left)

    def _matchup_of(self, record: PairTally, left: int) -> Matchup:
        if left == record.low:
            return Matchup(self, record.low, record.high, record.low_wins, record.high_wins, record.ties)
        return Matchup(self, record.high, record.low, record.high_wins, record.low_wins, record.ties)


def from_the_top(leaders: Sequence[CountedContender]) -> list[LeaderboardRow]:
    """Leaderboard rows with shared ranks, best first: 1, 1, 3."""
    rows: list[LeaderboardRow] = []
    for position, leader in enumerate(leaders, 1):
        is_shared = rows and rows[-1].score == leader.score
        rows.append(LeaderboardRow.of(rows[-1].rank if is_shared else position, leader))
    return rows


def empty_leaderboard(request: PageRequest, *, hidden: bool = False) -> LeaderboardPage:
    return LeaderboardPage.cut((), request, total_count=0, results_hidden=hidden)


def _without_counts(of: Contender) -> ShownContender:
    return ShownContender(HiddenContender(of.board, of.ordinal, of.name, of.created_at, of.retired, of.version))


# ── suspects ──


@dataclass(frozen=True, slots=True)
class ShownRankChange:
    """A contender whose rank would be another without a suspect."""

    board: str
    ordinal: int
    rank: int
    without: int


@dataclass(frozen=True, slots=True)
class ShownSuspect:
    """A suspect as editors see them: `voter` is a pseudonym."""

    voter: str
    votes: int
    reasons: Sequence[str]
    probability: float
    changes: Sequence[ShownRankChange]


@dataclass(frozen=True, slots=True)
class SuspectPage(Page[ShownSuspect]):
    """A page of the suspects whom a board's last search found."""

    computed_at: datetime | None = None
    votes_seen: int = 0
    expected_honest: float = 0.0


async def suspects_page(ctx: Context, board: str, at_most: float, window: Window) -> SuspectPage:
    search = await suspect_store.read_search(ctx.table, board)
    shown = search.shown if search else None
    request = window.open(f"suspects {board}\n{shown or ''}\n{at_most!r}")
    if search is None or shown is None or search.is_over(ctx.now()):
        return SuspectPage.cut((), request)
    page = await suspect_store.read_suspects_page(ctx.table, board, shown, at_most, request)
    suspects = [_shown_suspect(each) for each in page.nodes]
    found = {"computed_at": search.computed_at, "votes_seen": search.votes}
    return SuspectPage.of(page, suspects, **found, expected_honest=at_most * search.voters)


def _shown_suspect(found: Suspect) -> ShownSuspect:
    changes = [ShownRankChange(found.board, each.contender, each.rank, each.without) for each in found.changes]
    return ShownSuspect(found.pseudonym, found.votes, found.reasons, found.probability, changes)


async def changed_contender(ctx: Context, change: ShownRankChange, /) -> ShownContender:
    return await (await results_of(ctx, change.board)).contender_at(change.ordinal)


# ── what mutations answer with ──


async def show_board(ctx: Context, board: Board) -> ShownBoard:
    """Its results are hidden as they are now: a receipt has the board's settings of up to a week ago."""
    return Results(ctx, board, (await results_of(ctx, board.slug)).hidden).board


async def show_contender(ctx: Context, contender: Contender) -> ShownContender:
    (shown,) = await (await results_of(ctx, contender.board)).of_contenders([contender])
    return shown


# ── fields ──


def votes(_: Context, board: ShownBoard, /) -> int | None:
    return None if board.results_hidden else board.votes


async def rank(ctx: Context, contender: ShownContender, /) -> int | None:
    return None if contender.retired else await (await results_of(ctx, contender.board)).rank(contender)


async def strength(ctx: Context, row: LeaderboardRow, /) -> ShownStrength | None:
    return await (await results_of(ctx, row.contender.board)).strength(row.contender)
