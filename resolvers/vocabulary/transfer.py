"""Words from a table into a public list. Words that it has, or that were removed from it, are left alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import chain, count

from ulid import ULID

from datastore.dynamo import Stale, optimistic
from datastore.refusals import Conflict
from datastore.vocabulary import lists
from datastore.vocabulary.lists import WordList
from datastore.vocabulary.words import (
    LONGEST_LIST,
    WORDS_AT_ONCE,
    ListGrown,
    Word,
    WordBatch,
    WordContent,
    add_words,
    all_words,
    removed_words,
)
from resolvers.requests.context import Services
from resolvers.transfer.loop import Added, Store
from resolvers.transfer.readers import Row
from resolvers.vocabulary.texts import NewWord, parse_list_name, parse_word

COLUMNS = ("term", "reading", "example", "audioUrl", "simplified", "traditional", "pinyin", "definition")
REQUIRED = (("definition",), ("term", "simplified"))
"""A word of any language and a Chinese one: a file has one of these columns, or both for different rows."""


class WordStore(Store[Word]):
    """Adds words to a list."""

    at_once = WORDS_AT_ONCE

    _list: WordList
    _contents: set[WordContent]
    """Of the words that the list had when it was last read, removed ones included."""

    def __init__(self, services: Services, name: str, level: int | None) -> None:
        self._services = services
        self._name = name
        self._level = level

    async def begin(self) -> int:
        self._list = await _ensure_list(self._services, self._name, self._level)
        self._contents = await self._read_contents(0)
        return 0

    def parse(self, row: Row) -> Word:
        given = row.fields
        new = NewWord(
            simplified=given.get("simplified"),
            traditional=given.get("traditional"),
            pinyin=given.get("pinyin"),
            definition=given.get("definition", ""),
            term=given.get("term"),
            reading=given.get("reading"),
            example=given.get("example"),
            audio_url=given.get("audioUrl"),
        )
        return parse_word(self._list.list, new, ("input",))

    async def add(self, records: Sequence[Word]) -> Added:
        """Add those that the list lacks, even if somebody else adds words at the same time."""
        by_content = {word.content: word for word in records}

        async def add(current: WordList) -> int:
            missing = [word for content, word in by_content.items() if content not in self._contents]
            if missing:
                services = self._services
                batch = WordBatch(services.ids.next(services.clock()), missing, LONGEST_LIST, current.next_ordinal)
                try:
                    added = await add_words(services.table, current.list, batch, services.unit())
                except ListGrown as grown:
                    self._list = grown.word_list
                    self._contents |= await self._read_contents(current.next_ordinal)
                    raise Stale from None
                self._list = added.list
            return len(missing)

        async def known() -> WordList:
            return self._list

        new = await optimistic(known, add)
        self._contents |= by_content.keys()
        return Added(new)

    async def _read_contents(self, start: int) -> set[WordContent]:
        """Those of the words from an ordinal on. A removed word moves behind the others, so it is not missed."""
        table, word_list = self._services.table, self._list
        words = all_words(table, word_list, start=start, consistent=True)
        removed = removed_words(table, word_list.list)
        return {word.content for group in (words, removed) async for word in group}


async def _ensure_list(services: Services, name: str, level: int | None) -> WordList:
    """The public list of this name, created if there is none.

    The index of names may lack a list that was created a moment ago. So the id of a created list is derived from its
    name: an import that is run again, or twice at once, finds it in the table.
    """
    name = parse_list_name(name, ("list",))
    ids = {each.list async for each in lists.lists_by_name(services.table, None) if each.name == name}
    if len(ids) > 1:
        raise Conflict(f"{len(ids)} public lists are called {name}. Choose a name that no list has.")
    for list_id in chain(ids, _derived_ids(name)):
        existing = await lists.read_list(services.table, list_id, consistent=True)
        if existing is None:
            break
        if existing.deleted_at is None and existing.name == name:
            return existing
    now = services.clock()
    new = WordList(list_id, name, public=True, created_at=now, level=level)
    await lists.create_list(services.table, new, services.unit())
    return await lists.read_list(services.table, list_id, consistent=True) or new


def _derived_ids(name: str) -> Iterator[str]:
    """The ids for a list of this name: the first, and others in case that list was deleted or has another name now."""
    for number in count():
        text = f"imported list\x00{name}" + (f"\x00{number}" if number else "")
        yield str(ULID(hashlib.sha256(text.encode()).digest()[:16]))
