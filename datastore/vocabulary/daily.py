"""Daily words: one for each list and date, drawn once and the same for everybody.

A draw is one transaction: the day's item if there is none, and the list's walk one step on if nobody else took that
step. Whoever comes second finds the word that is there. The item holds the word itself, since words never change: a
page of the review is one query.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.refusals import Conflict
from datastore.vocabulary.lists import LIST, WORD, Word, WordList, owner_scope
from datastore.vocabulary.word_order import next_word

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from datastore.dynamo import Page, Table, Window
    from datastore.dynamo.entity import Partition

_ATTEMPTS = 20


class ListBroken(Exception):
    """A list names a word that is not there. The message is for the operator."""


@dataclass(frozen=True, slots=True)
class DailyWord:
    """The word of a list and a date. `cycle` is None for days that were moved in from elsewhere."""

    list: str
    date: date
    word: Word
    shelf: str
    cycle: int | None = None


DAILY = Entity(DailyWord, Key("LIST#{list}", "DAILY#{date}"), gsi1=Key("DAILY#{date}#{shelf}", "LIST#{list}"))


async def stored(table: Table, list_id: str, on: date) -> DailyWord | None:
    return await table.get(DAILY.at(list=list_id, date=on), consistent=True)


async def draw(table: Table, list_id: str, on: date) -> DailyWord | None:
    """The list's word of that date, chosen now if it was not before; None for a list without words."""
    for _ in range(_ATTEMPTS):
        keys: list[Any] = [DAILY.at(list=list_id, date=on), LIST.at(list=list_id)]
        known, found = await table.get_many(keys, consistent=True)
        if isinstance(known, DailyWord):
            return known
        if not isinstance(found, WordList) or not found.word_count:
            return None
        if (drawn := await _drawn(table, found, on)) is not None:
            return drawn
    raise Conflict(retry_after=1.0)


async def _drawn(table: Table, found: WordList, on: date) -> DailyWord | None:
    """One attempt at a step of the list's walk; None when somebody else took it for another date."""
    step = next_word(found.list, found.walk, found.word_count)
    word = await table.get(WORD.at(list=found.list, ordinal=step.ordinal), consistent=True)
    if word is None:
        message = f"the list {found.name} ({found.list}) has {found.word_count} words, but none at {step.ordinal}"
        raise ListBroken(message)
    chosen = DailyWord(found.list, on, word, found.shelf, step.cycle)
    further = LIST.change(
        LIST.place_of(found), values={"walk": step.after}, add={"drawn": 1}, when=where(drawn=found.drawn)
    )
    try:
        await table.transact(DAILY.put(chosen, when=absent()), further)
    except ConditionFailed as failed:
        item = failed.failures.get(0)
        return DAILY.read(item) if item else None
    return chosen


def imported_day(word: Word, on: date) -> DailyWord:
    """The word that a public list had on a date before it was imported."""
    return DailyWord(word.list, on, word, owner_scope(None))


async def days_like(table: Table, wanted: Sequence[DailyWord]) -> list[DailyWord | None]:
    """The stored daily word of the same list and date for each of these."""
    return await table.get_many([DAILY.place_of(day) for day in wanted], consistent=True)


async def import_day(table: Table, moved: DailyWord) -> None:
    """Stores a day from elsewhere, unless a word was drawn for it here."""
    try:
        await table.write(DAILY.put(moved, when=absent()))
    except ConditionFailed:
        return


def on_date(table: Table, on: date, owner: str | None) -> AsyncIterator[DailyWord]:
    """What was drawn for a date, of the public lists or of one member's private ones."""
    return table.iterate(DAILY.on("gsi1", date=on, shelf=owner_scope(owner)))


async def review(table: Table, list_id: str, since: date | None, until: date | None, window: Window) -> Page[DailyWord]:
    """Past daily words, newest first; both dates included."""
    partition: Partition[DailyWord] = DAILY.on(None, list=list_id)
    bounds = [f"DAILY#{day}" if day else None for day in (since, until)]
    scope = f"review {list_id} {since or ''} {until or ''}"
    return await table.page([partition.between(*bounds).newest_first()], window.open(scope), consistent=True)
