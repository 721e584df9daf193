"""Erasing what belongs to no other part: jobs that name the member, exported files, and receipts.

A job that names the member is taken over and carried to its end: whatever it still wants to write for them or about
them is refused, so it ends as if it had been refused in its own process, and counts nothing twice.
"""

from __future__ import annotations

from datastore.changes.unit_of_work import delete_receipts
from datastore.jobs import jobs as jobs_store
from datastore.members.erasing import delete_exports
from datastore.members.member_items import MEMBER_ITEMS
from resolvers.jobs.running import JobRunner, hashes_about
from resolvers.people.member_data import ERASURES, Erasure, MemberData


async def _erase_listed(erasure: Erasure) -> None:
    services, table, user = erasure.services, erasure.table, erasure.user
    async for job in jobs_store.unfinished_jobs_naming(table, user):
        if job.kind not in ERASURES:  # another one of this member ends by itself
            await services.get(JobRunner).take_over(job)
    await delete_exports(table, hashes_about(services, user), services.clock())
    await delete_receipts(table, user, services.tombstones.hashes(user))


MEMBER_DATA = MemberData(MEMBER_ITEMS, erase_listed=_erase_listed)
