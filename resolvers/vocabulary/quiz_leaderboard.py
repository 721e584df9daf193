"""A day's quizzes, ranked.

The schema publishes the rule: more correct answers; then the better accuracy; then fewer quizzes. Members who are
equal in all three share a rank, and the next member's rank counts them all: 1, 1, 3.

A day's leaderboard is built from all of the day's results and cached. It is built again after two seconds, or after
twenty times as long as building it took. The process's own writes are added to it at once.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from datastore import vocabulary as vocabulary_store
from datastore.dynamo import Page, PageRequest, SingleFlight, best_first, shared_context, within_deadline
from datastore.vocabulary import QuizResult, Sentence

if TYPE_CHECKING:
    from resolvers.context import Services

SECONDS = 2.0
_BUILD_TIMES = 20
_MAX_DAYS = 8
_MAX_WRITTEN = 10_000


@dataclass(frozen=True, slots=True)
class QuizStanding:
    """One member's quizzes of a day."""

    user: str
    rank: int
    correct: int
    total: int
    quizzes: int
    sentences: int


@dataclass(slots=True)
class _Sum:
    correct: int = 0
    total: int = 0
    quizzes: int = 0
    sentences: int = 0

    @property
    def order(self) -> tuple[int, int, int]:
        """Less is better. With equal numbers of correct answers, fewer questions mean a better accuracy."""
        return (-self.correct, self.total if self.correct else 0, self.quizzes)


class QuizLeaderboard:
    """The results of one day, summed by member."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._sums: dict[tuple[str, str | None], _Sum] = {}
        self._ranked: dict[str | None, tuple[list[str], list[QuizStanding]]] = {}

    def add(self, result: QuizResult | Sentence) -> None:
        """Counts a result. A result that was counted before changes nothing."""
        if result.id in self._seen:
            return
        self._seen.add(result.id)
        # Every result counts for the leaderboard of all lists, and for that of its own list.
        for list_id in {None, result.list}:
            total = self._sums.setdefault((result.user, list_id), _Sum())
            if isinstance(result, QuizResult):
                total.correct += result.correct
                total.total += result.total
                total.quizzes += 1
            else:
                total.sentences += 1
            self._ranked.pop(list_id, None)

    def page(self, list_id: str | None, request: PageRequest) -> Page[QuizStanding]:
        """The rows after a cursor's position. There need not be a row at that position any more."""
        positions, rows = self._rows(list_id)
        start = bisect_right(positions, request.position) if request.position is not None else 0
        requested = slice(start, start + request.wanted)
        return Page.cut(list(zip(positions[requested], rows[requested], strict=True)), request)

    def _rows(self, list_id: str | None) -> tuple[list[str], list[QuizStanding]]:
        if list_id not in self._ranked:
            self._ranked[list_id] = _ranked(
                (user, total) for (user, of), total in self._sums.items() if of == list_id and total.quizzes
            )
        return self._ranked[list_id]


def _ranked(sums: Iterable[tuple[str, _Sum]]) -> tuple[list[str], list[QuizStanding]]:
    """The rows, best first, and their positions as cursors hold them."""
    positions: list[str] = []
    rows: list[QuizStanding] = []
    rank, previous = 0, None
    for order, user, total in sorted((total.order, user, total) for user, total in sums):
        if order != previous:
            rank, previous = len(rows) + 1, order
        positions.append(f"{best_first(total.correct)}#{order[1]:010d}#{order[2]:010d}#{user}")
        rows.append(QuizStanding(user, rank, total.correct, total.total, total.quizzes, total.sentences))
    return positions, rows


class QuizLeaderboards:
    """The leaderboards of the days that were requested lately."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._cached: OrderedDict[date, tuple[float, QuizLeaderboard]] = OrderedDict()
        self._builds: SingleFlight[date, QuizLeaderboard] = SingleFlight(shared_context)
        self._written: OrderedDict[str, QuizResult | Sentence] = OrderedDict()

    async def load(self, on: date) -> QuizLeaderboard:
        """The day's leaderboard: complete as to this process's writes, some seconds late as to those of others."""
        cached = self._cached.get(on)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        return await within_deadline(self._builds.run(on, partial(self._build, on)))

    async def close(self) -> None:
        await self._builds.close()

    def add_written(self, result: QuizResult | Sentence) -> None:
        """Counts a result that this process has just written, also in leaderboards that are being built."""
        self._written[result.id] = result
        if len(self._written) > _MAX_WRITTEN:
            self._written.popitem(last=False)
        cached = self._cached.get(result.date)
        if cached is not None:
            cached[1].add(result)

    async def _build(self, on: date) -> QuizLeaderboard:
        began = time.monotonic()
        leaderboard = QuizLeaderboard()
        await vocabulary_store.read_results_of_day(self._services.table, on, leaderboard.add)
        for result in self._written.values():
            if result.date == on:
                leaderboard.add(result)
        ended = time.monotonic()
        self._cached.pop(on, None)
        self._cached[on] = (ended + max(SECONDS, _BUILD_TIMES * (ended - began)), leaderboard)
        if len(self._cached) > _MAX_DAYS:
            self._cached.popitem(last=False)
        return leaderboard
