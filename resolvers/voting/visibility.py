"""What a viewer sees of boards: every record of voting becomes one of the types here before a field shows it.

A board's results are its number of votes, its contenders' counts, ranks and strengths, the order of its leaderboard and
its head-to-head records. All of them come from `results`, which knows the board and the viewer. What it answers reads
the pages itself, so that it decides about their order, counts and cursors too. Today it shows everybody everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, NewType

from datastore.dynamo import Page, PageRequest
from datastore.refusals import NotFound
from datastore.voting.boards import Board
from datastore.voting.contenders import Contender, CountedContender, read_contenders_page
from datastore.voting.votes import PairTally, read_contender_pairs_page, read_pair_record, read_pairs_page
from resolvers.requests.context import Context
from resolvers.voting.bradley_terry import Strength, Strengths
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
}
"""What fields show without passing here, and why that gives nothing away."""

ShownBoard = NewType("ShownBoard", Board)
ShownContender = NewType("ShownContender", CountedContender)
ShownStrength = NewType("ShownStrength", Strength)


class LeaderboardRow(NamedTuple):
    """A contender and its rank."""

    rank: int
    contender: ShownContender

    @property
    def wins(self) -> int:
        return self.contender.wins

    @property
    def losses(self) -> int:
        return self.contender.losses

    @property
    def ties(self) -> int:
        return self.contender.ties

    @property
    def score(self) -> int:
        return self.contender.score


@dataclass(frozen=True, slots=True)
class Matchup:
    """The head-to-head record of two contenders, as seen from one of them."""

    results: Results = field(repr=False)
    left_ordinal: int
    right_ordinal: int
    left_wins: int
    right_wins: int
    ties: int

    @property
    def votes(self) -> int:
        return self.left_wins + self.right_wins + self.ties


def board_cache(ctx: Context) -> BoardCache:
    return ctx.services.get(BoardCache)


async def results(ctx: Context, board: Board) -> Results:
    """The results of a board, as far as the viewer may see them."""
    return Results(ctx, board)


async def results_of(ctx: Context, slug: str) -> Results:
    """The results of the board that a record names."""
    cached = await board_cache(ctx).boards.load(slug)
    if cached is None:
        raise NotFound
    return await results(ctx, cached.board)


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a board, all of them shown."""

    _ctx: Context
    _board: Board

    @property
    def board(self) -> ShownBoard:
        return ShownBoard(self._board)

    async def of_contenders(self, contenders: Sequence[Contender]) -> list[ShownContender]:
        counted = await board_cache(self._ctx).counted(self._board, contenders)
        return list(map(ShownContender, counted))

    async def contender(self, ordinal: int) -> ShownContender | None:
        found = await board_cache(self._ctx).contender(self._board, ordinal)
        return None if found is None else ShownContender(found)

    async def contender_at(self, ordinal: int) -> ShownContender:
        """A contender that a record names."""
        found = await self.contender(ordinal)
        if found is None:
            raise NotFound
        return found

    async def contenders(self, request: PageRequest) -> Page[ShownContender]:
        page = await read_contenders_page(self._ctx.table, self._board, request)
        return page.map(await self.of_contenders(page.nodes)).counted(self._board.size)

    async def rank(self, contender: ShownContender) -> int:
        return (await board_cache(self._ctx).results(self._board)).rank(contender.score)

    async def leaderboard(self, request: PageRequest) -> Page[LeaderboardRow]:
        results = await board_cache(self._ctx).results(self._board)
        leaders = results.leaders(request.position, request.wanted)
        rows = [
            (results.place(each), LeaderboardRow(results.rank(each.score), ShownContender(each))) for each in leaders
        ]
        return Page.cut(rows, request).counted(self._board.contender_count)

    def from_the_top(self, leaders: Sequence[CountedContender]) -> list[LeaderboardRow]:
        """Leaderboard rows with shared ranks, best first: 1, 1, 3."""
        rows: list[LeaderboardRow] = []
        for position, leader in enumerate(map(ShownContender, leaders), 1):
            is_shared = rows and rows[-1].score == leader.score
            rows.append(LeaderboardRow(rows[-1].rank if is_shared else position, leader))
        return rows

    async def strength(self, contender: Contender) -> ShownStrength | None:
        found = (await self._ctx.services.get(Strengths).load(self._board)).get(contender.ordinal)
        return None if found is None else ShownStrength(found)

    async def matchup(self, left: int, right: int) -> Matchup:
        pair = (min(left, right), max(left, right))
        return self.matchup_of(await read_pair_record(self._ctx.table, self._board, *pair), left)

    async def matchups(self, request: PageRequest) -> Page[Matchup]:
        """The pairs with votes in the order of joining; the one that joined first is on the left."""
        page = await read_pairs_page(self._ctx.table, self._board, request)
        return page.map([self.matchup_of(record, record.low) for record in page.nodes])

    async def matchups_of(self, contender: Contender, request: PageRequest) -> Page[Matchup]:
        """The matchups with this contender on the left, in the order in which the others joined."""
        ordinal = contender.ordinal
        page = await read_contender_pairs_page(self._ctx.table, self._board, ordinal, request)
        return page.map([self.matchup_of(record, ordinal) for record in page.nodes])

    def matchup_of(self, record: PairTally, left: int) -> Matchup:
        if left == record.low:
            return Matchup(self, record.low, record.high, record.low_wins, record.high_wins, record.ties)
        return Matchup(self, record.high, record.low, record.high_wins, record.low_wins, record.ties)


# ── what mutations answer with ──


async def show_board(ctx: Context, board: Board) -> ShownBoard:
    return (await results(ctx, board)).board


async def show_contender(ctx: Context, contender: Contender) -> ShownContender:
    (shown,) = await (await results_of(ctx, contender.board)).of_contenders([contender])
    return shown


# ── fields ──


async def rank(ctx: Context, contender: ShownContender, /) -> int | None:
    return None if contender.retired else await (await results_of(ctx, contender.board)).rank(contender)


async def strength(ctx: Context, row: LeaderboardRow, /) -> ShownStrength | None:
    return await (await results_of(ctx, row.contender.board)).strength(row.contender)
