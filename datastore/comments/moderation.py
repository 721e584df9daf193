"""Moderation: the comments that wait for a moderator, and members' reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from datastore.changes.kinds import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.records import COMMENT, HELD, REPORTS, Comment, Reports, Status
from datastore.dynamo import ConditionFailed, Page, PageRequest, Table, Window
from datastore.dynamo.conditions import absent, present
from datastore.dynamo.writes import Write

_MAX_REPORTERS = 50
_AT_ONCE = 100
_ROUNDS = 5


async def read_queue(table: Table, status: Status, window: Window) -> Page[Comment]:
    """The moderators' queue, oldest first: held comments of a status, or published ones that were reported."""
    request = window.open(f"moderation\n{status}")
    if status is not Status.PUBLISHED:
        return await table.page([HELD.on("gsi1", status=status)], request)
    return await _read_reported(table, request)


async def _read_reported(table: Table, request: PageRequest) -> Page[Comment]:
    """Published comments that were reported. Those that were deleted or held since are passed over.

    After `_ROUNDS` queries a page may be short, or empty; its cursor continues after all that was read.
    """
    published: list[tuple[str, Comment]] = []
    rest, last, limit = REPORTS.on("gsi1").past(request.position), None, request.wanted
    for _ in range(_ROUNDS):
        reports = await table.query(rest, limit=limit)
        keys = [COMMENT.at(product=one.product, ulid=one.ulid) for one in reports.records]
        comments = await table.get_many(keys, consistent=True)
        pairs = zip(reports.items, comments, strict=True)
        published += [(place, comment) for (place, _), comment in pairs if comment is not None]
        last = reports.last
        if len(published) >= request.wanted or last is None:
            break
        rest, limit = rest.past(last), _AT_ONCE
    return Page.cut(published, request, end=last)


async def read_reports(table: Table, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Reports]:
    """The reports of comments, by product and id; consistent: the answer to a decision shows that it cleared them."""
    wanted = [REPORTS.at(product=product, ulid=ulid) for product, ulid in keys]
    reports = await table.get_many(wanted, consistent=True)
    return {(one.product, one.ulid): one for one in reports if one is not None}


async def report_comment(table: Table, unit: UnitOfWork, comment: Comment, reporter: str, reason: str) -> None:
    """Add a member's reason to a comment's reports, or replace it.

    ConditionFailed if they changed meanwhile, unless an earlier attempt without an answer changed them.
    """
    key = REPORTS.at(product=comment.product, ulid=comment.ulid)
    current = await table.get(key, consistent=True)
    if current is not None and reporter not in current.reasons and len(current.reasons) >= _MAX_REPORTERS:
        await unit.store_receipt(table, comment, about=comment.author)
        return
    if current is None:
        changed, unchanged = Reports(comment.product, comment.ulid, {reporter: reason}), absent()
    else:
        changed = replace(current, reasons={**current.reasons, reporter: reason}, revision=current.revision + 1)
        unchanged = current.unchanged
    writes: list[Write] = [REPORTS.put(changed, when=unchanged), COMMENT.check(COMMENT.item_key(comment), present())]
    occurrence = unit.occurred(Kind.COMMENT_REPORTED, f"Comment:{comment.node_key}")
    try:
        await unit.transact(table, comment, *writes, *occurrence, *unit.not_erased(comment.author))
    except ConditionFailed as failed:
        if not failed.was_written(REPORTS, changed):
            raise
