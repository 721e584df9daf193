"""Taking back and erasing a member's comments, and erasing their reports.

Comments are taken back by rejecting them one by one, and are uncounted with it.
"""

from __future__ import annotations

from functools import partial

from datastore.changes.occurrences import Ground
from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments import pages
from datastore.comments.changes import CommentChange, Decision
from datastore.comments.member_items import MEMBER_ITEMS, delete_reports
from datastore.comments.records import Comment, Pointer, Status, member_pointers
from datastore.dynamo import optimistic
from datastore.values.ids import creation_time
from resolvers.comments.writing import revised, store_change
from resolvers.jobs.running import JobRun
from resolvers.people.member_data import (
    Erasure,
    MemberData,
    Part,
    TakingBack,
)
from resolvers.requests.context import Services


async def _take_back(services: Services, run: JobRun, wanted: TakingBack, unit: UnitOfWork) -> None:
    async for pointer in member_pointers(services.table, wanted.user):
        if not wanted.is_recent(creation_time(pointer.ulid)):
            break
        run.done += await _reject(services, pointer, unit)


async def _reject(services: Services, pointer: Pointer, unit: UnitOfWork) -> bool:
    """Whether this call did it."""

    async def reject(comment: Comment | None) -> bool:
        if comment is None or comment.held is Status.REJECTED:
            return False
        change = CommentChange(comment, revised(comment, held=Status.REJECTED), Decision(Ground.FRAUD))
        await store_change(services, unit, None, change)
        return True

    read = partial(pages.read_comment, services.table, pointer.product, pointer.ulid)
    return await optimistic(read, reject, idempotent=True)


async def _erase(erasure: Erasure) -> None:
    if not erasure.anonymise:
        async for pointer in member_pointers(erasure.table, erasure.user):
            erasure.run.done += await _delete(erasure, pointer)
        await delete_reports(erasure.table, erasure.user)


async def _delete(erasure: Erasure, pointer: Pointer) -> bool:
    """Whether this call did it."""

    async def delete(old: Comment | None) -> bool:
        if old is None:
            return False
        await store_change(erasure.services, erasure.unit, None, CommentChange(old, None))
        return True

    read = partial(pages.read_comment, erasure.table, pointer.product, pointer.ulid)
    return await optimistic(read, delete, idempotent=True)


MEMBER_DATA = MemberData(MEMBER_ITEMS, frozenset({Part.COMMENTS}), _take_back, _erase)
