"""The words of a list.

A list stores the ordinal of its next word, and readers see only words with a lower one. So a batch of any size becomes
visible at once: the words are written first, the list last. A removed word moves to another key, where neither draws
nor lists find it; whatever names it, such as a past daily word or a sentence, still does.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Page, Stale, Table, Window, chunks, optimistic
from datastore.dynamo.entity import Entity, ItemKey, Key, Partition
from datastore.dynamo.writes import Condition, Write, absent, present, where
from datastore.refusals import Conflict, NotFound
from datastore.values.folding import in_form
from datastore.vocabulary.lists import LIST, WordList, read_list

# ── records ──

MOST_WORDS = 500
"""Words of a private list, and of one call."""
LONGEST_LIST = 100_000
"""Words of a public list."""
_ORDINALS_PER_WORD = 9
"""How many words a list may have had, removed ones included, for each that it may have. An ordinal has six digits."""

WORDS_AT_ONCE = 80
"""Words per transaction, which may have at most 100 writes: the list, the receipt and the journal's are others."""
_PATIENT_ATTEMPTS = 8
"""How often a larger batch waits for one that another process may be adding: about a second in all."""
_READS = (300, *[1000] * 9)
"""How many words each read looks at, of those that look for words that fit. Most lists need the first one only."""


class TooManyWords(Conflict):
    explanation = "The list would become too long."


class ListGrown(Conflict):
    """`word_list` is the list as it is now."""

    explanation = "Somebody else has added words to this list meanwhile. Read it again."

    def __init__(self, word_list: WordList) -> None:
        super().__init__()
        self.word_list = word_list


WordContent: TypeAlias = tuple[str | None, ...]


def _composed(text: str | None) -> str | None:
    return text if text is None or text.isascii() else in_form("NFC", text)


@dataclass(frozen=True, slots=True)
class Word:
    """One word: Chinese, with its simplified characters as `term`, or of any other language."""

    list: str
    ordinal: int
    term: str
    definition: str
    traditional: str | None = None
    pinyin: str | None = None
    any_language: bool | None = None
    """True if it was given as a term, so that character sets and pinyin mean nothing; otherwise None."""
    own_reading: str | None = None
    example: str | None = None
    audio_url: str | None = None
    revision: int | None = None
    """Counts its changes; None if it was never changed."""

    @property
    def node_key(self) -> str:
        return f"{self.list}.{self.ordinal}"

    @property
    def simplified(self) -> str:
        return self.term

    @property
    def chinese(self) -> bool:
        return not self.any_language

    @property
    def reading(self) -> str | None:
        """How it is read; pinyin is the reading of a Chinese word that has no other."""
        return self.own_reading or self.pinyin

    @property
    def content(self) -> WordContent:
        """Two words with the same content are the same word, however their accents are stored."""
        reading = self.pinyin or self.own_reading
        return _composed(self.term), _composed(self.traditional), _composed(reading), _composed(self.definition)


WORD = Entity(Word, Key("LIST#{list}", "WORD#{ordinal:06d}"))
REMOVED_WORD = Entity(Word, Key("LIST#{list}", "REMOVED#{ordinal:06d}"))


# ── reading ──


def all_words(table: Table, word_list: WordList, *, start: int = 0, consistent: bool = False) -> AsyncIterator[Word]:
    """All words of a list, by ordinal; those from an ordinal on, which the list must have."""
    words = _words(word_list)
    return table.iterate(
        words.between(f"WORD#{start:06d}", None) if start else words, consistent=consistent, at_once=1000
    )


def _words(word_list: WordList) -> Partition[Word]:
    last = f"WORD#{word_list.next_ordinal - 1:06d}" if word_list.next_ordinal else "WORD"
    return WORD.on(list=word_list.list).between(None, last)


async def read_words_page(table: Table, word_list: WordList, window: Window) -> Page[Word]:
    return await table.page([_words(word_list)], window.open(f"words {word_list.list}"), consistent=True)


@dataclass(frozen=True, slots=True)
class FoundWords:
    """Words that were looked for; `complete` if the whole list was looked at."""

    words: Sequence[Word]
    complete: bool


async def find_words(
    table: Table, word_list: WordList, start: int, fits: Callable[[Word], bool], enough: Callable[[list[Word]], bool]
) -> FoundWords:
    """Those that fit from an ordinal on, then from the list's beginning, until there are enough: ten reads at most."""
    words, found = _words(word_list), dict[int, Word]()
    rest = [words.between(f"WORD#{start:06d}", None), words.between(None, f"WORD#{start:06d}")]
    for size in _READS:
        page = await table.query(rest[0], limit=size, consistent=True)
        found |= {word.ordinal: word for word in page.records if fits(word)}
        if page.last is None:
            del rest[0]
        else:
            rest[0] = rest[0].past(page.last)
        if not rest or enough([*found.values()]):
            break
    return FoundWords([*found.values()], complete=not rest)


def removed_words(table: Table, list_id: str) -> AsyncIterator[Word]:
    return table.iterate(REMOVED_WORD.on(list=list_id), consistent=True, at_once=1000)


async def read_words(
    table: Table, keys: Sequence[tuple[str, int]], *, consistent: bool = False
) -> Mapping[tuple[str, int], Word]:
    """The words that exist, by list and ordinal. A consistent read also finds removed ones."""
    kinds = (WORD, REMOVED_WORD) if consistent else (WORD,)
    item_keys = [kind.at(list=list_id, ordinal=ordinal) for list_id, ordinal in keys for kind in kinds]
    return {(word.list, word.ordinal): word for word in await table.find_many(item_keys, consistent=consistent)}


@dataclass(frozen=True, slots=True)
class AddedWords:
    """The words that one call added: `count` of them, from the ordinal `first` on."""

    list: WordList
    first: int
    count: int


async def read_added_words(table: Table, added: AddedWords) -> tuple[Word, ...]:
    partition = _words(added.list).between(f"WORD#{added.first:06d}", None)
    return (await table.query(partition, limit=added.count, consistent=True)).records


# ── adding ──


@dataclass(frozen=True, slots=True)
class WordBatch:
    """Words to add to a list, which may then have `max_words`. A repeated request gives its batch the same id."""

    id: str
    words: Sequence[Word]
    max_words: int
    next_ordinal: int | None = None
    """The list's next ordinal when the words that it lacked were chosen; None if they are added whatever it has."""


def room_for_words(current: WordList, max_words: int) -> int:
    """How many words may be added to a list that may have so many."""
    return min(max_words - current.word_count, max_words * _ORDINALS_PER_WORD - current.next_ordinal)


async def add_words(table: Table, list_id: str, batch: WordBatch, unit: UnitOfWork) -> AddedWords:
    """Add all of the words or none, after the existing ones.

    ListGrown if the list has other words by now than those below the batch's `next_ordinal`.

    Up to 80 words are written with the count in one transaction. For a larger batch the list names it first. Its words
    are written above the count, where readers do not see them, on the condition that the list still names it and has
    the same count; raising the count makes them visible. Another batch may name itself at any time, or raise the count:
    then this one begins again.
    """
    patience = iter(range(_PATIENT_ATTEMPTS))

    async def add(current: WordList | None) -> AddedWords:
        if current is None or current.deleted_at is not None:
            raise NotFound("There is no such list.", path=("input", "list"))
        if batch.next_ordinal not in {None, current.next_ordinal}:
            raise ListGrown(current)
        _refuse_too_many(current, batch)
        if len(batch.words) <= WORDS_AT_ONCE:
            words = map(WORD.put, _numbered(current, batch))
            return await _raise_count(table, current, batch, _same_words(current), unit, *words)
        if current.adding not in {None, batch.id} and next(patience, None) is not None:
            raise Stale
        return await _add_many(table, current, batch, unit)

    return await optimistic(lambda: read_list(table, list_id, consistent=True), add, idempotent=True)


def _refuse_too_many(current: WordList, batch: WordBatch) -> None:
    if current.word_count + len(batch.words) > batch.max_words:
        raise TooManyWords(
            f"The list has {current.word_count} words and may have {batch.max_words}; "
            f"this adds {len(batch.words)} more."
        )
    if current.next_ordinal + len(batch.words) > batch.max_words * _ORDINALS_PER_WORD:
        raise TooManyWords(
            f"The list has had {current.next_ordinal} words, and {current.removed} of them were removed. "
            "Make a new list for more."
        )


async def _add_many(table: Table, current: WordList, batch: WordBatch, unit: UnitOfWork) -> AddedWords:
    key, unchanged = LIST.item_key(current), _same_words(current)
    await table.write(LIST.update(key, values={"adding": batch.id}, when=unchanged))
    unchanged &= where(adding=batch.id)
    for some in chunks(_numbered(current, batch), WORDS_AT_ONCE):
        await table.transact(*map(WORD.put, some), LIST.check(key, unchanged))
    return await _raise_count(table, current, batch, unchanged, unit)


def _numbered(current: WordList, batch: WordBatch) -> list[Word]:
    return [replace(word, ordinal=current.next_ordinal + index) for index, word in enumerate(batch.words)]


async def _raise_count(
    table: Table, current: WordList, batch: WordBatch, unchanged: Condition, unit: UnitOfWork, *writes: Write
) -> AddedWords:
    after = replace(current, next_ordinal=current.next_ordinal + len(batch.words), adding=None)
    answer = AddedWords(after, current.next_ordinal, len(batch.words))
    values = {"next_ordinal": after.next_ordinal, "adding": None}
    raised = LIST.update(LIST.item_key(current), values=values, when=unchanged)
    try:
        occurrence = unit.occurred(Kind.WORDS_ADDED, f"WordList:{current.list}")
        await unit.transact(table, answer, raised, *writes, *occurrence)
    except ConditionFailed as failed:
        if not (failed.doubtful and await _were_added(table, answer, batch.words)):
            raise
    return answer


async def _were_added(table: Table, answer: AddedWords, new: Sequence[Word]) -> bool:
    """Whether an earlier attempt whose answer was lost added exactly these words."""
    current = await table.get(LIST.at(list=answer.list.list), consistent=True)
    if current is None or current.next_ordinal < answer.list.next_ordinal:
        return False
    stored = await read_added_words(table, answer)
    return [word.content for word in stored] == [word.content for word in new]


def _same_words(word_list: WordList) -> Condition:
    """The list exists and has the same words, none added or removed."""
    return where(next_ordinal=word_list.next_ordinal, removed=word_list.removed, deleted_at=None)


# ── correcting ──


async def change_word(
    table: Table, list_id: str, ordinal: int, change: Callable[[Word], Word], unit: UnitOfWork
) -> Word:
    """Change a word's texts. `change` is made again from the current word if another change comes first."""

    async def write(current: Word) -> Word:
        after = replace(change(current), revision=(current.revision or 0) + 1)
        put = WORD.put(after, when=present() & where(revision=current.revision))
        # The list says so, because its earlier daily words have the old texts.
        mark = LIST.update(LIST.at(list=list_id), values={"corrected": True}, when=present() & where(deleted_at=None))
        try:
            await unit.transact(table, after, put, mark, *unit.occurred(Kind.WORD_CHANGED, f"Word:{after.node_key}"))
        except ConditionFailed as failed:
            if not failed.was_written(WORD, after):
                raise
        return after

    return await optimistic(partial(_read_current, table, list_id, ordinal), write)


async def _read_current(table: Table, list_id: str, ordinal: int) -> Word:
    word = await table.get(WORD.at(list=list_id, ordinal=ordinal), consistent=True)
    if word is None:
        raise NotFound("There is no such word, or it was removed from its list.", path=("input", "word"))
    return word


async def remove_word(table: Table, list_id: str, ordinal: int, unit: UnitOfWork) -> WordList:
    """Remove a word from its list, which counts one word less. A word that was removed before stays removed."""
    keys: list[ItemKey[Any]] = [
        LIST.at(list=list_id),
        WORD.at(list=list_id, ordinal=ordinal),
        REMOVED_WORD.at(list=list_id, ordinal=ordinal),
    ]

    async def remove(found: Sequence[Any]) -> WordList:
        current: WordList | None = found[0]
        _, word, removed = found
        if current is None or current.deleted_at is not None or (word is None and removed is None):
            raise NotFound("There is no such word.", path=("input", "word"))
        if word is None:
            await unit.store_receipt(table, current)
            return current
        after = replace(current, removed=current.removed + 1)
        writes: list[Write] = [
            WORD.delete(WORD.item_key(word), when=present() & where(revision=word.revision)),
            REMOVED_WORD.put(word, when=absent()),
            LIST.update(LIST.item_key(current), values={"removed": after.removed}, when=_same_words(current)),
        ]
        await unit.transact(table, after, *writes, *unit.occurred(Kind.WORD_REMOVED, f"Word:{word.node_key}"))
        return after

    return await optimistic(lambda: table.get_many(keys, consistent=True), remove, idempotent=True)
