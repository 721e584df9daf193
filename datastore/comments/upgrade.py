"""Upgrades to layout 2, where the ranking of products has new places, and layout 3, where each comment has a pointer.

| wanted                        | read or write                                                    | requests      |
|-------------------------------|------------------------------------------------------------------|---------------|
| products that layout 1 counts | Scan                                                             | 1 a 500 items |
| their places in the ranking   | `settle_product`: STATISTICS#<p> LEADER                          | 3 a product   |
| comments, then pointers       | Scan; BatchGetItem of each comment's pointer and vice versa      | 1 for 50      |
| a missing or wrong pointer    | a transaction: the pointer, and a check of its comment           | 1 for 25      |
| a pointer to nothing          | a transaction: the pointer, checks that there is no comment, and | 1             |
|                               | the journal's occurrence of its deletion                         |               |

A sum of counts adds both places, so it is exact at every moment, whichever release counts beside it, and counts need
not be moved. A process of the first release ranks products by its own LEADER items, which this release neither reads
nor writes. What it counts is part of this release's statistics at once, and of its ranking when the product is settled
next: after any change by this release, or when the upgrade is run again.

A process of an earlier release writes comments without pointers, and leaves the pointers of those that it moderates or
deletes as they were. Until the upgrade is run again, its comments are missing in the lists that are read by pointers;
comments that are gone or held are never shown by them, since those lists read the comments themselves. Nor does it
record a deletion in the journal: that is done when the pointer is removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from datastore.comments.counts import OLD_TALLY
from datastore.comments.leaders import OLD_LEADER, settle_product
from datastore.comments.pointers import POINTER, Pointer, pointer_to
from datastore.comments.records import COMMENT, HELD, Comment, entity_for
from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, present, where
from datastore.journal.kinds import Kind

if TYPE_CHECKING:
    from datastore.dynamo import Table
    from datastore.dynamo.entity import ItemKey
    from datastore.dynamo.writes import Write
    from datastore.receipts import Once

T = TypeVar("T")

_AT_ONCE = 16
_GROUP = 50
_BATCH = 25


async def upgrade(table: Table, advance: Callable[[int], None], once: Once | None = None) -> None:
    """Resumable, idempotent, safe beside running processes. `once` records what earlier releases have deleted."""
    await _rank_products(table, advance)
    await _write_pointers(table, advance)
    await _remove_pointers(table, advance, once)


async def _rank_products(table: Table, advance: Callable[[int], None]) -> None:
    """Rank every product that layout 1 counts."""
    products = {record.product async for record in table.scan(OLD_TALLY, OLD_LEADER)}
    rest = iter(sorted(products))
    while some := list(islice(rest, _AT_ONCE)):
        await asyncio.gather(*(settle_product(table, product) for product in some))
        advance(len(some))


async def _write_pointers(table: Table, advance: Callable[[int], None]) -> None:
    """Write the pointers that are missing or say something else than their comment."""
    async for comments in _groups(table.scan(COMMENT, HELD, consistent=True)):
        stored = await table.get_many([_pointer_key(comment) for comment in comments], consistent=True)
        wrong = [one for one, pointer in zip(comments, stored, strict=True) if pointer != pointer_to(one)]
        batches = [wrong[start : start + _BATCH] for start in range(0, len(wrong), _BATCH)]
        await asyncio.gather(*(_point_to(table, batch) for batch in batches))
        advance(len(comments))


def _pointer_key(comment: Comment) -> ItemKey[Pointer]:
    return POINTER.at(author=comment.author, ulid=comment.ulid)


async def _point_to(table: Table, comments: Sequence[Comment]) -> None:
    try:
        await table.transact(*(write for one in comments for write in _pointer_if_unchanged(one)))
    except ConditionFailed:  # one of them has just changed
        for comment in comments:
            await _point_to_one(table, comment)


async def _point_to_one(table: Table, comment: Comment) -> None:
    entity, current = entity_for(comment), comment
    while True:
        try:
            await table.transact(*_pointer_if_unchanged(current))
        except ConditionFailed:
            changed = await table.get(entity.item_key(comment), consistent=True)
            if changed is None:  # moderated or deleted: its own transaction wrote or deleted its pointer
                return
            current = changed  # edited, which writes no pointer
        else:
            return


def _pointer_if_unchanged(comment: Comment) -> list[Write]:
    entity = entity_for(comment)
    unchanged = present() & where(revision=comment.revision)
    return [POINTER.put(pointer_to(comment)), entity.check(entity.item_key(comment), unchanged)]


async def _remove_pointers(table: Table, advance: Callable[[int], None], once: Once | None) -> None:
    """Remove the pointers to comments that a process of an earlier release has deleted."""
    async for pointers in _groups(table.scan(POINTER, consistent=True)):
        keys = [entity.at(product=one.product, ulid=one.ulid) for entity in (COMMENT, HELD) for one in pointers]
        stored = await table.get_many(keys, consistent=True)
        existing = {(comment.product, comment.ulid) for comment in stored if comment is not None}
        for pointer in pointers:
            if (pointer.product, pointer.ulid) not in existing:
                await _remove(table, pointer, once)
        advance(len(pointers))


async def _remove(table: Table, pointer: Pointer, once: Once | None) -> None:
    places = [entity.at(product=pointer.product, ulid=pointer.ulid) for entity in (COMMENT, HELD)]
    unless_stored = [place.entity.check(place, absent()) for place in places]
    name = f"Comment:{pointer.product}#{pointer.ulid}"
    occurrence = () if once is None else once.occurred(Kind.COMMENT_DELETED, name)
    with suppress(ConditionFailed):  # the comment is there after all, or another upgrade has removed the pointer
        await table.transact(POINTER.delete(POINTER.item_key(pointer), when=present()), *unless_stored, *occurrence)


async def _groups(records: AsyncIterator[T]) -> AsyncIterator[list[T]]:
    group: list[T] = []
    async for record in records:
        group.append(record)
        if len(group) == _GROUP:
            yield group
            group = []
    if group:
        yield group
