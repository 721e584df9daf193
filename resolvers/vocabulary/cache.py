"""Lists and words that the process remembers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from datastore import vocabulary as vocabulary_store
from datastore.vocabulary import DailyWord, Word, WordList
from resolvers.loading.bounded_dict import BoundedDict
from resolvers.loading.loader import Loader

if TYPE_CHECKING:
    from resolvers.requests.context import Services

K = TypeVar("K")
V = TypeVar("V")

TTL = 2.0
ALL_DRAWN_TTL = 2.0
_MAX_ALL_DRAWN = 1_000


class VocabularyCache:
    """Lists, words and a day's words for two seconds.

    Only lists and words that were read from the table or written by this process are remembered. An index may be behind
    both.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        lists: Loader[str, WordList] = Loader(self._read_lists, ttl=TTL)
        words: Loader[tuple[str, int], Word] = Loader(self._read_words, ttl=TTL)
        self.lists = services.loaders.add("word_lists", lists)
        self.words = services.loaders.add("words", words)
        self.lists_written = 0
        """How many lists this process has written: a day's words read before the last one may lack it."""
        self._all_drawn: BoundedDict[tuple[str | None, date], tuple[float, Sequence[DailyWord]]] = BoundedDict(
            _MAX_ALL_DRAWN
        )

    async def _read_lists(self, ids: Sequence[str]) -> Mapping[str, WordList]:
        return await _reread_missing(ids, partial(vocabulary_store.read_lists, self._services.table))

    async def _read_words(self, keys: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Word]:
        return await _reread_missing(keys, partial(vocabulary_store.read_words, self._services.table))

    def put_written_list(self, word_list: WordList) -> None:
        """Remember a list that this process has just written. It may be one without a daily word."""
        self.lists.put(word_list.list, word_list)
        self.lists_written += 1
        self._all_drawn.clear()

    def put_written_word(self, word: Word) -> None:
        self.words.put((word.list, word.ordinal), word)
        self._all_drawn.clear()

    def all_drawn(self, owner: str | None, on: date) -> Sequence[DailyWord] | None:
        """A day's words of all public lists, or of a member's private ones, if all had one a moment ago."""
        until, words = self._all_drawn.get((owner, on), (0.0, ()))
        return words if until > asyncio.get_running_loop().time() else None

    def put_all_drawn(self, owner: str | None, on: date, words: Sequence[DailyWord]) -> None:
        self._all_drawn[owner, on] = (asyncio.get_running_loop().time() + ALL_DRAWN_TTL, words)


async def _reread_missing(keys: Sequence[K], read: Callable[..., Awaitable[Mapping[K, V]]]) -> Mapping[K, V]:
    """Read missing records again, consistently: another process may have written them a moment ago."""
    records = await read(keys)
    missing = [key for key in keys if key not in records]
    return {**records, **await read(missing, consistent=True)} if missing else records
