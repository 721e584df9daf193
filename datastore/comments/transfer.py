"""Importing and exporting comments: batches that are written and counted once, however often an import is repeated.

| wanted                   | read or write                                                        | requests |
|--------------------------|----------------------------------------------------------------------|----------|
| which batches are done   | BatchGetItem IMPORT#<digest> BATCH, consistent                       | 1 for 50 |
| which comments exist     | BatchGetItem COMMENT#…, HELD#…, consistent                           | 1 for 50 |
| a batch                  | one transaction: comments, pointers, ADD to STATISTICS#…, a record   | 1 for 25 |

A batch is identified by the comments in it, and its transaction writes all or nothing. So members never see a comment
that is not counted yet, and an import that was killed finds either nothing of a batch or its record: what members have
edited or deleted since is left alone. In exchange a comment costs 8 write units, twice as much as alone, and its
pointer 3.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from datastore.comments.counts import SHARDS, count_updates
from datastore.comments.leaders import read_unsettled_products, settle_product
from datastore.comments.pointers import POINTER, pointer_to
from datastore.comments.records import COMMENT, HELD, Comment, entity_for
from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.journal.kinds import Kind
from datastore.receipts import Once

GROUP = 50
BATCH = 25
"""With their pointers, 25 counts at most and the batch's record, three quarters of what fits into a transaction."""
GROUPS_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """A batch that was imported. One of layout 1 that is not `counted` was interrupted; `new` lists its comments."""

    digest: str
    new: tuple[str, ...] = ()
    counted: bool = False
    expires: datetime | None = None


IMPORT_BATCH = Entity(ImportBatch, Key("IMPORT#{digest}", "BATCH"), ttl="expires")


@dataclass(frozen=True, slots=True)
class Imported:
    """How many comments were read, and how many of them were new."""

    read: int
    new: int


async def import_comments(
    table: Table,
    comments: Iterable[Comment],
    expires: datetime,
    once: Once,
    on_progress: Callable[[], None] = lambda: None,
) -> Imported:
    """Write and count the comments that are missing, a few groups at a time.

    Batch records are kept until `expires`, so that a repeated import passes over them. The journal says of each batch
    how many comments it had: one occurrence for each would fill the transaction.
    """
    read = new = 0
    source = iter(comments)
    while some := list(islice(source, GROUP * GROUPS_AT_ONCE)):
        groups = [some[start : start + GROUP] for start in range(0, len(some), GROUP)]
        new += sum(await asyncio.gather(*(import_group(table, group, expires, once) for group in groups)))
        read += len(some)
        on_progress()
    for product in await read_unsettled_products(table):
        await settle_product(table, product)
    return Imported(read, new)


async def import_group(table: Table, group: Sequence[Comment], expires: datetime, once: Once) -> int:
    """Write and count the comments of a group that are missing; return their number.

    A group is what layout 1 called a batch: one that it has counted is done, one that it has not is completed.
    """
    distinct = {comment.node_key: comment for comment in group}
    keys = list(distinct)
    batches = [keys[start : start + BATCH] for start in range(0, len(keys), BATCH)]
    digests = [_digest(some) for some in (keys, *batches)]
    whole, *done = await table.get_many([IMPORT_BATCH.at(digest=digest) for digest in digests], consistent=True)
    if whole is not None and whole.counted:
        return 0
    if whole is not None and whole.new:
        return await _complete(table, whole, distinct, expires)
    left = [batch for batch, record in zip(batches, done, strict=True) if record is None]
    return sum([await _import_batch(table, [distinct[key] for key in batch], expires, once) for batch in left])


def _digest(keys: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()[:32]


async def _import_batch(table: Table, batch: Sequence[Comment], expires: datetime, once: Once) -> int:
    digest = _digest(comment.node_key for comment in batch)
    record = IMPORT_BATCH.put(ImportBatch(digest, counted=True, expires=expires), when=absent())
    while True:
        new = await _missing(table, batch)
        puts = [entity_for(comment).put(comment, when=absent()) for comment in new]
        pointers = [POINTER.put(pointer_to(comment)) for comment in new]
        counts = count_updates(((1, comment) for comment in new), shard=int(digest, 16) % SHARDS)
        noted = once.occurred(Kind.COMMENTS_IMPORTED, None, note=f"{len(new)} comments") if new else ()
        try:
            await table.transact(record, *puts, *counts, *pointers, *noted)
        except ConditionFailed as failed:
            if failed.at(0):
                return len(new) if failed.doubtful else 0  # done by an attempt without an answer, or by another import
            continue  # another import has written one of them
        return len(new)


async def _complete(table: Table, stored: ImportBatch, distinct: Mapping[str, Comment], expires: datetime) -> int:
    """Count a group that layout 1 has begun. What it wrote may have been edited since, so only what is absent is put.

    A comment that was deleted since cannot be told from one that was never written.
    """
    new = [distinct[key] for key in stored.new]
    for comment in await _missing(table, new):
        put = entity_for(comment).put(comment, when=absent())
        with suppress(ConditionFailed):
            await table.transact(put, POINTER.put(pointer_to(comment)))
    counted = ImportBatch(stored.digest, counted=True, expires=expires)
    mark_counted = IMPORT_BATCH.put(counted, when=present() & where(counted=False))
    try:
        await table.transact(mark_counted, *count_updates(((1, comment) for comment in new), shard=0))
    except ConditionFailed:
        return 0  # counted by another import, or by an earlier attempt whose answer was lost
    return len(new)


async def _missing(table: Table, comments: Sequence[Comment]) -> list[Comment]:
    keys = [entity.item_key(comment) for entity in (COMMENT, HELD) for comment in comments]
    stored = await table.get_many(keys, consistent=True)
    existing = {comment.node_key for comment in stored if comment is not None}
    return [comment for comment in comments if comment.node_key not in existing]


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


async def begins_with(table: Table, product: str) -> bool:
    """Whether the comments on this product come first when every comment is exported."""
    async for comment in table.scan(COMMENT, HELD):
        return bool(comment.product == product)
    return False
