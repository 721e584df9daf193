"""Comments on products.

| wanted                               | read or write                                           | requests         |
|--------------------------------------|---------------------------------------------------------|------------------|
| a page, newest first                 | PRODUCT#<p> COMMENT#<ulid>, descending                  | 1                |
| a page of some languages and ratings | gsi1 …#<lang>, gsi2 …#~#<r>, gsi3 …#<lang>#<r>: planner | 1-25, ≤ 2 rounds |
| one comment                          | COMMENT#<ulid>, then HELD#<ulid>                        | 1-2              |
| a moderator's queue                  | gsi1 MODERATION#<status>, oldest first                  | 1 a page         |
| what arrived                         | COMMENT#<ulid> and ARRIVAL#<ulid> between two moments   | 2                |
| post, edit, delete, moderate         | one transaction: comment, counts, receipt               | 1                |

A comment that may be seen is a COMMENT item; one that waits or was turned down is a HELD item, in no index a reader
asks and in no count. Every change goes through `rewrite`, which moves the counts with the comment: so the statistics
are a recount of the published comments after each change, whatever was retried or killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from datastore.comments.counts import counted
from datastore.comments.planner import Plan, plans
from datastore.dynamo import ConditionFailed, Page
from datastore.dynamo.attributes import size_of
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.dynamo.merge import merge
from datastore.ids import moment_of

if TYPE_CHECKING:
    from datastore.comments.planner import CommentCounts, Filter, PartitionRead
    from datastore.dynamo import PageRequest, Table, Window
    from datastore.dynamo.entity import Partition
    from datastore.dynamo.merge import Merged
    from datastore.dynamo.writes import Write
    from datastore.receipts import Once

ULID_LENGTH = 26
ARRIVALS_KEPT = timedelta(days=30)
ARRIVALS_AT_ONCE = 100
MOST_REPORTERS = 50


class Status(StrEnum):
    """Whether a comment may be seen."""

    PUBLISHED = "PUBLISHED"
    PENDING = "PENDING"
    REJECTED = "REJECTED"


@dataclass(frozen=True, slots=True)
class Comment:
    """Somebody's words about a product. What is None is not stored: every byte lies in four places."""

    product: str
    ulid: str
    language: str
    rating: int
    body: str
    author: str
    title: str | None = None
    edited_at: datetime | None = None
    held: Status | None = None
    note: str | None = None
    arrived: str | None = None
    revision: int | None = None

    @property
    def status(self) -> Status:
        return self.held or Status.PUBLISHED

    @property
    def created_at(self) -> datetime:
        return moment_of(self.ulid)

    @property
    def node_key(self) -> str:
        return f"{self.product}#{self.ulid}"

    @property
    def size(self) -> int:
        """Bytes of its item, in the table and in each index."""
        return size_of(COMMENT.item(self))


COMMENT = Entity(
    Comment,
    Key("PRODUCT#{product}", "COMMENT#{ulid}"),
    gsi1=Key("PRODUCT#{product}#{language}", "{ulid}"),
    gsi2=Key("PRODUCT#{product}#~#{rating}", "{ulid}"),
    gsi3=Key("PRODUCT#{product}#{language}#{rating}", "{ulid}"),
)
HELD = Entity(Comment, Key("PRODUCT#{product}", "HELD#{ulid}"), gsi1=Key("MODERATION#{status}", "{ulid}"))


@dataclass(frozen=True, slots=True)
class Reports:
    """What members object to in one published comment: a reason for each reporter."""

    product: str
    ulid: str
    reasons: dict[str, str]
    revision: int = 1


REPORTS = Entity(Reports, Key("PRODUCT#{product}", "REPORTS#{ulid}"), gsi1=Key("MODERATION#PUBLISHED", "{ulid}"))


@dataclass(frozen=True, slots=True)
class Admitted:
    """A held comment that was published later than it was written: it arrives at `position`, its `arrived`."""

    product: str
    position: str
    comment: str

    @property
    def expires(self) -> datetime:
        return moment_of(self.position) + ARRIVALS_KEPT


ADMITTED = Entity(Admitted, Key("PRODUCT#{product}", "ARRIVAL#{position}"), ttl="expires")


class VersionConflict(Exception):
    """The comment is no longer as it was read."""


# ── reading ──


async def comment(table: Table, product: str, ulid: str, *, held: bool = True) -> Comment | None:
    """One comment as it is now; `held` ones only where asked for."""
    for _ in range(2):  # between the two reads a moderator may have moved it
        found = await table.get(COMMENT.at(product=product, ulid=ulid), consistent=True)
        if found is None and held:
            found = await table.get(HELD.at(product=product, ulid=ulid), consistent=True)
        if found is not None or not held:
            return found
    return None


@dataclass(slots=True)
class ReadReport:
    """How a page was read."""

    considered: Sequence[Plan]
    chosen: Plan
    rounds: int = 0
    queries: int = 0
    read: int = 0

    def add(self, merged: Merged[Comment]) -> None:
        self.rounds += merged.rounds
        self.queries += merged.queries
        self.read += merged.read


@dataclass(frozen=True, slots=True)
class CommentPage(Page[Comment]):
    """A page with its filter, so that all comments of the filter can be counted, and with how it was read."""

    filter: Filter = field(kw_only=True)
    report: ReadReport = field(kw_only=True, compare=False)


def page_request(wanted: Filter, window: Window) -> PageRequest:
    return window.open(wanted.scope)


async def page(table: Table, wanted: Filter, census: CommentCounts, request: PageRequest) -> CommentPage:
    """The comments that a filter takes, newest first."""
    considered = plans(wanted, census, request.wanted)
    plan, position = considered[0], request.position
    report = ReadReport(considered, plan)
    found: list[tuple[str, Comment]] = []
    while True:
        merged = await merge(
            table,
            [_partition(wanted, plan, one, position, forward=request.forward) for one in plan.readings],
            [one.limit for one in plan.readings],
            request.wanted - len(found),
            combine=lambda seen: next((one for one in reversed(seen) if wanted.takes(one.language, one.rating)), None),
            most_rounds=None if plan.exact else 1,
        )
        report.add(merged)
        found += [(comment.ulid, comment) for _, comment in merged.items]
        if len(found) >= request.wanted or merged.frontier is None:
            return CommentPage.cut(found, request, filter=wanted, report=report)
        position = merged.frontier[-ULID_LENGTH:]
        plan = _continuation(wanted, census, request.wanted - len(found), report.rounds)


def _continuation(wanted: Filter, census: CommentCounts, missing: int, rounds: int) -> Plan:
    """What reads on where a filtering plan fell short: the exact partitions, or ever more of the cheapest ones."""
    possible = plans(wanted, census, missing)
    exact = next((plan for plan in possible if plan.exact), None)
    return exact or possible[0].widened(2**rounds)


def _partition(
    wanted: Filter, plan: Plan, reading: PartitionRead, position: str | None, *, forward: bool
) -> Partition[Comment]:
    fixed: dict[str, Any] = {"product": wanted.product}
    if reading.language is not None:
        fixed["language"] = reading.language
    if reading.rating is not None:
        fixed["rating"] = reading.rating
    partition: Partition[Comment] = COMMENT.on(reading.index, **fixed)
    partition = replace(partition, only=plan.residual, descending=forward)
    if position is None:
        return partition
    return partition.past(position if reading.index else f"COMMENT#{position}")


async def queue(table: Table, status: Status, window: Window) -> Page[Comment]:
    """What waits for a moderator, oldest first: held comments of a status, or published ones that were reported."""
    request = window.open(f"moderation\n{status}")
    if status is not Status.PUBLISHED:
        return await table.page([HELD.on("gsi1", status=status)], request)
    reported: Page[Reports] = await table.page([REPORTS.on("gsi1")], request)
    found = await table.get_many([COMMENT.at(product=one.product, ulid=one.ulid) for one in reported.nodes])
    shown = zip(reported.items, found, strict=True)
    # A comment may have been deleted since it was reported.
    items = tuple((position, comment) for (position, _), comment in shown if comment is not None)
    return Page(items, reported.has_next_page, reported.has_previous_page, request)


async def reports(table: Table, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Reports]:
    """What was reported about comments, by product and id."""
    found = await table.get_many([REPORTS.at(product=product, ulid=ulid) for product, ulid in keys])
    return {(one.product, one.ulid): one for one in found if one is not None}


async def arrivals(table: Table, product: str, past: str, up_to: str) -> tuple[list[tuple[str, Comment]], str]:
    """Comments that could be seen for the first time between two positions, oldest first, and how far they go.

    At most a hundred of either kind are read, so it may be less far than `up_to`.
    """
    posts, admissions = COMMENT.on(product=product), ADMITTED.on(product=product)
    posted, admitted = await asyncio.gather(
        table.query(posts.past(f"COMMENT#{past}").between(None, f"COMMENT#{up_to}"), limit=ARRIVALS_AT_ONCE),
        table.query(admissions.past(f"ARRIVAL#{past}").between(None, f"ARRIVAL#{up_to}"), limit=ARRIVALS_AT_ONCE),
    )
    shown = await table.get_many([COMMENT.at(product=product, ulid=one.comment) for one in admitted.records])
    found = [(one.ulid, one) for one in posted.records if one.arrived is None]
    found += [
        (at.position, one)
        for at, one in zip(admitted.records, shown, strict=True)
        if one is not None and one.arrived == at.position
    ]
    reached = min((part.last[-ULID_LENGTH:] for part in (posted, admitted) if part.last), default=up_to)
    return sorted((one for one in found if one[0] <= reached), key=lambda one: one[0]), reached


# ── writing ──


@dataclass(frozen=True, slots=True)
class CommentChange:
    """One comment from one state to another; None: it is not there.

    `settled` drops what was reported about it. What was held and is published arrives at its `arrived`.
    """

    old: Comment | None
    new: Comment | None
    settled: bool = False

    def writes(self) -> list[Write]:
        """The comment's own writes come first, so that `made` knows their places."""
        writes: list[Write] = [*_moved(self.old, self.new), *counted(self.old, self.new)]
        either = self.new or self.old
        if either is not None and (self.settled or self.new is None):
            writes.append(REPORTS.delete(REPORTS.at(product=either.product, ulid=either.ulid)))
        if self.new is not None and self.new.arrived and (self.old is None or self.new.arrived != self.old.arrived):
            writes.append(ADMITTED.put(Admitted(self.new.product, self.new.arrived, self.new.ulid)))
        return writes

    def made(self, failed: ConditionFailed) -> bool:
        """Whether the items that forbade the change are what it would have left behind."""
        if self.new is None:
            return failed.failures.get(0, ...) is None
        if self.old is None:
            return True  # nobody else could have made an item of this id
        item = failed.failures.get(0 if entity_of(self.old) is entity_of(self.new) else 1)
        return item is not None and entity_of(self.new).read(item) == self.new


async def rewrite(table: Table, once: Once, answer: Any, change: CommentChange) -> None:
    """The comment, its counts and the receipt: all or nothing.

    VersionConflict if the comment is not as `old` says any more; what an earlier, unanswered attempt of this call has
    made counts as made.
    """
    try:
        await once.transact(table, answer, *change.writes())
    except ConditionFailed as failed:
        if not (failed.doubtful and change.made(failed)):
            raise VersionConflict from None


def entity_of(comment: Comment) -> Entity[Comment]:
    return COMMENT if comment.held is None else HELD


def _moved(old: Comment | None, new: Comment | None) -> Iterator[Write]:
    if old is not None and (new is None or entity_of(old) is not entity_of(new)):
        yield entity_of(old).delete(entity_of(old).place_of(old), when=_unchanged(old))
    if new is not None:
        in_place = old is not None and entity_of(old) is entity_of(new)
        yield entity_of(new).put(new, when=_unchanged(old) if in_place and old is not None else absent())


def _unchanged(old: Comment) -> Any:
    return present() & where(revision=old.revision)


async def remember(table: Table, once: Once, answer: Any) -> None:
    """A receipt for a request that had nothing to change."""
    if once.key is not None:
        await once.transact(table, answer)


async def report(table: Table, once: Once, reported: Comment, reporter: str, reason: str) -> None:
    """Adds a member's reason, or replaces it. VersionConflict if the comment changed meanwhile."""
    place = REPORTS.at(product=reported.product, ulid=reported.ulid)
    known = await table.get(place, consistent=True)
    if known is not None and reporter not in known.reasons and len(known.reasons) >= MOST_REPORTERS:
        await remember(table, once, reported)
        return
    if known is None:
        write = REPORTS.put(Reports(reported.product, reported.ulid, {reporter: reason}), when=absent())
    else:
        raised = replace(known, reasons={**known.reasons, reporter: reason}, revision=known.revision + 1)
        write = REPORTS.put(raised, when=where(revision=known.revision))
    still_there = COMMENT.check(COMMENT.place_of(reported), present())
    try:
        await once.transact(table, reported, write, still_there)
    except ConditionFailed:
        raise VersionConflict from None
