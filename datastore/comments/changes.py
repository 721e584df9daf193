"""Changing comments: each change moves the counts with the comment, in one transaction.

So the statistics always equal a recount of the published comments, whatever was retried or killed.

The occurrence in the journal tells an attempt whose answer was lost that it was applied, whatever others have done to
the comment since. With the journal off, what the conditions failed on has to tell it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any

from datastore.changes.occurrences import Ground, Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments import records
from datastore.comments.counts import change_updates
from datastore.comments.helpful import number_writes
from datastore.comments.notices import REPLY_NOTICE, ReplyNotice
from datastore.comments.records import ChangedComment, Comment, Status
from datastore.comments.reviews import place_writes
from datastore.comments.threads import ThreadChange, read_thread_change
from datastore.comments.verified import PROOF, ShownProof, entry_writes
from datastore.dynamo import ConditionFailed, Page, PageRequest, Table, Window, batches
from datastore.dynamo.paging import merge, shard_limit
from datastore.dynamo.writes import Condition, Write, absent, present, where
from datastore.values.ids import first_id

# ── changes ──


@dataclass(frozen=True, slots=True)
class Decision:
    """Why a moderator decided about a comment. Only the journal keeps it."""

    ground: Ground | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class RefusedDecision:
    """Why one of several comments was not decided."""

    id: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Decisions:
    """The keys of the comments that were decided, and the others."""

    decided: tuple[str, ...]
    refused: tuple[RefusedDecision, ...]


@dataclass(frozen=True, slots=True)
class CommentChange:
    """One comment before and after a change; None if it does not exist.

    A decision deletes the reports of it. A held comment that is published gets a late arrival at its `arrived`.
    """

    old: Comment | None
    new: Comment | None
    decision: Decision | None = None
    notice: ReplyNotice | None = None
    """Who is to be told of a reply."""
    proof: ShownProof | None = None
    """What was shown for a new comment."""

    def occurrence(self, unit: UnitOfWork) -> tuple[Write, ...]:
        """The journal's writes."""
        comment = self.new or self.old
        name = f"Comment:{comment.node_key}" if comment is not None else ""
        if self.decision is not None:
            return unit.occurred(Kind.COMMENT_MODERATED, name, ground=self.decision.ground, note=self.decision.note)
        if self.new is None:
            return unit.occurred(Kind.COMMENT_DELETED, name)
        if self.old is None:
            return unit.occurred(Kind.COMMENT_POSTED, name)
        was_answered = self.new.answer != self.old.answer
        return unit.occurred(Kind.COMMENT_ANSWERED if was_answered else Kind.COMMENT_EDITED, name)

    def writes(self, thread: ThreadChange | None = None) -> list[Write]:
        """The comment's own writes come first: `was_applied` relies on their positions."""
        writes: list[Write] = [*_comment_writes(self.old, self.new, thread), *change_updates(self.old, self.new)]
        if thread is not None:
            writes += thread.writes()
        comment = self.new or self.old
        if comment is not None and (self.decision is not None or self.new is None):
            writes.append(records.REPORTS.delete(records.REPORTS.at(product=comment.product, ulid=comment.ulid)))
        if self.new is not None and self.new.arrived and (self.old is None or self.new.arrived != self.old.arrived):
            arrival = records.LateArrival(self.new.product, self.new.arrived, self.new.ulid, records.is_reply(self.new))
            writes.append(records.LATE_ARRIVAL.put(arrival))
        if self.notice is not None:
            writes.append(REPLY_NOTICE.put(self.notice))
        if self.proof is not None:
            writes.append(PROOF.put(self.proof, when=absent()))
        parts = (records.pointer_writes, number_writes, place_writes, entry_writes)
        return [*writes, *chain.from_iterable(part(self.old, self.new) for part in parts)]

    def was_applied(self, failed: ConditionFailed) -> bool:
        """Whether the items that the conditions failed on are what the change itself leaves.

        A deletion leaves nothing to compare: a moderator may have moved the comment instead, so it is looked for again.
        """
        if self.new is None:
            return False
        if self.old is None:
            return failed.at(0)  # the id is new, so only this change can have created the item
        position = 0 if records.entity_for(self.old) is records.entity_for(self.new) else 1
        return failed.stored(records.entity_for(self.new), position) == self.new


async def change_comment(table: Table, unit: UnitOfWork, answer: Any, change: CommentChange) -> None:
    """Write the comment, its counts and the receipt, all or none.

    ConditionFailed or Stale if the comment is no longer `old`, or its thread has changed, unless an earlier attempt
    without an answer applied the change.
    """
    thread = await read_thread_change(table, change.old, change.new)
    try:
        await unit.transact(table, answer, *change.writes(thread), *change.occurrence(unit))
    except ConditionFailed as failed:
        if not (failed.doubtful and change.was_applied(failed)):
            raise


def _comment_writes(old: Comment | None, new: Comment | None, thread: ThreadChange | None) -> Iterator[Write]:
    if old is not None and new is not None and records.entity_for(old) is records.entity_for(new):
        yield records.entity_for(new).put(new, when=_unchanged(old))
        return
    if old is not None:
        yield _leaving(old, thread)
    if new is not None:
        free = where(removed=True) if thread is not None and thread.replaces_stub else absent()
        yield records.entity_for(new).put(new, when=free)


def _leaving(old: Comment, thread: ThreadChange | None) -> Write:
    if thread is not None and thread.leaves_stub:
        return records.COMMENT.put(records.stub_in_place_of(old.product, old.ulid), when=_unchanged(old))
    return records.entity_for(old).delete(records.entity_for(old).item_key(old), when=_unchanged(old))


def _unchanged(old: Comment) -> Condition:
    return present() & where(revision=old.revision, threaded=old.threaded, marked=old.marked, removed=None)


# ── moderation ──
# Moderation: the comments that wait for a moderator, and members' reports.

_MAX_REPORTERS = 50
_AT_ONCE = 100
_ROUNDS = 5
MOST_COUNTED = 1_000


async def read_queue(table: Table, status: Status, window: Window) -> Page[Comment]:
    """The moderators' queue, oldest first: held comments of a status, or published ones that were reported."""
    request = window.open(f"moderation\n{status}")
    if status is not Status.PUBLISHED:
        limit = shard_limit(request.wanted, records.SHARDS)
        return await table.page(records.held_partitions(status), request, limit=limit)
    return await _read_reported(table, request)


async def _read_reported(table: Table, request: PageRequest) -> Page[Comment]:
    """Published comments that were reported. Those that were deleted or held since are passed over.

    After `_ROUNDS` queries a page may be short, or empty; its cursor continues after all that was read.
    """
    published: list[tuple[str, Comment]] = []
    rest, last, limit = records.REPORTS.on("gsi1").past(request.position), None, request.wanted
    for _ in range(_ROUNDS):
        reports = await table.query(rest, limit=limit)
        keys = [records.published_place(one.product, one.ulid, reply=one.reply) for one in reports.records]
        comments = await table.get_many(keys, consistent=True)
        pairs = zip(reports.items, comments, strict=True)
        published += [(place, comment) for (place, _), comment in pairs if comment is not None and not comment.removed]
        last = reports.last
        if len(published) >= request.wanted or last is None:
            break
        rest, limit = rest.past(last), _AT_ONCE
    return Page.cut(published, request, end=last)


async def count_queue(table: Table, status: Status, *, since: datetime | None = None) -> int:
    """How many comments the queue of a status has: exact up to `MOST_COUNTED`, then one more than that.

    Of held comments, those can be counted that were posted since a moment.
    """
    if status is not Status.PUBLISHED:
        first = None if since is None else first_id(since)
        shards = [records.POINTER.on("gsi2", held=status, shard=shard) for shard in range(records.SHARDS)]
        limits = [shard_limit(MOST_COUNTED + 1, records.SHARDS)] * records.SHARDS
        merged = await merge(table, [shard.between(first, None) for shard in shards], limits, MOST_COUNTED + 1)
        return len(merged.items)
    count = 0
    async for some in batches(table.iterate(records.REPORTS.on("gsi1"), at_once=1000), _AT_ONCE):
        places = [records.published_place(one.product, one.ulid, reply=one.reply) for one in some]
        count += sum(not comment.removed for comment in await table.find_many(places))
        if count > MOST_COUNTED:
            break
    return min(count, MOST_COUNTED + 1)


async def read_reports(table: Table, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], records.Reports]:
    """The reports of comments, by product and id; consistent: the answer to a decision shows that it cleared them."""
    wanted = [records.REPORTS.at(product=product, ulid=ulid) for product, ulid in keys]
    return {(one.product, one.ulid): one for one in await table.find_many(wanted, consistent=True)}


async def report_comment(table: Table, unit: UnitOfWork, comment: Comment, reporter: str, reason: str) -> None:
    """Add a member's reason to a comment's reports, or replace it.

    ConditionFailed if they changed meanwhile, unless an earlier attempt without an answer changed them.
    """
    key = records.REPORTS.at(product=comment.product, ulid=comment.ulid)
    current = await table.get(key, consistent=True)
    if current is not None and reporter not in current.reasons and len(current.reasons) >= _MAX_REPORTERS:
        await unit.store_receipt(table, ChangedComment.as_stored(comment))
        return
    if current is None:
        first = records.Reports(comment.product, comment.ulid, {reporter: reason}, reply=records.is_reply(comment))
        changed, unchanged = first, absent()
    else:
        changed = replace(current, reasons={**current.reasons, reporter: reason}, revision=current.revision + 1)
        unchanged = current.unchanged
    place = records.entity_for(comment)
    still_there = place.check(place.item_key(comment), present() & where(removed=None))
    writes: list[Write] = [records.REPORTS.put(changed, when=unchanged), still_there]
    occurrence = unit.occurred(Kind.COMMENT_REPORTED, f"Comment:{comment.node_key}")
    try:
        await unit.transact(table, ChangedComment.as_stored(comment), *writes, *occurrence)
    except ConditionFailed as failed:
        if not failed.was_written(records.REPORTS, changed):
            raise
