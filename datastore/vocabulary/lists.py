"""Word lists and their words.

A list counts its words itself; the word with the ordinal n is there for readers when the count is beyond n. That lets a
batch of any size become visible at once: the words are written first, the count last.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
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
"""Words in one transaction, which holds at most 100 writes."""
_CLAIM = timedelta(seconds=15)
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
    """A list, how far its daily words have come, and who is adding words right now."""

    list: str
    name: str
    public: bool
    created_at: datetime
    owner: str | None = None
    level: int | None = None
    word_count: int = 0
    walk: WordOrder | None = None
    drawn: int = 0
    claim: str | None = None
    claimed_at: datetime | None = None

    @property
    def node_key(self) -> str:
        return self.list

    @property
    def shelf(self) -> str:
        return owner_scope(None if self.public else self.owner)

    @property
    def alphabetical(self) -> str:
        return self.name.casefold().replace("#", "＃")

    def visible_to(self, member: str | None) -> bool:
        """Private lists are their owner's alone: not even an admin reads them."""
        return self.public or (member is not None and member == self.owner)


def owner_scope(owner: str | None) -> str:
    """Where lists stand together in an index: the public ones, or one member's private ones."""
    return "PUBLIC" if owner is None else f"OF-{owner}"


LIST = Entity(WordList, Key("LIST#{list}", "LIST"), gsi1=Key("LISTS#{shelf}", "{alphabetical}#{list}"))


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
        """What makes two words the same word."""
        return (self.simplified, self.traditional, self.pinyin, self.definition)


WORD = Entity(Word, Key("LIST#{list}", "WORD#{ordinal:06d}"))


@dataclass(frozen=True, slots=True)
class Quota:
    """How many private lists a member has."""

    user: str
    lists: int = 0


QUOTA = Entity(Quota, Key("USER#{user}", "LISTS"))


# ── lists ──


async def word_list(table: Table, list_id: str, *, consistent: bool = False) -> WordList | None:
    return await table.get(LIST.at(list=list_id), consistent=consistent)


async def word_lists(table: Table, ids: Sequence[str], *, consistent: bool = False) -> Mapping[str, WordList]:
    """The lists there are, by id."""
    found = await table.get_many([LIST.at(list=one) for one in ids], consistent=consistent)
    return {record.list: record for record in found if record is not None}


def lists_by_name(table: Table, owner: str | None) -> AsyncIterator[WordList]:
    """All public lists, or one member's private ones."""
    return table.iterate(LIST.on("gsi1", shelf=owner_scope(owner)))


async def lists_page(table: Table, member: str | None, window: Window) -> Page[WordList]:
    """Public lists and one member's private ones, together by name."""
    scopes = [owner_scope(None), *([owner_scope(member)] if member is not None else [])]
    return await table.page([LIST.on("gsi1", shelf=scope) for scope in scopes], window.open("word lists"))


async def create_list(table: Table, new: WordList, once: Once) -> None:
    """A new list; a private one counts towards its owner's ten, in the same transaction."""
    writes = [LIST.put(new, when=absent())]
    if not new.public and new.owner is not None:
        room = absent("lists") | less("lists", MOST_LISTS)
        writes.append(QUOTA.change(QUOTA.at(user=new.owner), add={"lists": 1}, when=room))  # type: ignore[arg-type]
    try:
        await once.transact(table, new, *writes)
    except ConditionFailed as failed:
        # The id is new, so a list that is there was written by an attempt of ours whose answer was lost.
        if not failed.at(0):
            raise TooManyLists from None


# ── words ──


def words(table: Table, found: WordList, *, consistent: bool = False) -> AsyncIterator[Word]:
    """All words of a list in their order."""
    return table.iterate(_words(found), consistent=consistent, at_once=1000)


def _words(found: WordList) -> Partition[Word]:
    partition: Partition[Word] = WORD.on(None, list=found.list)
    return partition.between(None, f"WORD#{found.word_count - 1:06d}" if found.word_count else "WORD")


async def word_page(table: Table, found: WordList, window: Window) -> Page[Word]:
    return await table.page([_words(found)], window.open(f"words {found.list}"), consistent=True)


async def word(table: Table, list_id: str, ordinal: int) -> Word | None:
    return await table.get(WORD.at(list=list_id, ordinal=ordinal))


async def words_at(
    table: Table, places: Sequence[tuple[str, int]], *, consistent: bool = False
) -> Mapping[tuple[str, int], Word]:
    """The words there are, by list and ordinal."""
    keys = [WORD.at(list=list_id, ordinal=ordinal) for list_id, ordinal in places]
    found = await table.get_many(keys, consistent=consistent)
    return {(word.list, word.ordinal): word for word in found if word is not None}


@dataclass(frozen=True, slots=True)
class AddedWords:
    """What one call added: `count` words from the ordinal `first` on."""

    list: WordList
    first: int
    count: int


async def added_words(table: Table, added: AddedWords) -> tuple[Word, ...]:
    partition = _words(added.list).between(f"WORD#{added.first:06d}", None)
    return (await table.query(partition, limit=added.count, consistent=True)).records


@dataclass(frozen=True, slots=True)
class Batch:
    """Words to be added together to a list that may have so many. A repeat of a request has the id of the first."""

    id: str
    words: Sequence[Word]
    most: int


async def add_words(table: Table, list_id: str, batch: Batch, once: Once) -> AddedWords:
    """All of the words or none, behind those that are there.

    Up to 90 go with the count in one transaction. More of them take the list's claim first, are written behind the
    count where nobody reads them, each transaction under the condition that the claim still holds, and become visible
    with the count. A claim left behind by a process that ended is void after 15 seconds, or at once for the same batch.
    """
    for attempt in range(_ATTEMPTS):
        current = await table.get(LIST.at(list=list_id), consistent=True)
        if current is None:
            break
        if current.word_count + len(batch.words) > batch.most:
            message = (
                f"The list has {current.word_count} words and may have {batch.most}; these are {len(batch.words)} more."
            )
            raise TooManyWords(message)
        try:
            return await _add(table, current, batch, once)
        except ConditionFailed:
            await asyncio.sleep(_PAUSE * min(attempt + 1, 5))
    raise ListBusy(retry_after=1.0)


async def _add(table: Table, current: WordList, batch: Batch, once: Once) -> AddedWords:
    new = batch.words
    numbered = [replace(one, ordinal=current.word_count + place) for place, one in enumerate(new)]
    place = LIST.place_of(current)
    free = absent("claim") | less("claimed_at", once.now - _CLAIM)
    mine = where(word_count=current.word_count) & (free | where(claim=batch.id))
    if len(numbered) > _AT_ONCE:
        await table.write(LIST.change(place, values={"claim": batch.id, "claimed_at": once.now}, when=mine))
        for start in range(0, len(numbered), _AT_ONCE):
            part = [WORD.put(one) for one in numbered[start : start + _AT_ONCE]]
            await table.transact(*part, LIST.check(place, where(claim=batch.id, word_count=current.word_count)))
        mine, numbered = where(claim=batch.id, word_count=current.word_count), []
    after = replace(current, word_count=current.word_count + len(new), claim=None, claimed_at=None)
    answer = AddedWords(after, current.word_count, len(new))
    counted = LIST.change(place, values={"word_count": after.word_count, "claim": None, "claimed_at": None}, when=mine)
    try:
        await once.transact(table, answer, counted, *(WORD.put(one) for one in numbered))
    except ConditionFailed as failed:
        if failed.doubtful and await _there(table, answer, new):
            return answer
        raise
    except AlreadyAnswered:
        await _unclaim(table, place, batch)
        raise
    return answer


async def _unclaim(table: Table, place: ItemKey[WordList], batch: Batch) -> None:
    """A repeat that came too late holds nobody up."""
    try:
        await table.write(LIST.change(place, values={"claim": None, "claimed_at": None}, when=where(claim=batch.id)))
    except ConditionFailed:
        return


async def _there(table: Table, answer: AddedWords, new: Sequence[Word]) -> bool:
    """Whether an attempt whose answer was lost has added exactly these words."""
    now = await table.get(LIST.at(list=answer.list.list), consistent=True)
    if now is None or now.word_count < answer.list.word_count:
        return False
    found = await added_words(table, answer)
    return [one.content for one in found] == [one.content for one in new]
