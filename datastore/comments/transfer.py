"""Importing and exporting comments: batches that are written and counted once, however often an import is repeated.

| wanted                   | read or write                                                        | requests |
|--------------------------|----------------------------------------------------------------------|----------|
| which batches are done   | BatchGetItem IMPORT#<digest> BATCH, consistent                       | 1 for 100 |
| which comments exist     | BatchGetItem COMMENT#…, HELD#… and REPLY#…, consistent               | 1 for 25 |
| who has an id            | gsi1 LATEST#<shard>, for each missing comment                        | 25 at once |
| threads of replies       | BatchGetItem THREAD#…, then COMMENT#…, HELD#…; consistent            | 2 for 25 |
| a batch                  | one transaction: comments, pointers, ADD to STATISTICS#…, a record;  | 1 for 25 |
|                          | of replies also THREAD#…, of reviews USER#… REVIEW#… if each is one  |          |

A batch is identified by the comments in it, and its transaction writes all or nothing. So members never see a comment
that is not counted yet, and an import that was killed finds either nothing of a batch or its record: what members have
edited or deleted since is left alone. In exchange a comment costs 8 write units, twice as much as alone, and its
pointer 3.

An id belongs to one comment of all products: pointers, the lists of the latest comments and the moderators' queue have
nothing else to tell comments apart. The index shows who has an id. It may be behind, so a pointer is also written on
the condition that its member has no comment with this id on another product.

Of the comments that are given at once, replies are written last, so that they find what they answer. A reply whose
top-level comment is nowhere gets a stub to stand under. A stub counts as existing: what was removed stays removed.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from datastore.changes.occurrences import MOST_WEBHOOKS, Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments import counts, records
from datastore.comments.records import COMMENT, HELD, REPLY, Comment
from datastore.comments.reviews import REVIEW_PLACE, ReviewPlace, place_writes
from datastore.comments.threads import THREAD, Thread, is_visible, read_thread_states
from datastore.comments.verified import entry_writes
from datastore.dynamo import ConditionFailed, Stale, Table, gather_or_cancel, optimistic
from datastore.dynamo.entity import Entity, Key, Partition
from datastore.dynamo.writes import Write, absent, where

# ── imports and exports ──

BATCH = 25
AT_ONCE = 4 * BATCH
_ROOM = 100 - 2 - MOST_WEBHOOKS
"""Writes of a transaction, besides the batch's record, its occurrence and the deliveries of it."""
_SETTLED_AT_ONCE = 8
_OF_THREAD = ("thread", "comment", "helpful", "verified or stub")
"""What the first reply of a thread writes: the thread, and its comment wherever that is repeated."""


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """A batch that was imported."""

    digest: str
    expires: datetime


IMPORT_BATCH = Entity(ImportBatch, Key("IMPORT#{digest}", "BATCH"), ttl="expires")


class IdTaken(Exception):
    """Comments on other products have the ids of these. Some of the others may have been imported: `new`."""

    def __init__(self, *comments: Comment) -> None:
        super().__init__(*(comment.node_key for comment in comments))
        self.comments = comments
        self.new: Sequence[Comment] = ()


async def import_comments(table: Table, comments: Sequence[Comment], expires: datetime, unit: UnitOfWork) -> int:
    """Write and count those of up to `AT_ONCE` comments that are missing, or raise IdTaken; return how many are new.

    Batch records are kept until `expires`, so that a repeated import passes over them. The journal says of each batch
    how many comments it had: one occurrence for each would fill the transaction.
    """
    products: dict[str, str] = {}
    for comment in comments:
        if products.setdefault(comment.ulid, comment.product) != comment.product:
            raise IdTaken(comment)
    distinct = list({comment.node_key: comment for comment in reversed(comments)}.values())
    tops = [comment for comment in distinct if comment.root is None]
    replies = [comment for comment in distinct if comment.root is not None]
    new: list[Comment] = []
    try:
        for some in (tops, replies):
            await _import_some(table, some, expires, unit, new)
    except IdTaken as taken:
        taken.new = new
        raise
    return len(new)


async def _import_some(
    table: Table, comments: Iterable[Comment], expires: datetime, unit: UnitOfWork, new: list[Comment]
) -> None:
    """Import those that are missing, and add them to `new`; IdTaken once all that can be imported are."""
    batches = list(_batches(comments))
    done = await table.get_many([IMPORT_BATCH.at(digest=_digest(batch)) for batch in batches], consistent=True)
    taken: list[Comment] = []

    async def add(batch: Sequence[Comment]) -> None:
        try:
            new.extend(await _import_batch(table, batch, expires, unit))
        except IdTaken as refused:
            taken.extend(refused.comments)

    await gather_or_cancel(add(batch) for batch, record in zip(batches, done, strict=True) if record is None)
    if taken:
        raise IdTaken(*taken)


async def settle_products(table: Table) -> None:
    """Show the counts of all that was imported: of any number of products, of which some are listed at a time."""
    settled: set[str] = set()
    while found := [one for one in await counts.read_unsettled_products(table) if one not in settled]:
        await gather_or_cancel((counts.settle_product(table, product) for product in found), _SETTLED_AT_ONCE)
        settled.update(found)


def _batches(comments: Iterable[Comment]) -> Iterator[list[Comment]]:
    """Comments that fit into one transaction, however many counts and threads they have."""
    batch: list[Comment] = []
    others: set[tuple[str, ...]] = set()
    for comment in comments:
        thread = ((name, comment.product, comment.root) for name in _OF_THREAD if comment.root is not None)
        review = [("review", comment.author, comment.product)] if comment.placed else []
        verified = [("verified", comment.product, comment.ulid)] if comment.verified_at is not None else []
        own = {("counts", comment.product, comment.language), *thread, *review, *verified}
        if len(batch) == BATCH or 2 * (len(batch) + 1) + len(others | own) > _ROOM:
            yield batch
            batch, others = [], set()
        batch.append(comment)
        others |= own
    if batch:
        yield batch


def _digest(comments: Iterable[Comment]) -> str:
    return hashlib.sha256("\n".join(sorted(comment.node_key for comment in comments)).encode()).hexdigest()[:32]


async def _import_batch(
    table: Table, batch: Sequence[Comment], expires: datetime, unit: UnitOfWork
) -> Sequence[Comment]:
    """The comments that are written."""
    digest = _digest(batch)

    async def write(missing: Sequence[Comment]) -> Sequence[Comment]:
        await _refuse_taken(table, missing)
        threads = await _thread_writes(table, missing)
        record = IMPORT_BATCH.put(ImportBatch(digest, expires), when=absent())
        try:
            await table.transact(record, *_batch_writes(missing, digest, unit), *threads)
        except ConditionFailed as failed:
            if failed.at(0):  # done by an attempt without an answer, or by another import
                return missing if failed.doubtful else ()
            for place, comment in enumerate(missing, 1):
                if failed.at(place):
                    raise IdTaken(comment) from None
            raise Stale from None  # if it is none of these, another import has written one of the comments
        return missing

    return await optimistic(lambda: _missing(table, batch), write)


def _batch_writes(new: Sequence[Comment], digest: str, unit: UnitOfWork) -> Iterator[Write]:
    """The pointers come first: `_import_batch` relies on their positions."""
    for comment in new:
        yield records.POINTER.put(records.pointer_to(comment), when=absent() | where(product=comment.product))
    for comment in new:
        yield records.entity_for(comment).put(comment, when=absent())
    for comment in new:
        yield from place_writes(None, comment)
        yield from entry_writes(None, comment)
    yield from counts.count_updates(((1, comment) for comment in new), shard=int(digest, 16) % counts.SHARDS)
    if new:
        yield from unit.occurred(Kind.COMMENTS_IMPORTED, None, note=f"{len(new)} comments")


async def _thread_writes(table: Table, new: Sequence[Comment]) -> list[Write]:
    """What the published replies of a batch add to their threads."""
    replies = Counter((one.product, one.root) for one in new if one.root is not None and is_visible(one))
    states = await read_thread_states(table, list(replies)) if replies else []
    return [write for state in states for write in state.counted(replies[state.product, state.ulid])]


async def find_roots(table: Table, answered: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The top-level comments of the threads in which comments stand, by product and id; consistent."""
    keys = [entity.at(product=product, ulid=ulid) for entity in (COMMENT, HELD, REPLY) for product, ulid in answered]
    return {(one.product, one.ulid): one.root or one.ulid for one in await table.find_many(keys, consistent=True)}


async def _refuse_taken(table: Table, comments: Sequence[Comment]) -> None:
    found = await asyncio.gather(*(records.find_pointers(table, comment.ulid) for comment in comments))
    taken = [
        comment
        for comment, pointers in zip(comments, found, strict=True)
        if any(pointer.product != comment.product for pointer in pointers)
    ]
    if taken:
        raise IdTaken(*taken)


async def find_existing(table: Table, comments: Sequence[Comment]) -> dict[str, Comment]:
    """Those that are stored, by their keys: a comment may have come as an answer at first, or be a stub by now."""
    keys = [entity.item_key(one) for one in comments for entity in _IN_ORDER]
    return {comment.node_key: comment for comment in await table.find_many(keys, consistent=True)}


async def _missing(table: Table, comments: Sequence[Comment]) -> list[Comment]:
    existing = await find_existing(table, comments)
    return [comment for comment in comments if comment.node_key not in existing]


async def export_comments(
    table: Table, product: str | None = None, after: Comment | None = None
) -> AsyncIterator[Comment]:
    """Every comment, including held ones, always in the same order: on a product, each before its replies.

    `after` is the last one already exported. Stubs are left out: an import makes them where they are needed.
    """
    if product is None:
        last_key = None if after is None else records.entity_for(after).item_key(after)
        async for comment in table.scan(*_IN_ORDER, after=last_key):
            if not comment.removed:
                yield comment
        return
    done = [] if after is None else list(takewhile(lambda entity: entity is not records.entity_for(after), _IN_ORDER))
    for entity in _IN_ORDER[len(done) :]:
        partition = entity.on(product=product)
        if after is not None and entity is records.entity_for(after):
            partition = partition.past(entity.sort_key(after))
        async for comment in table.iterate(partition):
            if not comment.removed:
                yield comment


_IN_ORDER = (COMMENT, HELD, REPLY)
"""As they are ordered by their sort keys."""


async def begins_with(table: Table, product: str) -> bool:
    """Whether the comments on this product come first when every comment is exported."""
    async for comment in export_comments(table):
        return comment.product == product
    return False


# ── auditing ──
# Reads for `ringside audit`: every record of comments, and what the indexes list.


def all_records(
    table: Table,
) -> AsyncIterator[Comment | counts.ProductTally | counts.Leader | records.Pointer | Thread | ReviewPlace]:
    return table.scan(COMMENT, REPLY, HELD, counts.PRODUCT_TALLY, counts.LEADER, records.POINTER, THREAD, REVIEW_PLACE)


async def listed_comments(table: Table, product: str, *, language: str | None = None, rating: int | None = None) -> int:
    """How many comments the index of a language, a rating or both lists."""
    key_values = {"product": product, "language": language, "rating": rating}
    index = "gsi2" if language is None else "gsi1" if rating is None else "gsi3"
    return await _count(
        table, COMMENT.on(index, **{name: value for name, value in key_values.items() if value is not None})
    )


async def listed_replies(table: Table, product: str, root: str) -> int:
    """How many replies the index of a thread lists."""
    return await _count(table, REPLY.on("gsi1", product=product, root=root))


async def listed_held(table: Table, status: records.Status) -> int:
    """How many comments a moderator's queue lists."""
    return sum([await _count(table, partition) for partition in records.held_partitions(status)])


async def listed_latest(table: Table) -> int:
    """How many comments the index of the site's latest ones lists."""
    return sum([await _count(table, records.POINTER.on("gsi1", shard=shard)) for shard in range(records.SHARDS)])


async def _count(table: Table, partition: Partition[Any]) -> int:
    return len([None async for _ in table.iterate(partition)])
