"""Daily words: one for each list and date, drawn once and the same for all members.

A draw is one transaction: it puts the date's item if there is none, and advances the list's word order if no other draw
has done so and the word was not removed. A process that loses this race reads the stored word. The item includes the
word itself, so a page of past daily words is one query; only those of a list with corrected words are read again.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from datastore.dynamo import ConditionFailed, Page, Stale, Table, Window, optimistic
from datastore.dynamo.entity import Entity, Key, Partition
from datastore.dynamo.writes import absent, present, where
from datastore.vocabulary.lists import LIST, DrawnWord, WordList, mark_cleared, next_word, owner_scope, read_list
from datastore.vocabulary.words import REMOVED_WORD, WORD, Word, removed_words

# ── daily words ──


class ListBroken(Exception):
    """A list does not have the words that it counts. The message is for the operator."""


@dataclass(frozen=True, slots=True)
class DailyWord:
    """The word of a list and a date. `cycle` is None for imported ones."""

    list: str
    date: date
    word: Word
    owner_scope: str
    cycle: int | None = None


DAILY = Entity(DailyWord, Key("LIST#{list}", "DAILY#{date}"), gsi1=Key("DAILY#{date}#{owner_scope}", "LIST#{list}"))


async def read_daily_word(table: Table, list_id: str, on: date) -> DailyWord | None:
    return await table.get(DAILY.at(list=list_id, date=on), consistent=True)


async def draw_daily_word(table: Table, list_id: str, on: date) -> DailyWord | None:
    """The list's word of a date, drawn now if it was not drawn before; None for a list without words."""
    keys: list[Any] = [DAILY.at(list=list_id, date=on), LIST.at(list=list_id)]

    async def draw(found: Sequence[Any]) -> DailyWord | None:
        stored, word_list = found
        if isinstance(stored, DailyWord):
            return stored
        if not isinstance(word_list, WordList) or not word_list.word_count:
            return None
        drawn = next_word(word_list.list, word_list.order, word_list.next_ordinal, await _removed(table, word_list))
        if drawn is None:
            await _refuse_broken(table, word_list, "but all are removed")
            raise Stale
        return await _draw_once(table, word_list, drawn, on)

    return await optimistic(lambda: table.get_many(keys, consistent=True), draw, idempotent=True)


async def _removed(table: Table, word_list: WordList) -> set[int]:
    """The ordinals of removed words."""
    return {word.ordinal async for word in removed_words(table, word_list.list)} if word_list.removed else set()


async def _refuse_broken(table: Table, word_list: WordList, found: str) -> None:
    """ListBroken, unless the list has changed since it was read."""
    if await read_list(table, word_list.list, consistent=True) == word_list:
        name, words = f"{word_list.name} ({word_list.list})", word_list.word_count
        raise ListBroken(f"the list {name} has {words} words, {found}")


async def _draw_once(table: Table, word_list: WordList, drawn: DrawnWord, on: date) -> DailyWord:
    """One attempt at a draw, or what another one drew."""
    word = await table.get(WORD.at(list=word_list.list, ordinal=drawn.ordinal), consistent=True)
    if word is None:
        await _refuse_broken(table, word_list, f"but none at {drawn.ordinal}")
        raise Stale
    daily_word = DailyWord(word_list.list, on, word, word_list.owner_scope, drawn.cycle)
    unchanged = where(drawn=word_list.drawn, public=word_list.public, deleted_at=None)
    move_on = LIST.update(LIST.item_key(word_list), values={"order": drawn.after}, add={"drawn": 1}, when=unchanged)
    not_removed = WORD.check(WORD.item_key(word), present())
    try:
        await table.transact(DAILY.put(daily_word, when=absent()), move_on, not_removed)
    except ConditionFailed as failed:
        if (stored := failed.stored(DAILY)) is None:
            raise
        return stored
    return daily_word


async def read_upcoming_words(table: Table, word_list: WordList, days: Sequence[date]) -> list[DailyWord]:
    """The words of days in a row: those that are drawn, and those that draws will give if the list stays as it is.

    Nothing is drawn. A day that nobody asks about draws no word, so that the later ones come a day later.
    """
    stored = DAILY.on(list=word_list.list).between(f"DAILY#{days[0]}", f"DAILY#{days[-1]}")
    known = {daily.date: daily async for daily in table.iterate(stored, consistent=True)}
    ahead = _draws_ahead(word_list, known.values(), await _removed(table, word_list))
    coming = dict(zip((day for day in days if day not in known), ahead, strict=False))
    keys = [WORD.at(list=word_list.list, ordinal=drawn.ordinal) for drawn in coming.values()]
    for (day, drawn), word in zip(coming.items(), await table.get_many(keys, consistent=True), strict=True):
        if word is not None:
            known[day] = DailyWord(word_list.list, day, word, word_list.owner_scope, drawn.cycle)
    return [known[day] for day in days if day in known]


def _draws_ahead(word_list: WordList, known: Collection[DailyWord], removed: set[int]) -> Iterator[DrawnWord]:
    """The words that are drawn next. One of the known days may have been drawn after the list was read."""
    drawn_meanwhile = {(daily.cycle, daily.word.ordinal) for daily in known}
    order = word_list.order
    while drawn := next_word(word_list.list, order, word_list.next_ordinal, removed):
        order = drawn.after
        if (drawn.cycle, drawn.ordinal) not in drawn_meanwhile:
            yield drawn


def imported_daily_word(word: Word, on: date) -> DailyWord:
    """The daily word that a public list had before it was imported."""
    return DailyWord(word.list, on, word, owner_scope(None))


async def read_same_daily_words(table: Table, daily_words: Sequence[DailyWord]) -> list[DailyWord | None]:
    """The stored daily word of the same list and date for each of these."""
    return await table.get_many([DAILY.item_key(daily_word) for daily_word in daily_words], consistent=True)


async def import_daily_word(table: Table, imported: DailyWord) -> None:
    """Store an imported daily word, unless a word was drawn for its date here."""
    await table.try_write(DAILY.put(imported, when=absent()))


def daily_words_of_date(table: Table, on: date, owner: str | None) -> AsyncIterator[DailyWord]:
    """The daily words of the public lists, or of one member's private ones, by the lists' ids."""
    return table.iterate(_of_date(on, owner))


async def read_daily_words_of_date(table: Table, on: date, owner: str | None, most: int) -> Sequence[DailyWord]:
    """The first of them."""
    return (await table.query(_of_date(on, owner), limit=most)).records


def _of_date(on: date, owner: str | None) -> Partition[DailyWord]:
    return DAILY.on("gsi1", date=on, owner_scope=owner_scope(owner))


async def read_past_daily_words(
    table: Table, list_id: str, since: date | None, until: date | None, window: Window, newest: date
) -> Page[DailyWord]:
    """A list's past daily words, newest first; both dates included, and none after `newest`.

    That bound moves on with the days, so a cursor does not contain it.
    """
    bounds = [f"DAILY#{day}" if day else None for day in (since, until)]
    scope = f"review {list_id} {since or ''} {until or ''}"
    words = DAILY.on(list=list_id).between(*bounds).between(None, f"DAILY#{newest}")
    return await table.page([words.newest_first()], window.open(scope), consistent=True)


# ── after a change of the list ──


async def show_daily_words_to_everyone(table: Table, list_id: str) -> None:
    """Move a list's daily words from their owner's part of the index to the public one. Safe to repeat."""
    async for daily_word in table.iterate(DAILY.on(list=list_id), consistent=True):
        if daily_word.owner_scope != owner_scope(None):
            public = replace(daily_word, owner_scope=owner_scope(None))
            await table.try_write(DAILY.update_with_indexes(public, "owner_scope", when=present()))


async def clear_deleted_list(table: Table, word_list: WordList, most: int) -> bool:
    """Delete up to `most` words and daily words of a deleted list; return whether none is left. Safe to repeat."""
    kinds: tuple[Entity[Any], ...] = (DAILY, REMOVED_WORD, WORD)
    left = most
    for kind in kinds:
        found = await table.query(kind.on(list=word_list.list), limit=left + 1, consistent=True)
        await table.write_many(kind.delete(kind.item_key(record)) for record in found.records[:left])
        left -= len(found.records)
        if left < 0:
            return False
    await mark_cleared(table, word_list)
    return True
