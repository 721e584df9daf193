"""Words from a table into a public list. Words that it has, or that were removed from it, are left alone."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from datastore.dynamo import Stale, optimistic
from datastore.refusals import InvalidInput
from datastore.vocabulary import lists
from datastore.vocabulary import words as word_store
from datastore.vocabulary.lists import ListNameTaken, WordList
from resolvers.requests.context import Services
from resolvers.transfer.loop import Added, PreviewedStore
from resolvers.transfer.readers import Row
from resolvers.vocabulary.cache import VocabularyCache
from resolvers.vocabulary.texts import NewWord, parse_list_name, parse_word

COLUMNS = ("term", "reading", "example", "audioUrl", "simplified", "traditional", "pinyin", "definition")
REQUIRED = (("definition",), ("term", "simplified"))
"""A word of any language and a Chinese one: a file has one of these columns, or both for different rows."""


class WordStore(PreviewedStore[word_store.Word]):
    """Adds words to a list."""

    at_once = word_store.WORDS_AT_ONCE

    _list: WordList
    _contents: set[word_store.WordContent]
    """Of the words that the list had when it was last read, removed ones included."""
    _room: int
    """For how many words the list had room at the beginning."""
    _new: set[word_store.WordContent]
    """Of the words that take it."""

    def __init__(
        self, services: Services, find_list: Callable[[Services], Awaitable[WordList]], actor: str | None = None
    ) -> None:
        self._services = services
        self._find_list = find_list
        self._actor = actor

    async def begin(self) -> int:
        self._list = await self._find_list(self._services)
        self._contents = await self._read_contents(0)
        self._room = word_store.room_for_words(self._list, word_store.LONGEST_LIST)
        self._new = set()
        return 0

    def parse(self, row: Row) -> word_store.Word:
        texts = {"audio_url" if column == "audioUrl" else column: text for column, text in row.fields.items()}
        word = parse_word(self._list.list, NewWord(**{"definition": "", **texts}), ("input",))
        if word.content not in self._contents and word.content not in self._new:
            if len(self._new) >= self._room:
                most = f"{word_store.LONGEST_LIST:,} words"
                raise InvalidInput(f"A list may have {most}, and has no room for this one. Make a new list.")
            self._new.add(word.content)
        return word

    async def are_missing(self, records: Sequence[word_store.Word]) -> Sequence[bool]:
        first = {word.content: place for place, word in reversed([*enumerate(records)])}
        return [
            first[word.content] == place and word.content not in self._contents for place, word in enumerate(records)
        ]

    async def add(self, records: Sequence[word_store.Word]) -> Added:
        """Add those that the list lacks, even if somebody else adds words at the same time."""
        by_content = {word.content: word for word in records}

        async def add(current: WordList) -> int:
            missing = [word for content, word in by_content.items() if content not in self._contents]
            if missing:
                services = self._services
                batch = word_store.WordBatch(
                    services.ids.next(services.clock()), missing, word_store.LONGEST_LIST, current.next_ordinal
                )
                try:
                    added = await word_store.add_words(services.table, current.list, batch, services.unit(self._actor))
                except word_store.ListGrown as grown:
                    self._list = grown.word_list
                    self._contents |= await self._read_contents(current.next_ordinal)
                    raise Stale from None
                self._list = added.list
                services.get(VocabularyCache).put_written_list(added.list)
            return len(missing)

        async def known() -> WordList:
            return self._list

        new = await optimistic(known, add)
        self._contents |= by_content.keys()
        return Added(new)

    async def _read_contents(self, start: int) -> set[word_store.WordContent]:
        """Those of the words from an ordinal on. A removed word moves behind the others, so it is not missed."""
        table, word_list = self._services.table, self._list
        words = word_store.all_words(table, word_list, start=start, consistent=True)
        removed = word_store.removed_words(table, word_list.list)
        return {word.content for group in (words, removed) async for word in group}


async def ensure_list(services: Services, *, name: str, level: int | None) -> WordList:
    """The public list of this name, created if there is none."""
    name, table, now = parse_list_name(name, ("list",)), services.table, services.clock()
    if (existing := await lists.read_public_list(table, name)) is not None:
        return existing
    new = WordList(services.ids.next(now), name, public=True, created_at=now, level=level)
    with suppress(ListNameTaken):  # another import was faster
        await lists.create_list(table, new, services.unit())
    return await lists.read_public_list(table, name) or new
