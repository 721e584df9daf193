"""Lists and words that the process remembers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from datastore import vocabulary as vocabulary_store
from datastore.vocabulary import Word, WordList
from resolvers.loading.loader import Loader

if TYPE_CHECKING:
    from resolvers.context import Services

K = TypeVar("K")
V = TypeVar("V")

LIST_TTL = 2.0
WORD_TTL = 600.0
ALL_DRAWN_TTL = 2.0
_MAX_ALL_DRAWN = 10_000


class VocabularyCache:
    """Lists for two seconds; words, which never change, for ten minutes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        lists: Loader[str, WordList] = Loader(self._read_lists, ttl=LIST_TTL)
        words: Loader[tuple[str, int], Word] = Loader(self._read_words, ttl=WORD_TTL)
        self.lists = services.loaders.add("word_lists", lists)
        self.words = services.loaders.add("words", words)
        self._all_drawn_until: dict[tuple[str | None, date], float] = {}

    async def _read_lists(self, ids: Sequence[str]) -> Mapping[str, WordList]:
        return await _reread_missing(ids, partial(vocabulary_store.read_lists, self._services.table))

    async def _read_words(self, keys: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Word]:
        return await _reread_missing(keys, partial(vocabulary_store.read_words, self._services.table))

    def put_written_list(self, word_list: WordList) -> None:
        """Remembers a list that this process has just written. It may be one without a daily word."""
        self.lists.put(word_list.list, word_list)
        self._all_drawn_until.clear()

    def all_drawn(self, owner: str | None, on: date) -> bool:
        """Whether all public lists, or all private ones of a member, had their word of a date a moment ago."""
        return self._all_drawn_until.get((owner, on), 0.0) > asyncio.get_running_loop().time()

    def note_all_drawn(self, owner: str | None, on: date) -> None:
        if len(self._all_drawn_until) >= _MAX_ALL_DRAWN:
            self._all_drawn_until.clear()
        self._all_drawn_until[owner, on] = asyncio.get_running_loop().time() + ALL_DRAWN_TTL


async def _reread_missing(keys: Sequence[K], read: Callable[..., Awaitable[Mapping[K, V]]]) -> Mapping[K, V]:
    """Reads missing records again, consistently: another process may have written them a moment ago."""
    records = await read(keys)
    missing = [key for key in keys if key not in records]
    return {**records, **await read(missing, consistent=True)} if missing else records
