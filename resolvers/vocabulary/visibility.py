"""Who may see which list, what a list's texts may be, and the lists and words that this process keeps at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from datastore import vocabulary as vocabulary_store
from datastore.dynamo import key_text
from datastore.refusals import InvalidInput, NotFound
from datastore.vocabulary import Word, WordList
from resolvers.loading.loader import Loader

if TYPE_CHECKING:
    from resolvers.context import Context, Services

K = TypeVar("K")
V = TypeVar("V")

LISTS_KEPT = 2.0
WORDS_KEPT = 600.0
DRAWN_KEPT = 2.0


class Shelves:
    """Lists as they were some seconds ago, and words, which never change."""

    def __init__(self, services: Services) -> None:
        self._house = services
        lists: Loader[str, WordList] = Loader(self._read_lists, ttl=LISTS_KEPT)
        words: Loader[tuple[str, int], Word] = Loader(self._read_words, ttl=WORDS_KEPT)
        self.lists = services.loaders.add("word_lists", lists)
        self.words = services.loaders.add("words", words)
        self._complete: dict[tuple[str | None, date], float] = {}

    async def _read_lists(self, ids: Sequence[str]) -> Mapping[str, WordList]:
        return await _reread_missing(ids, partial(vocabulary_store.word_lists, self._house.table))

    async def _read_words(self, places: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Word]:
        return await _reread_missing(places, partial(vocabulary_store.words_at, self._house.table))

    def changed(self, found: WordList) -> None:
        """A list as this process has just written it."""
        self.lists.put(found.list, found)
        self._complete.clear()

    def complete(self, owner: str | None, on: date) -> bool:
        """Whether all public lists, or all private ones of a member, had their word of a date a moment ago."""
        return self._complete.get((owner, on), 0.0) > asyncio.get_running_loop().time()

    def completed(self, owner: str | None, on: date) -> None:
        if len(self._complete) >= 10_000:  # noqa: PLR2004 - a bound, nothing depends on it
            self._complete.clear()
        self._complete[owner, on] = asyncio.get_running_loop().time() + DRAWN_KEPT


async def _reread_missing(keys: Sequence[K], read: Callable[..., Awaitable[Mapping[K, V]]]) -> Mapping[K, V]:
    """Read once more, consistently, what is missing: another process may have written it a moment ago."""
    found = await read(keys)
    missing = [key for key in keys if key not in found]
    return {**found, **await read(missing, consistent=True)} if missing else found


def reader(ctx: Context) -> str | None:
    """Whose private lists may be shown."""
    return ctx.viewer.id if ctx.viewer.is_member else None


async def visible_list(ctx: Context, list_id: str) -> WordList | None:
    """A list, if the viewer may know of it."""
    found = await ctx.services.get(Shelves).lists.load(key_text(list_id))
    return found if found is not None and found.visible_to(reader(ctx)) else None


async def named_list(ctx: Context, list_id: str) -> WordList:
    """The list that an input names. Somebody else's private list is as unknown as one that never was."""
    found = await visible_list(ctx, list_id)
    if found is None:
        message = "There is no list with this id."
        raise NotFound(message, path=("input", "list"))
    return found


async def load_list(ctx: Context, list_id: str) -> WordList:
    """The list behind a record that the viewer may see."""
    found = await visible_list(ctx, list_id)
    if found is None:
        raise NotFound
    return found


async def visible_word(ctx: Context, list_id: str, ordinal: int) -> Word | None:
    """A word of a list that the viewer may see."""
    found = await visible_list(ctx, list_id)
    if found is None:
        return None
    if ordinal >= found.word_count:  # the list may be a little older than the word
        found = await vocabulary_store.word_list(ctx.table, list_id, consistent=True)
        if found is None or ordinal >= found.word_count:
            return None
    return await ctx.services.get(Shelves).words.load((list_id, ordinal))


# ── rules for texts ──


def line(text: str, longest: int, what: str, path: tuple[str, ...]) -> str:
    """One line, its spaces tidied."""
    tidied = " ".join(text.split())
    if not 1 <= len(tidied) <= longest or not tidied.isprintable():
        message = f"{what} has 1 to {longest} characters, none of them a control character."
        raise InvalidInput(message, path=path)
    return tidied


def optional_line(text: object, longest: int, what: str, path: tuple[str, ...]) -> str | None:
    """The same of a text that may be missing or empty."""
    return line(text, longest, what, path) if isinstance(text, str) and text.strip() else None
