"""A day's quizzes, ranked.

The rule, published in the schema: more correct answers; then the better accuracy; then fewer quizzes. Members who are
equal in all three share a rank, and the next one's rank counts them all: 1, 1, 3.

The table of a day is made from all of the day's results, kept in the process and made anew after two seconds, or after
twenty times what making it took. What this process writes is added to it at once.
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
_TIMES_ITS_MAKING = 20
_DAYS_KEPT = 8
_REMEMBERED = 10_000


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
    def place(self) -> tuple[int, int, int]:
        """Less is better. Of as many correct answers, fewer questions are more accurate; of none, all are alike."""
        return (-self.correct, self.total if self.correct else 0, self.quizzes)


class QuizDay:
    """The results of one day, summed by member."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._sums: dict[tuple[str, str | None], _Sum] = {}
        self._ranked: dict[str | None, tuple[list[str], list[QuizStanding]]] = {}

    def add(self, result: QuizResult | Sentence) -> None:
        """Counts a result; one that was counted before changes nothing."""
        if result.id in self._seen:
            return
        self._seen.add(result.id)
        # Every result counts for the whole day, and for the list that it is about.
        for listed in {None, result.list}:
            counted = self._sums.setdefault((result.user, listed), _Sum())
            if isinstance(result, QuizResult):
                counted.correct += result.correct
                counted.total += result.total
                counted.quizzes += 1
            else:
                counted.sentences += 1
            self._ranked.pop(listed, None)

    def page(self, listed: str | None, request: PageRequest) -> Page[QuizStanding]:
        """The rows after a cursor's position, which need not be there any more."""
        positions, rows = self._rows(listed)
        start = bisect_right(positions, request.position) if request.position is not None else 0
        shown = slice(start, start + request.wanted)
        return Page.cut(list(zip(positions[shown], rows[shown], strict=True)), request)

    def _rows(self, listed: str | None) -> tuple[list[str], list[QuizStanding]]:
        if listed not in self._ranked:
            self._ranked[listed] = _ranked(
                (user, counted) for (user, of), counted in self._sums.items() if of == listed and counted.quizzes
            )
        return self._ranked[listed]


def _ranked(sums: Iterable[tuple[str, _Sum]]) -> tuple[list[str], list[QuizStanding]]:
    positions: list[str] = []
    rows: list[QuizStanding] = []
    rank, before = 0, None
    for place, user, counted in sorted((counted.place, user, counted) for user, counted in sums):
        if place != before:
            rank, before = len(rows) + 1, place
        positions.append(f"{best_first(counted.correct)}#{place[1]:010d}#{place[2]:010d}#{user}")
        rows.append(QuizStanding(user, rank, counted.correct, counted.total, counted.quizzes, counted.sentences))
    return positions, rows


class QuizDays:
    """The days that this process has been asked about lately."""

    def __init__(self, services: Services) -> None:
        self._house = services
        self._made: OrderedDict[date, tuple[float, QuizDay]] = OrderedDict()
        self._makings: SingleFlight[date, QuizDay] = SingleFlight(shared_context)
        self._written: OrderedDict[str, QuizResult | Sentence] = OrderedDict()

    async def day(self, on: date) -> QuizDay:
        """The day's table, at most some seconds behind other processes and never behind this one."""
        made = self._made.get(on)
        if made is not None and made[0] > time.monotonic():
            return made[1]
        return await within_deadline(self._makings.run(on, partial(self._make, on)))

    async def close(self) -> None:
        await self._makings.close()

    def note(self, result: QuizResult | Sentence) -> None:
        """What this process has just written: counted now, and in tables whose reading began before."""
        self._written[result.id] = result
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)
        made = self._made.get(result.date)
        if made is not None:
            made[1].add(result)

    async def _make(self, on: date) -> QuizDay:
        began = time.monotonic()
        made = QuizDay()
        await vocabulary_store.read_day(self._house.table, on, made.add)
        for result in self._written.values():
            if result.date == on:
                made.add(result)
        now = time.monotonic()
        self._made.pop(on, None)
        self._made[on] = (now + max(SECONDS, _TIMES_ITS_MAKING * (now - began)), made)
        if len(self._made) > _DAYS_KEPT:
            self._made.popitem(last=False)
        return made
