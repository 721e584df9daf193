"""Word lists and their words.

A list stores the count of its words, and readers see only words with a lower ordinal. So a batch of any size becomes
visible at once: the words are written first, the count last.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from datastore.dynamo import ConditionFailed
from datastore.dynamo.attributes import StoredAs
from datastore.dynamo.conditions import absent, less, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.receipts import AlreadyAnswered
from datastore.refusals import Conflict
from datastore.vocabulary.word_order import WordOrder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from datastore.dynamo import Page, Table, Window
    from datastore.dynamo.entity import ItemKey, Partition
    from datastore.receipts import Once

MOST_LISTS = 10
"""Private lists of one member."""
MOST_WORDS = 500
"""Words of a private list, and of one call."""
LONGEST_LIST = 100_000
"""Words of a public list."""

_AT_ONCE = 90
"""Words per transaction, which may have at most 100 writes."""
_CLAIM_LIFETIME = timedelta(seconds=15)
_ATTEMPTS = 40
_PAUSE = 0.05


class TooManyLists(Conflict):
    explanation = f"You have {MOST_LISTS} private lists, which is all a member may have."


class TooManyWords(Conflict):
    explanation = "The list would become too long."


class ListBusy(Conflict):
    explanation = "Somebody else is adding words to this list. Try again in a moment."


@dataclass(frozen=True, slots=True)
class WordList:
    """A list, the order of its daily words so far, and the claim of a batch that is being added."""

    list: str
    name: str
    public: bool
    created_at: datetime
    owner: str | None = None
    level: int | None = None
    word_count: int = 0
    order: Annotated[WordOrder | None, StoredAs("walk")] = None
    drawn: int = 0
    claim: str | None = None
    claimed_at: datetime | None = None

    @property
    def node_key(self) -> str:
        return self.list

    @property
    def owner_scope(self) -> str:
        return owner_scope(None if self.public else self.owner)

    @property
    def alphabetical(self) -> str:
        return self.name.casefold().replace("#", "＃")

    def visible_to(self, member: str | None) -> bool:
        """Only the owner may read a private list; not even an admin may."""
        return self.public or (member is not None and member == self.owner)


def owner_scope(owner: str | None) -> str:
    """The scope of an index: the public lists, or one member's private ones."""
    return "PUBLIC" if owner is None else f"OF-{owner}"


LIST = Entity(WordList, Key("LIST#{list}", "LIST"), gsi1=Key("LISTS#{owner_scope}", "{alphabetical}#{list}"))


@dataclass(frozen=True, slots=True)
class Word:
    """One word, in one or both character sets."""

    list: str
    ordinal: int
    simplified: str
    definition: str
    traditional: str | None = None
    pinyin: str | None = None

    @property
    def node_key(self) -> str:
        return f"{self.list}.{self.ordinal}"

    @property
    def content(self) -> tuple[str, str | None, str | None, str]:
        """Two words with the same content are the same word."""
        return (self.simplified, self.traditional, self.pinyin, self.definition)


WORD = Entity(Word, Key("LIST#{list}", "WORD#{ordinal:06d}"))


@dataclass(frozen=True, slots=True)
class Quota:
    """How many private lists a member has."""

    user: str
    lists: int = 0


QUOTA = Entity(Quota, Key("USER#{user}", "LISTS"))


# ── lists ──


async def read_list(table: Table, list_id: str, *, consistent: bool = False) -> WordList | None:
    return await table.get(LIST.at(list=list_id), consistent=consistent)


async def read_lists(table: Table, ids: Sequence[str], *, consistent: bool = False) -> Mapping[str, WordList]:
    """The lists that exist, by id."""
    word_lists = await table.get_many([LIST.at(list=list_id) for list_id in ids], consistent=consistent)
    return {word_list.list: word_list for word_list in word_lists if word_list is not None}


def lists_by_name(table: Table, owner: str | None) -> AsyncIterator[WordList]:
    """All public lists, or one member's private ones."""
    return table.iterate(LIST.on("gsi1", owner_scope=owner_scope(owner)))


async def read_lists_page(table: Table, member: str | None, window: Window) -> Page[WordList]:
    """Public lists and one member's private ones, merged by name."""
    scopes = [owner_scope(None), *([owner_scope(member)] if member is not None else [])]
    return await table.page([LIST.on("gsi1", owner_scope=scope) for scope in scopes], window.open("word lists"))


async def create_list(table: Table, new: WordList, once: Once) -> None:
    """Create a list. A private one counts towards its owner's limit, in the same transaction."""
    writes = [LIST.put(new, when=absent())]
    if not new.public and new.owner is not None:
        below_limit = absent("lists") | less("lists", MOST_LISTS)
        writes.append(QUOTA.change(QUOTA.at(user=new.owner), add={"lists": 1}, when=below_limit))  # type: ignore[arg-type]
    try:
        await once.transact(table, new, *writes)
    except ConditionFailed as failed:
        # The id is new, so an existing list was written by an earlier attempt whose answer was lost.
        if not failed.at(0):
            raise TooManyLists from None


# ── words ──


def all_words(table: Table, word_list: WordList, *, consistent: bool = False) -> AsyncIterator[Word]:
    """All words of a list, by ordinal."""
    return table.iterate(_words(word_list), consistent=consistent, at_once=1000)


def _words(word_list: WordList) -> Partition[Word]:
    partition: Partition[Word] = WORD.on(None, list=word_list.list)
    return partition.between(None, f"WORD#{word_list.word_count - 1:06d}" if word_list.word_count else "WORD")


async def read_words_page(table: Table, word_list: WordList, window: Window) -> Page[Word]:
    return await table.page([_words(word_list)], window.open(f"words {word_list.list}"), consistent=True)


async def read_word(table: Table, list_id: str, ordinal: int) -> Word | None:
    return await table.get(WORD.at(list=list_id, ordinal=ordinal))


async def read_words(
    table: Table, keys: Sequence[tuple[str, int]], *, consistent: bool = False
) -> Mapping[tuple[str, int], Word]:
    """The words that exist, by list and ordinal."""
    item_keys = [WORD.at(list=list_id, ordinal=ordinal) for list_id, ordinal in keys]
    words = await table.get_many(item_keys, consistent=consistent)
    return {(word.list, word.ordinal): word for word in words if word is not None}


@dataclass(frozen=True, slots=True)
class AddedWords:
    """The words that one call added: `count` of them, from the ordinal `first` on."""

    list: WordList
    first: int
    count: int


async def read_added_words(table: Table, added: AddedWords) -> tuple[Word, ...]:
    partition = _words(added.list).between(f"WORD#{added.first:06d}", None)
    return (await table.query(partition, limit=added.count, consistent=True)).records


@dataclass(frozen=True, slots=True)
class WordBatch:
    """Words to add to a list, which may then have `max_words`. A repeated request gives its batch the same id."""

    id: str
    words: Sequence[Word]
    max_words: int


async def add_words(table: Table, list_id: str, batch: WordBatch, once: Once) -> AddedWords:
    """Add all of the words or none, after the existing ones.

    Up to 90 words are written with the count in one transaction. A larger batch claims the list first. Its words are
    written above the count, where readers do not see them, on the condition that the claim still holds; the count makes
    them visible. The claim of a process that ended lapses after 15 seconds, or at once for the same batch.
    """
    for attempt in range(_ATTEMPTS):
        current = await table.get(LIST.at(list=list_id), consistent=True)
        if current is None:
            break
        if current.word_count + len(batch.words) > batch.max_words:
            raise TooManyWords(
                f"The list has {current.word_count} words and may have {batch.max_words}; "
                f"these are {len(batch.words)} more."
            )
        try:
            return await _add_once(table, current, batch, once)
        except ConditionFailed:
            await asyncio.sleep(_PAUSE * min(attempt + 1, 5))
    raise ListBusy(retry_after=1.0)


async def _add_once(table: Table, current: WordList, batch: WordBatch, once: Once) -> AddedWords:
    new = batch.words
    words = [replace(word, ordinal=current.word_count + index) for index, word in enumerate(new)]
    key = LIST.item_key(current)
    unclaimed = absent("claim") | less("claimed_at", once.now - _CLAIM_LIFETIME)
    unchanged = where(word_count=current.word_count) & (unclaimed | where(claim=batch.id))
    if len(words) > _AT_ONCE:
        await table.write(LIST.change(key, values={"claim": batch.id, "claimed_at": once.now}, when=unchanged))
        unchanged = where(claim=batch.id, word_count=current.word_count)
        for start in range(0, len(words), _AT_ONCE):
            puts = [WORD.put(word) for word in words[start : start + _AT_ONCE]]
            await table.transact(*puts, LIST.check(key, unchanged))
        words = []
    after = replace(current, word_count=current.word_count + len(new), claim=None, claimed_at=None)
    answer = AddedWords(after, current.word_count, len(new))
    values = {"word_count": after.word_count, "claim": None, "claimed_at": None}
    try:
        await once.transact(table, answer, LIST.change(key, values=values, when=unchanged), *map(WORD.put, words))
    except ConditionFailed as failed:
        if failed.doubtful and await _were_added(table, answer, new):
            return answer
        raise
    except AlreadyAnswered:
        await _release_claim(table, key, batch)
        raise
    return answer


async def _release_claim(table: Table, key: ItemKey[WordList], batch: WordBatch) -> None:
    """End the claim of a repeated request that was answered before, so that others need not wait."""
    try:
        await table.write(LIST.change(key, values={"claim": None, "claimed_at": None}, when=where(claim=batch.id)))
    except ConditionFailed:
        return


async def _were_added(table: Table, answer: AddedWords, new: Sequence[Word]) -> bool:
    """Whether an earlier attempt whose answer was lost added exactly these words."""
    current = await table.get(LIST.at(list=answer.list.list), consistent=True)
    if current is None or current.word_count < answer.list.word_count:
        return False
    stored = await read_added_words(table, answer)
    return [word.content for word in stored] == [word.content for word in new]
