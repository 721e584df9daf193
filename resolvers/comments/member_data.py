"""Taking back and erasing a member's comments, and erasing their reports.

Comments are taken back by rejecting them one by one, and are uncounted with it. Marks of helpful comments are deleted.
"""

from datastore.changes.occurrences import Ground
from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.changes import CommentChange, Decision
from datastore.comments.helpful import delete_mark, member_marks
from datastore.comments.member_items import MEMBER_ITEMS, delete_reports
from datastore.comments.records import Comment, Status, member_pointers
from datastore.values.ids import creation_time
from resolvers.comments.writing import change_at, note_after, revised
from resolvers.jobs.running import JobRun
from resolvers.people.member_data import Erasure, MemberData, Part, TakingBack
from resolvers.requests.context import Services


async def _take_back(services: Services, run: JobRun, wanted: TakingBack, unit: UnitOfWork) -> None:
    async for pointer in member_pointers(services.table, wanted.user):
        if not wanted.is_recent(creation_time(pointer.ulid)):
            break
        run.done += await change_at(services, pointer, unit, _rejected)
    async for mark in member_marks(services.table, wanted.user):
        if wanted.is_recent(mark.at):
            await delete_mark(services.table, mark)
            run.done += 1


def _rejected(comment: Comment) -> CommentChange | None:
    if comment.held is Status.REJECTED:
        return None
    note = note_after(comment, Status.REJECTED)
    return CommentChange(comment, revised(comment, held=Status.REJECTED, note=note), Decision(Ground.FRAUD))


async def _erase(erasure: Erasure) -> None:
    if not erasure.anonymise:
        async for pointer in member_pointers(erasure.table, erasure.user):
            erasure.run.done += await change_at(
                erasure.services, pointer, erasure.unit, lambda old: CommentChange(old, None)
            )
        await delete_reports(erasure.table, erasure.user)
        async for mark in member_marks(erasure.table, erasure.user):
            await delete_mark(erasure.table, mark)


MEMBER_DATA = MemberData(MEMBER_ITEMS, frozenset({Part.COMMENTS}), _take_back, _erase)
