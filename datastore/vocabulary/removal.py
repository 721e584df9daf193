"""Removing a member's quiz results and sentences, with the days that only they made active.

| wanted                     | read or write                                              | requests     |
|----------------------------|------------------------------------------------------------|--------------|
| a member's results         | Query USER#<user> DAY#…, consistent                        | 1 a megabyte |
| remove some of a day       | a transaction: the results, and the active days if changed | 1 a day      |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.conditions import where
from datastore.dynamo.entity import Entity, Partition
from datastore.journal import Kind
from datastore.vocabulary.learning import ACTIVE_DAYS, QUIZ, SENTENCE, ActiveDays, QuizResult, Sentence, occurrence_of

if TYPE_CHECKING:
    from datastore.dynamo.writes import Write
    from datastore.receipts import Once

Result: TypeAlias = QuizResult | Sentence
_AT_ONCE = 40
"""Results in one transaction, each with its record in the journal and, in the last one, the active days."""


async def remove_results(table: Table, user: str, is_wanted: Callable[[Result], bool], once: Once) -> list[Result]:
    """Remove a member's results that are wanted, and return them. An interrupted removal can be repeated."""
    removed: list[Result] = []
    collection: Partition[Any] = QUIZ.on(None, user=user)
    results = [one async for one in table.iterate(collection, QUIZ, SENTENCE, consistent=True)]
    for day, of_day in groupby(results, key=lambda one: one.date):
        all_of_day = list(of_day)
        wanted = [one for one in all_of_day if is_wanted(one)]
        if wanted:
            await _remove_of_day(table, user, day, wanted, once, ends_day=len(wanted) == len(all_of_day))
            removed += wanted
    return removed


async def _remove_of_day(
    table: Table, user: str, day: date, results: Sequence[Result], once: Once, *, ends_day: bool
) -> None:
    groups = [results[start : start + _AT_ONCE] for start in range(0, len(results), _AT_ONCE)]
    for group in groups[:-1]:
        await once.apply(table, *_removals(group, once))
    while True:
        days = await table.get(ACTIVE_DAYS.at(user=user), consistent=True) if ends_day else None
        change = [] if days is None or day not in days else [_without_day(days, day)]
        try:
            await once.apply(table, *_removals(groups[-1], once), *change)
        except ConditionFailed:
            continue  # another day became active meanwhile
        return


def _removals(results: Sequence[Result], once: Once) -> list[Write]:
    writes: list[Write] = []
    for result in results:
        entity: Entity[Any] = QUIZ if isinstance(result, QuizResult) else SENTENCE
        kind = Kind.QUIZ_REMOVED if isinstance(result, QuizResult) else Kind.SENTENCE_REMOVED
        writes += [entity.delete(entity.item_key(result)), *occurrence_of(once, result, kind)]
    return writes


def _without_day(days: ActiveDays, day: date) -> Write:
    after, unchanged = days.without_day(day), where(version=days.version)
    if not after.dates():
        return ACTIVE_DAYS.delete(ACTIVE_DAYS.item_key(days), when=unchanged)
    return ACTIVE_DAYS.put(after, when=unchanged)
