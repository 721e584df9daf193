"""Word lists: created, changed, published and deleted.

A deleted list leaves an empty record behind, because quizzes, sentences and subscriptions name it. The record keeps the
list's name and is in no index that readers see. Its words and daily words are deleted after it, by the request as far
as its time allows and by `ringside emails`, which finds what is left in the index under `LISTS#DELETED`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from itertools import islice
from math import isqrt

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Page, Table, Window, optimistic
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Write, absent, less, present, where
from datastore.refusals import Conflict, NotFound
from datastore.values.folding import folded
from datastore.values.permutation import Permutation

# ── word order ──


@dataclass(frozen=True, slots=True)
class WordOrder:
    """The state of a list's order: the next draw takes `position` of the permuted words `start` … `end` - 1."""

    cycle: int = 0
    start: int = 0
    end: int = 0
    position: int = 0


@dataclass(frozen=True, slots=True)
class DrawnWord:
    """One day's word, its cycle, and the list's order after the draw."""

    ordinal: int
    cycle: int
    after: WordOrder


def next_word(
    list_id: str, order: WordOrder | None, words: int, removed: Collection[int] = frozenset()
) -> DrawnWord | None:
    """The next word of a list whose ordinals are 0 … `words` - 1; None if all of them are removed."""
    if words <= len(removed):
        return None
    order = order or WordOrder(0, 0, words, 0)
    for part in (order, WordOrder(order.cycle, order.end, words, 0)):
        if (drawn := _first_present(list_id, part, removed)) is not None:
            return drawn
    last = order.start + _permutation(list_id, order).at(order.position - 1)
    cycle = order.cycle
    while True:
        cycle += 1
        drawn = _first_present(list_id, WordOrder(cycle, 0, words, 0), removed)
        if drawn is not None and (drawn.ordinal != last or words - len(removed) == 1):
            return drawn


def _first_present(list_id: str, order: WordOrder, removed: Collection[int]) -> DrawnWord | None:
    """The next word of a cycle that is not removed. Where few are left, these are looked at instead of the gaps."""
    permutation, size = _permutation(list_id, order), order.end - order.start
    few = isqrt(size)
    left = list(islice((number for number in range(size) if order.start + number not in removed), few + 1))
    positions: Iterable[int] = range(order.position, size)
    if len(left) <= few:
        positions = sorted(map(permutation.position_of, left))
    for position in positions:
        ordinal = order.start + permutation.at(position)
        if position >= order.position and ordinal not in removed:
            return DrawnWord(ordinal, order.cycle, replace(order, position=position + 1))
    return None


def _permutation(list_id: str, order: WordOrder) -> Permutation:
    return Permutation.keyed(f"{list_id} {order.cycle} {order.start}".encode(), order.end - order.start)


# ── lists ──

MOST_LISTS = 10
"""Private lists of one member."""

_DELETED = "DELETED"


class TooManyLists(Conflict):
    explanation = f"You have {MOST_LISTS} private lists, which is the limit for a member."


@dataclass(frozen=True, slots=True)
class WordList:
    """A list, and the order of its daily words so far."""

    list: str
    name: str
    public: bool
    created_at: datetime
    owner: str | None = None
    level: int | None = None
    next_ordinal: int = 0
    """The ordinal of the next word that is added."""
    order: WordOrder | None = None
    drawn: int = 0
    adding: str | None = None
    """The batch of words that was begun last, if it needs several transactions and has not ended."""
    removed: int = 0
    """How many words were removed. Their ordinals are not used again."""
    corrected: bool = False
    """Whether a word was changed: then daily words from before may have its old texts."""
    deleted_at: datetime | None = None
    revision: int = 1
    """Counts the changes of its name, level and visibility."""
    cleared: bool = False
    """Whether a deleted list's words are deleted too."""

    @property
    def node_key(self) -> str:
        return self.list

    @property
    def word_count(self) -> int:
        """None of a deleted list, whatever its record has: a change during the deletion may have left something."""
        return 0 if self.deleted_at else self.next_ordinal - self.removed

    @property
    def owner_scope(self) -> str:
        if self.cleared:
            return f"CLEARED-OF-{self.owner}"
        return _DELETED if self.deleted_at else owner_scope(None if self.public else self.owner)

    @property
    def is_unlisted(self) -> bool:
        """Whether no index lists it: a public list whose words are deleted. Its owner's id finds a private one."""
        return self.cleared and (self.public or self.owner is None)

    @property
    def alphabetical(self) -> str:
        return self.name.casefold().replace("#", "＃")

    def visible_to(self, member: str | None) -> bool:
        """Only the owner may read a private list; not even an admin may. Nobody may read a deleted one."""
        return self.deleted_at is None and self.was_visible_to(member)

    def was_visible_to(self, member: str | None) -> bool:
        """The same, also of a list that is deleted: its name stays visible where it is mentioned."""
        return self.public or (member is not None and member == self.owner)


def owner_scope(owner: str | None) -> str:
    """The scope of an index: the public lists, or one member's private ones."""
    return "PUBLIC" if owner is None else f"OF-{owner}"


LIST = Entity(
    WordList, Key("LIST#{list}", "LIST"), gsi1=Key("LISTS#{owner_scope}", "{alphabetical}#{list}", unless="is_unlisted")
)


@dataclass(frozen=True, slots=True)
class Quota:
    """How many private lists a member has."""

    user: str
    lists: int = 0


QUOTA = Entity(Quota, Key("USER#{user}", "LISTS"))


@dataclass(frozen=True, slots=True)
class PublicName:
    """The name of a public list, by a hash of its folded form: no other public list has the same."""

    hash: str
    list: str

    @classmethod
    def of(cls, word_list: WordList) -> PublicName | None:
        """None for a list that is private or deleted."""
        is_named = word_list.public and word_list.deleted_at is None
        return cls(_name_hash(word_list.name), word_list.list) if is_named else None


PUBLIC_NAME = Entity(PublicName, Key("LISTNAME#{hash}", "LISTNAME"))


def _name_hash(name: str) -> str:
    """Folded names may be too long for a key."""
    return sha256(folded(name).encode()).hexdigest()


class ListNameTaken(Conflict):
    explanation = "There is already a public list with this name. Choose another name, or add words to that list."


# ── reading ──


async def read_list(table: Table, list_id: str, *, consistent: bool = False) -> WordList | None:
    return await table.get(LIST.at(list=list_id), consistent=consistent)


async def read_lists(table: Table, ids: Sequence[str]) -> Mapping[str, WordList]:
    """The lists that exist, by id, by a consistent read."""
    word_lists = await table.find_many([LIST.at(list=list_id) for list_id in ids], consistent=True)
    return {word_list.list: word_list for word_list in word_lists}


async def read_public_list_id(table: Table, name: str) -> str | None:
    """The id of the public list with this name, folded; consistent."""
    named = await table.get(PUBLIC_NAME.at(hash=_name_hash(name)), consistent=True)
    return None if named is None else named.list


async def read_public_list(table: Table, name: str) -> WordList | None:
    list_id = await read_public_list_id(table, name)
    return None if list_id is None else await read_list(table, list_id, consistent=True)


def lists_by_name(table: Table, owner: str | None) -> AsyncIterator[WordList]:
    """All public lists, or one member's private ones."""
    return table.iterate(LIST.on("gsi1", owner_scope=owner_scope(owner)))


async def read_lists_page(table: Table, member: str | None, window: Window) -> Page[WordList]:
    """Public lists and one member's private ones, merged by name."""
    scopes = [owner_scope(None), *([owner_scope(member)] if member is not None else [])]
    return await table.page([LIST.on("gsi1", owner_scope=scope) for scope in scopes], window.open("word lists"))


def deleted_lists(table: Table) -> AsyncIterator[WordList]:
    """The deleted lists whose words are not all deleted yet."""
    return table.iterate(LIST.on("gsi1", owner_scope=_DELETED))


async def lists_including_deleted(table: Table, owner: str) -> AsyncIterator[WordList]:
    """A member's private lists, those that they have deleted included."""
    for scope in (owner_scope(owner), _DELETED, f"CLEARED-OF-{owner}"):
        async for word_list in table.iterate(LIST.on("gsi1", owner_scope=scope)):
            if word_list.owner == owner:
                yield word_list


# ── writing ──


async def create_list(table: Table, new: WordList, unit: UnitOfWork) -> None:
    """Create a list, and in the same transaction count a private one for its owner, or take a public one's name."""
    writes: list[Write] = [LIST.put(new, when=absent()), *_name_writes(None, PublicName.of(new))]
    if not new.public and new.owner is not None:
        below_limit = absent("lists") | less("lists", MOST_LISTS)
        writes.append(QUOTA.update(QUOTA.at(user=new.owner), add={"lists": 1}, when=below_limit))
    try:
        await unit.transact(table, new, *writes, *_occurrence(unit, Kind.WORD_LIST_CREATED, new))
    except ConditionFailed as failed:
        # The id is new, so an existing list was written by an earlier attempt whose answer was lost.
        if not failed.at(0):
            raise (ListNameTaken(path=("input", "name")) if new.public else TooManyLists()) from None


def _occurrence(unit: UnitOfWork, kind: Kind, word_list: WordList) -> tuple[Write, ...]:
    return unit.occurred(kind, f"WordList:{word_list.list}")


async def change_list(
    table: Table, list_id: str, change: Callable[[WordList], Awaitable[WordList]], unit: UnitOfWork
) -> WordList:
    """Change a list's name, level or visibility. NotFound if it does not exist or was deleted.

    `change` is made again from the current list if another change comes first, and also if it publishes the list and a
    word is drawn first.
    """

    async def write(current: WordList | None) -> WordList:
        if current is None or current.deleted_at is not None:
            raise NotFound("There is no such list.", path=("input", "list"))
        after = replace(await change(current), revision=current.revision + 1)
        writes = _change_writes(current, after, *_DESCRIPTION)
        try:
            await unit.transact(table, after, *writes, *_occurrence(unit, Kind.WORD_LIST_CHANGED, after))
        except ConditionFailed as failed:
            if failed.doubtful and _has_description(failed.stored(LIST), after):
                return after
            takes_name = PublicName.of(after) not in (None, PublicName.of(current))
            if takes_name and list(failed.failures) == [len(writes) - 1]:
                raise ListNameTaken(path=("input", "name")) from None
            raise
        return after

    return await optimistic(lambda: read_list(table, list_id, consistent=True), write)


async def delete_list(table: Table, list_id: str, answer: str, unit: UnitOfWork) -> None:
    """Delete a list; what remains of it is its empty record. A list that was deleted before stays deleted."""

    async def delete(current: WordList | None) -> None:
        if current is None:
            raise NotFound("There is no such list.", path=("input", "list"))
        if current.deleted_at is not None:
            await unit.store_receipt(table, answer)
            return
        # All are set, even those that seem empty: words may have been added, removed or drawn since it was read.
        emptied = replace(current, next_ordinal=0, removed=0, order=None, adding=None, deleted_at=unit.now)
        changes = _change_writes(current, emptied, "next_ordinal", "removed", "order", "adding", "deleted_at")
        await unit.transact(table, answer, *changes, *_occurrence(unit, Kind.WORD_LIST_DELETED, current))

    await optimistic(lambda: read_list(table, list_id, consistent=True), delete, idempotent=True)


def _change_writes(current: WordList, after: WordList, *names: str) -> list[Write]:
    """The writes that set these fields; they fail if the list's description has changed."""
    unchanged = where(revision=current.revision, deleted_at=None)
    if after.public and not current.public:  # a word that is drawn now is in its owner's part of the index
        unchanged &= where(drawn=current.drawn)
    writes: list[Write] = [LIST.update_with_indexes(after, *names, when=unchanged)]
    if _is_private(current) and not _is_private(after):
        writes.append(QUOTA.update(QUOTA.at(user=current.owner), add={"lists": -1}))
    return [*writes, *_name_writes(PublicName.of(current), PublicName.of(after))]


def _name_writes(before: PublicName | None, after: PublicName | None) -> Iterator[Write]:
    """What frees a list's public name and takes another, which fails if another list has that. It comes last."""
    if before != after and before is not None:
        yield PUBLIC_NAME.delete(PUBLIC_NAME.item_key(before))
    if before != after and after is not None:
        yield PUBLIC_NAME.put(after, when=absent())


_DESCRIPTION = ("name", "level", "public", "owner", "revision")


def _has_description(found: WordList | None, word_list: WordList) -> bool:
    return found is not None and all(getattr(found, name) == getattr(word_list, name) for name in _DESCRIPTION)


def _is_private(word_list: WordList) -> bool:
    return not word_list.public and word_list.deleted_at is None


async def mark_cleared(table: Table, word_list: WordList) -> None:
    """Take a deleted list, whose words are gone, out of the index."""
    # If its owner was erased, the record is gone, and the index shows it late.
    await table.try_write(
        LIST.update_with_indexes(replace(word_list, cleared=True), "cleared", when=present("deleted_at"))
    )
