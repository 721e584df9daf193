"""Removing a member's quiz results and sentences, with the days that only they made active.

| wanted                     | read or write                                              | requests       |
|----------------------------|------------------------------------------------------------|----------------|
| a member's results         | Query USER#<user> DAY#…, consistent                        | 1 a megabyte   |
| remove some of a day       | a transaction: results, quizzes, active days if changed    | 1 for up to 90 writes |

The result of a quiz that was set here is removed with the quiz itself, which holds the answers for another day. The
member's cards stay: they say when to ask the member again, and count towards nothing that others see.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from datastore.changes.kinds import Kind
from datastore.dynamo import ConditionFailed, Stale, Table, optimistic_from
from datastore.dynamo.conditions import present
from datastore.dynamo.entity import Partition
from datastore.vocabulary.learning import (
    ACTIVE_DAYS,
    QUIZ,
    SENTENCE,
    ActiveDays,
    DateRange,
    QuizResult,
    Sentence,
    as_read,
    occurrence_of,
)
from datastore.vocabulary.quizzes import OPEN_QUIZ

if TYPE_CHECKING:
    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo.writes import Write

Result: TypeAlias = QuizResult | Sentence
_MOST_WRITES = 90
"""In one transaction, besides those of the active days: it has at most 100."""


async def remove_results(
    table: Table, user: str, is_wanted: Callable[[Result], bool], unit: UnitOfWork
) -> AsyncIterator[Result]:
    """Remove a member's results that are wanted, and yield each. An interrupted removal can be repeated."""
    results = await _read(table, QUIZ.on(None, user=user))
    for day, of_day in groupby(results, key=lambda one: one.date):
        for removed in await _remove_of_day(table, user, day, list(of_day), is_wanted, unit):
            yield removed


async def _read(table: Table, collection: Partition[Any]) -> list[Result]:
    return [one async for one in table.iterate(collection, QUIZ, SENTENCE, consistent=True)]


async def _read_day(table: Table, user: str, day: date) -> list[Result]:
    return await _read(table, DateRange(day, day).narrow(QUIZ.on(None, user=user)))


async def _remove_of_day(
    table: Table, user: str, day: date, of_day: list[Result], is_wanted: Callable[[Result], bool], unit: UnitOfWork
) -> list[Result]:
    removed: dict[str, Result] = {}

    async def remove_some(of_day: list[Result]) -> list[Result]:
        """What is left of the day after one more transaction."""
        wanted = [one for one in of_day if is_wanted(one)]
        if not wanted:
            return of_day
        group, writes = _first_group(wanted, unit)
        if len(group) == len(of_day):
            writes += await _without_day(table, user, day)
            # Read after the days: a result that is written from now on fails this transaction, as it changes the days.
            if {one.id for one in await _read_day(table, user, day)} != {one.id for one in of_day}:
                raise Stale
        try:
            await unit.apply(table, *writes)
        except ConditionFailed as failed:  # another process was faster, or a result was written
            if failed.doubtful:
                removed.update((one.id, one) for one in group)
            raise
        removed.update((one.id, one) for one in group)
        return [one for one in of_day if one.id not in removed]

    while any(map(is_wanted, of_day)):
        of_day = await optimistic_from(of_day, lambda: _read_day(table, user, day), remove_some, idempotent=True)
    return list(removed.values())


def _first_group(results: Sequence[Result], unit: UnitOfWork) -> tuple[Sequence[Result], list[Write]]:
    """As many results as one transaction removes, and its writes."""
    writes: list[Write] = []
    for number, result in enumerate(results):
        more = _removal(result, unit)
        if writes and len(writes) + len(more) > _MOST_WRITES:
            return results[:number], writes
        writes += more
    return results, writes


def _removal(result: Result, unit: UnitOfWork) -> list[Write]:
    if isinstance(result, Sentence):
        occurred = occurrence_of(unit, result, Kind.SENTENCE_REMOVED)
        return [SENTENCE.delete(SENTENCE.item_key(result), when=present()), *occurred]
    quiz = [OPEN_QUIZ.delete(OPEN_QUIZ.at(user=result.user, id=result.id))] if result.asked_here else []
    occurred = occurrence_of(unit, result, Kind.QUIZ_REMOVED)
    return [QUIZ.delete(QUIZ.item_key(result), when=present()), *quiz, *occurred]


async def _without_day(table: Table, user: str, day: date) -> list[Write]:
    """The write that makes a day inactive, if it is an active one."""
    days: ActiveDays | None = await table.get(ACTIVE_DAYS.at(user=user), consistent=True)
    if days is None or day not in days:
        return []
    after, unchanged = days.without_day(day), as_read(days)
    if not after.dates():
        return [ACTIVE_DAYS.delete(ACTIVE_DAYS.item_key(days), when=unchanged)]
    return [ACTIVE_DAYS.put(after, when=unchanged)]
