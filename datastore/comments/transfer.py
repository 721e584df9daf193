"""Importing and exporting comments: batches that are counted exactly once, however often an import is repeated.

| wanted                   | read or write                                           | requests |
|--------------------------|---------------------------------------------------------|----------|
| the state of a batch     | GetItem IMPORT#<digest> BATCH, consistent               | 1        |
| which comments exist     | BatchGetItem COMMENT#…, HELD#…, consistent              | 1        |
| a batch's comments       | BatchWriteItem, unprocessed ones followed up            | 1 for 25 |
| its counts               | one transaction: the batch counted, ADD to STATISTICS#… | 1        |

A batch is identified by the comments in it. Its intent, the list of comments that are new, is written first; then the
comments are; then one transaction counts them and closes the intent. An import that finds an open intent repeats the
last two steps: writing the same items is harmless, and only one transaction closes the intent. A batch costs 4 write
units a comment, where a transaction of comments would cost 8.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from datastore.comments import COMMENT, HELD, Comment, entity_of
from datastore.comments.counts import recounted, settle, unsettled
from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key

BATCH = 50
"""At most fifty counts, of as many products and languages, which fit into one transaction with the intent."""
BATCHES_AT_ONCE = 4
IMPORT_SHARD = 0
"""One shard for all batches: a few at a time do not need more, and there is less to settle."""


@dataclass(frozen=True, slots=True)
class Intent:
    """The new comments of a batch, and whether they have been counted. An open intent never expires."""

    digest: str
    new: tuple[str, ...]
    counted: bool = False
    expires: datetime | None = None


INTENT = Entity(Intent, Key("IMPORT#{digest}", "BATCH"), ttl="expires")


@dataclass(frozen=True, slots=True)
class Imported:
    """How many comments were read, and how many of them were new."""

    read: int
    new: int


async def import_comments(
    table: Table, comments: Iterable[Comment], expires: datetime, on_progress: Callable[[], None] = lambda: None
) -> Imported:
    """Writes and counts the comments that are missing, a few batches at a time.

    Batches are remembered until `expires`, so that a repeated import does not count them again.
    """
    read = new = 0
    source = iter(comments)
    while group := list(islice(source, BATCH * BATCHES_AT_ONCE)):
        batches = [group[start : start + BATCH] for start in range(0, len(group), BATCH)]
        new += sum(await asyncio.gather(*(import_batch(table, batch, expires) for batch in batches)))
        read += len(group)
        on_progress()
    for product in await unsettled(table):
        await settle(table, product)
    return Imported(read, new)


async def import_batch(table: Table, batch: Sequence[Comment], expires: datetime) -> int:
    """Writes and counts the comments of a batch that are missing; returns their number."""
    distinct = {comment.node_key: comment for comment in batch}
    digest = hashlib.sha256("\n".join(sorted(distinct)).encode()).hexdigest()[:32]
    intent = await table.get(INTENT.at(digest=digest), consistent=True)
    if intent is None:
        intent = Intent(digest, await _missing(table, distinct))
        try:
            await table.write(INTENT.put(intent, when=absent()))
        except ConditionFailed:
            intent = await table.get(INTENT.at(digest=digest), consistent=True) or intent
    if intent.counted:
        return 0
    new = [distinct[key] for key in intent.new]
    await table.write_many(entity_of(comment).put(comment) for comment in new)
    closed = INTENT.put(Intent(digest, (), counted=True, expires=expires), when=present() & where(counted=False))
    try:
        await table.transact(closed, *recounted(((1, comment) for comment in new), shard=IMPORT_SHARD))
    except ConditionFailed:
        return 0  # counted by another import, or by our own attempt whose answer was lost
    return len(new)


async def _missing(table: Table, distinct: dict[str, Comment]) -> tuple[str, ...]:
    places = [entity.place_of(comment) for entity in (COMMENT, HELD) for comment in distinct.values()]
    stored = await table.get_many(places, consistent=True)
    existing = {comment.node_key for comment in stored if comment is not None}
    return tuple(key for key in distinct if key not in existing)


async def export_comments(
    table: Table, product: str | None = None, after: Comment | None = None
) -> AsyncIterator[Comment]:
    """Every comment, held ones too, in an order that repeats; `after` resumes after the last one that was exported."""
    if product is None:
        place = None if after is None else entity_of(after).place_of(after)
        async for comment in table.scan(COMMENT, HELD, after=place):
            yield comment
        return
    for entity in (COMMENT, HELD):
        partition = entity.on(product=product)
        if after is not None and entity is entity_of(after):
            partition = partition.past(entity.sort_of(after))
        elif after is not None and entity is COMMENT:
            continue  # all published comments come before the held ones
        async for comment in table.iterate(partition):
            yield comment
