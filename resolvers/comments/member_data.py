"""Taking back and erasing a member's comments, and erasing their reports.

Comments are taken back by rejecting them one by one, and are uncounted with it.
"""

from __future__ import annotations

from functools import partial

from datastore.changes.occurrences import Ground
from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments import pages
from datastore.comments.changes import CommentChange, Decision
from datastore.comments.member_items import MEMBER_ITEMS, forget_reporter
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
    async for pointer in member_pointers(erasure.table, erasure.user):
        erasure.run.done += await _erase_comment(erasure, pointer)


async def _erase_comment(erasure: Erasure, pointer: Pointer) -> bool:
    """Whether this call did it."""

    async def erase(old: Comment | None) -> bool:
        if old is None or old.author != erasure.user:
            return False
        alias = erasure.alias
        change = CommentChange(old, None if alias is None else revised(old, author=alias))
        await store_change(erasure.services, erasure.told if alias is None else erasure.silent, None, change)
        return True

    read = partial(pages.read_comment, erasure.table, pointer.product, pointer.ulid)
    return await optimistic(read, erase, idempotent=True)


async def _erase_listed(erasure: Erasure) -> None:
    await forget_reporter(erasure.table, erasure.user, erasure.alias)


MEMBER_DATA = MemberData(MEMBER_ITEMS, frozenset({Part.COMMENTS}), _take_back, _erase, _erase_listed)
