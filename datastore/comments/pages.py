"""Reading comments: one, or a page of those that a filter matches."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from datastore.comments.planner import CommentCounts, Filter, PartitionRead, Plan, continuation, plans
from datastore.comments.records import COMMENT, HELD, LATE_ARRIVAL, REPLY, Comment, published_place
from datastore.comments.verified import VERIFIED
from datastore.dynamo import Page, PageRequest, Table, chunks
from datastore.dynamo.entity import Partition
from datastore.dynamo.paging import merge

# ── pages ──

ULID_LENGTH = 26
_MOST_ROUNDS = 4


async def read_comment(table: Table, product: str, ulid: str, *, held: bool = True) -> Comment | None:
    """One comment or reply, by consistent reads; a held one only if `held` is set, and else the stub in its place."""
    stub = None
    for _ in range(2):  # between the reads a moderator may have moved it
        comment = await table.get(COMMENT.at(product=product, ulid=ulid), consistent=True)
        if comment is not None and not comment.removed:
            return comment
        stub = comment
        others = (HELD, REPLY) if held else (REPLY,)
        found = await table.find_many([entity.at(product=product, ulid=ulid) for entity in others], consistent=True)
        if found:
            return found[0]
        if not held:
            break
    return stub


async def read_comments(table: Table, keys: Sequence[tuple[str, str]]) -> list[Comment | None]:
    """Comments and replies by product and id, held ones too; consistent. None for one that is gone."""
    found = await _find(table, keys)
    missing = [key for key, comment in zip(keys, found, strict=True) if comment is None]
    moved = dict(zip(missing, await _find(table, missing), strict=True))  # by a moderator, meanwhile
    return [comment or moved[key] for key, comment in zip(keys, found, strict=True)]


async def _find(table: Table, keys: Sequence[tuple[str, str]]) -> list[Comment | None]:
    entities = (COMMENT, REPLY, HELD)
    places = [entity.at(product=product, ulid=ulid) for product, ulid in keys for entity in entities]
    found = await table.get_many(places, consistent=True)
    comments = chunks(found, len(entities))
    return [next((each for each in some if each is not None and not each.removed), None) for some in comments]


@dataclass(slots=True)
class ReadReport:
    """How a page was read."""

    considered: Sequence[Plan]
    chosen: Plan
    rounds: int = 0
    queries: int = 0
    read: int = 0


@dataclass(frozen=True, slots=True)
class CommentPage(Page[Comment]):
    """A page with its filter, by which its total is counted, and with the report of how it was read."""

    filter: Filter = field(kw_only=True)
    report: ReadReport = field(kw_only=True, compare=False)


async def read_page(table: Table, wanted: Filter, counts: CommentCounts, request: PageRequest) -> CommentPage:
    """The comments that a filter matches, newest first. Each plan reads only those, so none is matched again.

    A page of those that nobody verified may be short, or empty; its cursor continues after all that was read.
    """
    considered = plans(wanted, counts, request.wanted)
    plan, position = considered[0], request.position
    report = ReadReport(considered, plan)
    comments: list[tuple[str, Comment]] = []
    while True:
        merged = await merge(
            table,
            [_partition(wanted, plan, read, position, forward=request.forward) for read in plan.reads],
            [read.limit for read in plan.reads],
            request.wanted - len(comments),
            most_rounds=None if plan.exact else 1,
        )
        report.rounds += merged.rounds
        report.queries += merged.queries
        report.read += merged.read
        comments += [(comment.ulid, comment) for _, comment in merged.items]
        if len(comments) >= request.wanted or merged.frontier is None:
            return CommentPage.cut(comments, request, filter=wanted, report=report)
        position = merged.frontier[-ULID_LENGTH:]
        if wanted.verified is False and report.rounds >= _MOST_ROUNDS:
            return CommentPage.cut(comments, request, end=position, filter=wanted, report=report)
        plan = continuation(wanted, counts, request.wanted - len(comments), report.rounds)


def _partition(
    wanted: Filter, plan: Plan, read: PartitionRead, position: str | None, *, forward: bool
) -> Partition[Comment]:
    key_values: dict[str, Any] = {"product": wanted.product}
    if read.language is not None:
        key_values["language"] = read.language
    if read.rating is not None:
        key_values["rating"] = read.rating
    entity = VERIFIED if wanted.verified else COMMENT
    partition = replace(entity.on(read.index, **key_values), filter=plan.residual, descending=forward)
    if position is None:
        return partition
    return partition.past(position if read.index else f"COMMENT#{position}")


# ── arrivals ──
# Arrivals: the comments of a product in the order in which they could first be seen, for feeds.

_AT_ONCE = 100


async def read_arrivals(table: Table, product: str, past: str, up_to: str) -> tuple[list[tuple[str, Comment]], str]:
    """The comments that arrived between two positions, oldest first, and the position up to which they are complete.

    The reads are consistent. At most a hundred comments, replies and late arrivals each are read, so that position
    may be before `up_to`.
    """
    partitions: dict[str, Partition[Any]] = {
        "COMMENT": COMMENT.on(product=product),
        "REPLY": REPLY.on(product=product),
        "ARRIVAL": LATE_ARRIVAL.on(product=product),
    }
    posted, replies, late = await asyncio.gather(
        *(
            table.query(
                partition.past(f"{name}#{past}").between(None, f"{name}#{up_to}"), limit=_AT_ONCE, consistent=True
            )
            for name, partition in partitions.items()
        )
    )
    late_keys = [published_place(product, one.comment, reply=one.reply) for one in late.records]
    late_comments = await table.get_many(late_keys, consistent=True)
    on_time = [one for one in (*posted.records, *replies.records) if one.arrived is None and not one.removed]
    arrivals = [(comment.ulid, comment) for comment in on_time]
    arrivals += [
        (arrival.position, comment)
        for arrival, comment in zip(late.records, late_comments, strict=True)
        if comment is not None and comment.arrived == arrival.position
    ]
    complete_to = min((part.last[-ULID_LENGTH:] for part in (posted, replies, late) if part.last), default=up_to)
    in_reach = [(position, comment) for position, comment in arrivals if position <= complete_to]
    return sorted(in_reach, key=lambda arrival: arrival[0]), complete_to
