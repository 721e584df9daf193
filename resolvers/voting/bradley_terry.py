"""Bradley-Terry strengths fitted to a board's head-to-head records, with 95 % intervals.

Contender i beats j with the odds e^(s_i - s_j). A tie counts as half a win for each. Every contender also has one
imaginary vote, half won and half lost, against an opponent of strength 0: an undefeated contender then has a finite
strength, and contenders that never met are comparable. Minorise-maximise steps find the maximum of that likelihood,
starting from the last known strengths, which are then shifted to a mean of 0.

The interval is the value ± 1.96 standard errors of the difference to the mean, from the inverse of the information
matrix. Up to `EXACT` contenders that inverse is computed. Above, its diagonal is 1/I_ii + Σ_j I_ij²/(I_ii²·I_jj), the
first terms of its series, which differs by a few percent on boards with many votes per contender.

The fit runs in a thread, never in a request. Its result is kept until the board changes; a request waits `WAIT`
seconds for a newer one and then shows the older.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, inf, log, sqrt

import structlog

from datastore.dynamo import DynamoError, Table
from datastore.voting.boards import Board
from datastore.voting.votes import read_pair_tallies
from resolvers.requests.context import Services
from resolvers.voting.settling import BoardCache

# ── strengths ──

WAIT = 0.5
WAIT_FOR_THE_FIRST = 3.0
EXACT = 150
STEPS = 500
CLOSE = 1e-6
_NORMAL_95 = 1.959963984540054
_FLATTEST = 1e-300
_IMAGINARY = 1.0

_log = structlog.get_logger("ringside.strength")


@dataclass(frozen=True, slots=True)
class Strength:
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Meeting:
    """The wins of two contenders against each other; a tie gives half a win to each."""

    one: int
    other: int
    won: float
    lost: float


async def read_meetings(table: Table, board: Board) -> list[Meeting]:
    return [
        Meeting(pair.low, pair.high, pair.low_wins + pair.ties / 2, pair.high_wins + pair.ties / 2)
        for pair in await read_pair_tallies(table, board)
        if pair.votes
    ]


# ── the fit ──


def fit(meetings: Sequence[Meeting], start: Mapping[int, float] | None = None) -> dict[int, Strength]:
    """The strength of every contender with at least one meeting."""
    opponents = _opponents(meetings)
    worth = _worths(opponents, start or {})
    order = sorted(opponents)
    values = {one: log(worth[one]) for one in order}
    mean = sum(values.values()) / len(values) if values else 0.0
    errors = _errors(order, opponents, worth)
    return {
        one: Strength(
            values[one] - mean, values[one] - mean - _NORMAL_95 * error, values[one] - mean + _NORMAL_95 * error
        )
        for one, error in zip(order, errors, strict=True)
    }


@dataclass(slots=True)
class _Record:
    won: float = _IMAGINARY / 2
    met: dict[int, float] = field(default_factory=dict)


def _opponents(meetings: Sequence[Meeting]) -> dict[int, _Record]:
    records: dict[int, _Record] = {}
    for meeting in meetings:
        for one, other, won in (
            (meeting.one, meeting.other, meeting.won),
            (meeting.other, meeting.one, meeting.lost),
        ):
            record = records.setdefault(one, _Record())
            record.won += won
            record.met[other] = record.met.get(other, 0.0) + meeting.won + meeting.lost
    return records


def _worths(records: Mapping[int, _Record], start: Mapping[int, float]) -> dict[int, float]:
    """The exponentials of the strengths: wins over expected wins per unit of worth, iterated until stable."""
    worth = {one: exp(start.get(one, 0.0)) for one in records}
    if not worth:
        return worth
    for _ in range(STEPS):
        moved = 0.0
        for one, record in records.items():
            mine = worth[one]
            expected = _IMAGINARY / (mine + 1.0)
            for other, times in record.met.items():
                expected += times / (mine + worth[other])
            new = record.won / expected
            moved = max(moved, abs(new - mine) / mine)
            worth[one] = new
        level = _level(worth)
        for one in worth:
            worth[one] *= level
        if max(moved, abs(level - 1)) < CLOSE:
            break
    return worth


def _level(worth: Mapping[int, float]) -> float:
    """The factor that makes the imaginary votes half won and half lost, as in the best fit.

    Only those few votes determine the common level, which would otherwise take thousands of steps to converge.
    """
    chances = [mine / (mine + 1.0) for mine in worth.values()]
    slope = sum(chance * (1.0 - chance) for chance in chances)
    # Far from the best fit, for instance where some lose every vote, an unbounded Newton step would lead farther away.
    step = sum(0.5 - chance for chance in chances) / max(slope, _FLATTEST)
    return exp(max(-1.0, min(1.0, step)))


def _errors(order: Sequence[int], records: Mapping[int, _Record], worth: Mapping[int, float]) -> list[float]:
    """Standard errors of the differences to the mean."""
    place = {one: index for index, one in enumerate(order)}
    information = [
        {place[other]: times * _spread(worth[one], worth[other]) for other, times in records[one].met.items()}
        for one in order
    ]
    diagonal = [
        sum(row.values()) + _IMAGINARY * _spread(worth[one], 1.0) for one, row in zip(order, information, strict=True)
    ]
    if len(order) <= EXACT:
        return _exact_errors(information, diagonal)
    return [
        sqrt(1 / own + sum(shared * shared / (own * own * diagonal[other]) for other, shared in row.items()))
        for row, own in zip(information, diagonal, strict=True)
    ]


def _spread(mine: float, theirs: float) -> float:
    """The variance of one vote: p(1-p)."""
    return mine * theirs / (mine + theirs) ** 2


def _exact_errors(information: Sequence[Mapping[int, float]], diagonal: Sequence[float]) -> list[float]:
    inverse = _inverse(information, diagonal)
    size = len(inverse)
    means = [sum(row) / size for row in inverse]
    overall = sum(means) / size if size else 0.0
    # The variance of s_i minus the mean of all; never below 0 but for rounding.
    return [sqrt(max(inverse[i][i] - 2 * means[i] + overall, 0.0)) for i in range(size)]


def _inverse(information: Sequence[Mapping[int, float]], diagonal: Sequence[float]) -> list[list[float]]:
    """Of a symmetric, diagonally dominant matrix: Gauss-Jordan needs no pivoting."""
    size = len(diagonal)
    rows = [[0.0] * size for _ in range(size)]
    for i, shares in enumerate(information):
        rows[i][i] = diagonal[i]
        for j, shared in shares.items():
            rows[i][j] -= shared
    for pivot in range(size):
        own = rows[pivot]
        scale = 1.0 / own[pivot]
        own[pivot] = 1.0
        own[:] = [value * scale for value in own]
        for i, row in enumerate(rows):
            if i != pivot and (factor := row[pivot]):
                row[pivot] = 0.0
                row[:] = [value - factor * of_pivot for value, of_pivot in zip(row, own, strict=True)]
    return rows


# ── kept per board ──


@dataclass(frozen=True, slots=True)
class _Fitted:
    stamp: tuple[int, int]
    strengths: Mapping[int, Strength]


class Strengths:
    """The strengths of the boards that were read most recently."""

    MOST = 150
    """More boards than one operation can ask for: what it names is not computed again for its next one."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._fits = services.cache.each("strengths", self._fit, kept=inf, most=self.MOST, built=True)

    async def load(self, board: Board) -> Mapping[int, Strength]:
        """The newest strengths available at once or within `WAIT` seconds."""
        fitted = self._fits.known(board.slug, inf)
        if fitted is None or fitted.stamp != board.stamp:
            try:
                async with asyncio.timeout(WAIT if fitted else WAIT_FOR_THE_FIRST):
                    fitted = await self._fits.load(board.slug)
            except TimeoutError:
                pass
            except DynamoError as error:
                _log.warning("strengths could not be computed; the old ones stay", board=board.slug, reason=str(error))
        return fitted.strengths if fitted else {}

    async def _fit(self, slug: str) -> _Fitted | None:
        cached = await self._services.get(BoardCache).boards.load(slug)
        if cached is None:
            return None
        board, before = cached.board, self._fits.known(slug, inf)
        meetings = await read_meetings(self._services.table, board)
        start = {ordinal: strength.value for ordinal, strength in before.strengths.items()} if before else None
        return _Fitted(board.stamp, await asyncio.to_thread(fit, meetings, start))
