"""Many comments at once: batches that are counted exactly once, whatever is interrupted and repeated.

| wanted                   | read or write                                           | requests |
|--------------------------|---------------------------------------------------------|----------|
| what a batch has become  | GetItem IMPORT#<digest> BATCH, consistent               | 1        |
| which comments are there | BatchGetItem COMMENT#…, HELD#…, consistent              | 1        |
| a batch's comments       | BatchWriteItem, unprocessed ones followed up            | 1 for 25 |
| its counts               | one transaction: the batch counted, ADD to STATISTICS#… | 1        |

A batch is known by the comments in it. Its intent, the comments that were not there, is written first; then they are;
then one transaction counts them and closes the intent. Whoever finds an open intent does the last two again: writing
the same items is harmless, and only one closes it. Batches cost a comment's 4 write units where a transaction of
comments would cost 8.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from datastore.comments import COMMENT, HELD, Comment
from datastore.comments.counts import recounted
from datastore.dynamo import ConditionFailed, Entity, Key, Table, absent, present, where

BATCH = 50
"""Comments of fifty products and languages are fifty counts, which one transaction takes with the intent."""
BATCHES_SHARD = 0
"""One shard for all batches: a few at a time do not need more, and there is less to settle."""


@dataclass(frozen=True, slots=True)
class Intent:
    """The comments that a batch brings, and whether they have been counted. An open one never expires."""

    digest: str
    new: tuple[str, ...]
    counted: bool = False
    expires: datetime | None = None


INTENT = Entity(Intent, Key("IMPORT#{digest}", "BATCH"), ttl="expires")


async def bring(table: Table, batch: Sequence[Comment], until: datetime) -> int:
    """Writes and counts those of a batch that are not there yet; how many that were."""
    distinct = {one.node_key: one for one in batch}
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
    await table.write_many((COMMENT if one.held is None else HELD).put(one) for one in new)
    closed = INTENT.put(Intent(digest, (), counted=True, expires=until), when=present() & where(counted=False))
    try:
        await table.transact(closed, *recounted(((1, one) for one in new), shard=BATCHES_SHARD))
    except ConditionFailed:
        return 0  # counted by another, or by an attempt of ours that got no answer
    return len(new)


async def _missing(table: Table, distinct: dict[str, Comment]) -> tuple[str, ...]:
    places = [entity.place_of(one) for entity in (COMMENT, HELD) for one in distinct.values()]
    found = await table.get_many(places, consistent=True)
    there = {one.node_key for one in found if one is not None}
    return tuple(key for key in distinct if key not in there)


async def comments_after(table: Table, product: str | None, last: Comment | None) -> AsyncIterator[Comment]:
    """Every comment after the last one: of a product, published ones first, or in the order of the table itself."""
    if product is None:
        place = None if last is None else (COMMENT if last.held is None else HELD).place_of(last)
        async for comment in table.scan(COMMENT, HELD, after=place):
            yield comment
        return
    partitions = [COMMENT.on(product=product), HELD.on(product=product)]
    if last is not None and last.held is None:
        partitions[0] = partitions[0].past(COMMENT.sort_of(last))
    elif last is not None:
        partitions = [partitions[1].past(HELD.sort_of(last))]
    for partition in partitions:
        async for comment in table.iterate(partition):
            yield comment
