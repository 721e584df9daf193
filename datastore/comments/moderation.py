"""Moderation: the comments that wait for a moderator, and members' reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from datastore.comments.changes import store_receipt
from datastore.comments.records import COMMENT, HELD, REPORTS, Comment, Reports, Status, VersionConflict
from datastore.dynamo import ConditionFailed, Page
from datastore.dynamo.conditions import absent, present, where

if TYPE_CHECKING:
    from datastore.dynamo import Table, Window
    from datastore.receipts import Once

_MAX_REPORTERS = 50


async def read_queue(table: Table, status: Status, window: Window) -> Page[Comment]:
    """The moderators' queue, oldest first: held comments of a status, or published ones that were reported."""
    request = window.open(f"moderation\n{status}")
    if status is not Status.PUBLISHED:
        return await table.page([HELD.on("gsi1", status=status)], request)
    reports: Page[Reports] = await table.page([REPORTS.on("gsi1")], request)
    keys = [COMMENT.at(product=one.product, ulid=one.ulid) for one in reports.nodes]
    positions_and_comments = zip(reports.items, await table.get_many(keys), strict=True)
    # A comment may have been deleted since it was reported.
    items = tuple((position, comment) for (position, _), comment in positions_and_comments if comment is not None)
    return Page(items, reports.has_next_page, reports.has_previous_page, request)


async def read_reports(table: Table, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Reports]:
    """The reports of comments, by product and id."""
    reports = await table.get_many([REPORTS.at(product=product, ulid=ulid) for product, ulid in keys])
    return {(one.product, one.ulid): one for one in reports if one is not None}


async def report_comment(table: Table, once: Once, comment: Comment, reporter: str, reason: str) -> None:
    """Add a member's reason to a comment's reports, or replace it. VersionConflict if they changed meanwhile."""
    key = REPORTS.at(product=comment.product, ulid=comment.ulid)
    current = await table.get(key, consistent=True)
    if current is not None and reporter not in current.reasons and len(current.reasons) >= _MAX_REPORTERS:
        await store_receipt(table, once, comment)
        return
    if current is None:
        write = REPORTS.put(Reports(comment.product, comment.ulid, {reporter: reason}), when=absent())
    else:
        changed = replace(current, reasons={**current.reasons, reporter: reason}, revision=current.revision + 1)
        write = REPORTS.put(changed, when=where(revision=current.revision))
    still_published = COMMENT.check(COMMENT.item_key(comment), present())
    try:
        await once.transact(table, comment, write, still_published)
    except ConditionFailed:
        raise VersionConflict from None
