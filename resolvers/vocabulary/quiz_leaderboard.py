"""A day's quizzes, ranked.

The schema publishes the rule: more correct answers; then the better accuracy; then fewer quizzes. Members who are
equal in all three share a rank, and the next member's rank counts them all: 1, 1, 3.

A day's leaderboard is built from all of the day's results and kept for two seconds, or for twenty times as long as
building it took. The process's own writes are added to it at once, and it is ranked anew when somebody asks: after a
ranking of many thousand members only once twenty times as long as that took has passed, since it holds the process.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from math import inf
from typing import NamedTuple

from datastore.dynamo import BoundedDict, Page, PageRequest, best_first, page_of
from datastore.vocabulary import learning
from datastore.vocabulary.learning import QuizResult, Sentence
from resolvers.requests.context import Services

SECONDS = 2.0
_MOST_DAYS = 16
"""More than one operation can ask for: what it names is not built again for its next one."""
_MOST_WRITTEN = 10_000
_REST = 20.0
_FEW = 1000
"""Members who are ranked in a few milliseconds: whenever somebody asks."""


@dataclass(frozen=True, slots=True)
class QuizStanding:
    """One member's quizzes of a day."""

    user: str
    rank: int
    correct: int
    total: int
    quizzes: int
    sentences: int


class Selection(NamedTuple):
    """The quizzes that a leaderboard counts; None is any."""

    list: str | None = None
    proven: bool | None = None


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


class _Ranking(NamedTuple):
    """The rows of a selection, and their positions as cursors hold them."""

    positions: list[str]
    rows: list[QuizStanding]
    rests_until: float


class QuizLeaderboard:
    """The results of one day, summed by member."""

    def __init__(self) -> None:
        self._counted: set[str] = set()
        self._discarded: set[str] = set()
        self._sums: defaultdict[Selection, dict[str, _Sum]] = defaultdict(dict)
        self._ranked: dict[Selection, _Ranking] = {}
        self._changed: set[Selection] = set()

    def __contains__(self, result: QuizResult | Sentence) -> bool:
        return result.node_key in self._counted

    def add(self, result: QuizResult | Sentence) -> None:
        """Count a result. A result that was counted before, or discarded, changes nothing."""
        if result.node_key in self._counted or result.node_key in self._discarded:
            return
        self._counted.add(result.node_key)
        self._count(result, 1)

    def discard(self, deleted: QuizResult | Sentence) -> None:
        """Stop counting a result, even if a read that is behind adds it again."""
        self._discarded.add(deleted.node_key)
        if deleted.node_key in self._counted:
            self._counted.remove(deleted.node_key)
            self._count(deleted, -1)

    def _count(self, result: QuizResult | Sentence, by: int) -> None:
        for selection in _selections(result):
            total = self._sums[selection].setdefault(result.user, _Sum())
            if isinstance(result, QuizResult):
                total.correct += by * result.correct
                total.total += by * result.total
                total.quizzes += by
            else:
                total.sentences += by
            self._changed.add(selection)

    def page(self, selection: Selection, request: PageRequest) -> Page[QuizStanding]:
        return page_of(*self._rows(selection), request)

    def _rows(self, selection: Selection) -> tuple[list[str], list[QuizStanding]]:
        ranking = self._ranked.get(selection)
        if ranking is None or (selection in self._changed and time.monotonic() >= ranking.rests_until):
            began, sums = time.monotonic(), self._sums.get(selection, {})
            positions, rows = _ranked((user, total) for user, total in sums.items() if total.quizzes)
            took = time.monotonic() - began
            rests_until = began + (1 + _REST) * took if len(rows) > _FEW else 0.0
            ranking = self._ranked[selection] = _Ranking(positions, rows, rests_until)
            self._changed.discard(selection)
        return ranking.positions, ranking.rows


def _selections(result: QuizResult | Sentence) -> Iterator[Selection]:
    """The selections that a result counts for: all lists and its own; a quiz for its kind, a sentence for both."""
    kinds = (None, result.proven) if isinstance(result, QuizResult) else (None, True, False)
    for list_id in {None, result.list}:
        for proven in kinds:
            yield Selection(list_id, proven)


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


def _counted_part(result: QuizResult | Sentence) -> QuizResult | Sentence:
    """What leaderboards count of a result: thousands are remembered, and not the texts of sentences with them."""
    return replace(result, text="") if isinstance(result, Sentence) else result


class QuizLeaderboards:
    """The leaderboards of the days that were requested lately."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.days = services.cache.each("quiz_leaderboards", self._build, age=SECONDS, most=_MOST_DAYS, built=True)
        self._written: BoundedDict[str, QuizResult | Sentence] = BoundedDict(_MOST_WRITTEN)
        self._deleted: BoundedDict[str, QuizResult | Sentence] = BoundedDict(_MOST_WRITTEN)

    async def load(self, on: date) -> QuizLeaderboard:
        """The day's leaderboard: complete as to this process's writes, some seconds late as to those of others."""
        built = await self.days.load(on)
        assert built is not None  # noqa: S101 - every day has one
        return built

    def add_written(self, result: QuizResult | Sentence) -> None:
        """Count a result that this process has just written, also in leaderboards that are being built."""
        self._written[result.node_key] = _counted_part(result)
        if (built := self.days.known(result.date, inf)) is not None:
            built.add(result)

    def discard(self, deleted: QuizResult | Sentence) -> None:
        """Stop counting a result that this process has just deleted; the index may still show it for a moment."""
        self._written.pop(deleted.node_key, None)
        self._deleted[deleted.node_key] = _counted_part(deleted)
        if (built := self.days.known(deleted.date, inf)) is not None:
            built.discard(deleted)

    async def _build(self, on: date) -> QuizLeaderboard:
        leaderboard, table = QuizLeaderboard(), self._services.table
        await learning.read_results_of_day(table, on, leaderboard.add)
        # The index may be behind; or another process has removed what it does not list.
        unlisted = [result for result in self._written.values() if result.date == on and result not in leaderboard]
        for result, stored in zip(unlisted, await learning.read_results(table, unlisted), strict=True):
            if stored is None:
                self._written.pop(result.node_key, None)
        for result in self._written.values():
            if result.date == on:
                leaderboard.add(result)
        for deleted in self._deleted.values():
            if deleted.date == on:
                leaderboard.discard(deleted)
        return leaderboard
