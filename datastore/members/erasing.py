"""Erasing what belongs to no part: a member's own items, and exported files.

| wanted                         | read or write                                                  | requests        |
|--------------------------------|----------------------------------------------------------------|-----------------|
| nobody sees the name any more  | DeleteItem USER#<id> PROFILE                                   | 1               |
| delete the member's own items  | Query USER#<id>, keys only; BatchWriteItem                     | 1 for 25        |
| delete exported files          | gsi1 JOBS of some hours; Query EXPORT#<job>, BatchWriteItem    | 1, and by 25    |

A member's own items are deleted last, whatever they are: what they count towards was uncounted before.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from datastore.dynamo.bulk import clear_partition
from datastore.dynamo.entity import Partition
from datastore.jobs.jobs import all_jobs
from datastore.members.exports import EXPORT
from datastore.members.suspensions import ADMIN, SUSPENSION
from datastore.people.profiles import PROFILE

if TYPE_CHECKING:
    from datastore.dynamo import Table

_FILES_LAST = timedelta(days=3)
"""Pieces of a file expire within hours, and the engine removes what has expired within two days."""


async def delete_profile(table: Table, user: str) -> None:
    await table.write(PROFILE.delete(PROFILE.at(user=user)))


async def clear_member(table: Table, user: str) -> None:
    """Delete what is left of a member. Safe to repeat."""
    await table.write_many([SUSPENSION.delete(SUSPENSION.at(user=user)), ADMIN.delete(ADMIN.at(user=user))])
    await clear_partition(table, _own_items(user))


def _own_items(user: str) -> Partition[Any]:
    return Partition(PROFILE, None, PROFILE.at(user=user).pk)


async def delete_exports(table: Table, about: Collection[str], now: datetime) -> None:
    """Delete the files that were exported about a member, complete or not; `about` is how jobs may name the member."""
    async for job in all_jobs(table):
        if job.started_at < now - _FILES_LAST:
            return
        if job.about in about:
            await clear_partition(table, Partition(EXPORT, None, EXPORT.at(job=job.id).pk))
