"""Importing and exporting comments: batches that are counted exactly once, however often an import is repeated.

| wanted                   | read or write                                           | requests |
|--------------------------|---------------------------------------------------------|----------|
| the state of a batch     | GetItem IMPORT#<digest> BATCH, consistent               | 1        |
| which comments exist     | BatchGetItem COMMENT#…, HELD#…, consistent              | 1        |
| a batch's comments       | BatchWriteItem, unprocessed ones followed up            | 1 for 25 |
| its counts               | one transaction: the batch counted, ADD to STATISTICS#… | 1        |

A batch is identified by the comments in it. An `ImportBatch` record with the list of new comments is written first,
then the comments, and then one transaction counts them and sets the batch's `counted`. An import that finds a batch
not counted yet repeats the last two steps: writing the same items again is harmless, and only one transaction can set
`counted`. A batch costs 4 write units a comment, where a transaction of comments would cost 8.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from datastore.comments.counts import count_updates, read_unsettled_products, settle_product
from datastore.comments.records import COMMENT, HELD, Comment, entity_for
from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key

BATCH = 50
"""At most fifty products and languages, so the counts fit into one transaction with the batch record."""
BATCHES_AT_ONCE = 4
IMPORT_SHARD = 0
"""One shard for all batches: for a few at a time it is enough, and there is less to settle."""


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """The new comments of a batch, and whether they have been counted. It expires only after that."""

    digest: str
    new: tuple[str, ...]
    counted: bool = False
    expires: datetime | None = None


IMPORT_BATCH = Entity(ImportBatch, Key("IMPORT#{digest}", "BATCH"), ttl="expires")


@dataclass(frozen=True, slots=True)
class Imported:
    """How many comments were read, and how many of them were new."""

    read: int
    new: int


async def import_comments(
    table: Table, comments: Iterable[Comment], expires: datetime, on_progress: Callable[[], None] = lambda: None
) -> Imported:
    """Write and count the comments that are missing, a few batches at a time.

    Batch records are kept until `expires`, so that a repeated import does not count them again.
    """
    read = new = 0
    source = iter(comments)
    while group := list(islice(source, BATCH * BATCHES_AT_ONCE)):
        batches = [group[start : start + BATCH] for start in range(0, len(group), BATCH)]
        new += sum(await asyncio.gather(*(import_batch(table, batch, expires) for batch in batches)))
        read += len(group)
        on_progress()
    for product in await read_unsettled_products(table):
        await settle_product(table, product)
    return Imported(read, new)


async def import_batch(table: Table, batch: Sequence[Comment], expires: datetime) -> int:
    """Write and count the comments of a batch that are missing; return their number."""
    distinct = {comment.node_key: comment for comment in batch}
    digest = hashlib.sha256("\n".join(sorted(distinct)).encode()).hexdigest()[:32]
    stored_batch = await table.get(IMPORT_BATCH.at(digest=digest), consistent=True)
    if stored_batch is None:
        stored_batch = ImportBatch(digest, await _missing(table, distinct))
        try:
            await table.write(IMPORT_BATCH.put(stored_batch, when=absent()))
        except ConditionFailed:
            stored_batch = await table.get(IMPORT_BATCH.at(digest=digest), consistent=True) or stored_batch
    if stored_batch.counted:
        return 0
    new = [distinct[key] for key in stored_batch.new]
    await table.write_many(entity_for(comment).put(comment) for comment in new)
    mark_counted = IMPORT_BATCH.put(
        ImportBatch(digest, (), counted=True, expires=expires), when=present() & where(counted=False)
    )
    try:
        await table.transact(mark_counted, *count_updates(((1, comment) for comment in new), shard=IMPORT_SHARD))
    except ConditionFailed:
        return 0  # counted by another import, or by an earlier attempt whose answer was lost
    return len(new)


async def _missing(table: Table, distinct: dict[str, Comment]) -> tuple[str, ...]:
    keys = [entity.item_key(comment) for entity in (COMMENT, HELD) for comment in distinct.values()]
    stored = await table.get_many(keys, consistent=True)
    existing = {comment.node_key for comment in stored if comment is not None}
    return tuple(key for key in distinct if key not in existing)


async def export_comments(
    table: Table, product: str | None = None, after: Comment | None = None
) -> AsyncIterator[Comment]:
    """Every comment, including held ones, always in the same order. `after` is the last one already exported."""
    if product is None:
        last_key = None if after is None else entity_for(after).item_key(after)
        async for comment in table.scan(COMMENT, HELD, after=last_key):
            yield comment
        return
    for entity in (COMMENT, HELD):
        partition = entity.on(product=product)
        if after is not None and entity is entity_for(after):
            partition = partition.past(entity.sort_key(after))
        elif after is not None and entity is COMMENT:
            continue  # all published comments come before the held ones
        async for comment in table.iterate(partition):
            yield comment
