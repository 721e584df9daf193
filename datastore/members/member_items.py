"""What is kept of a member, or of nobody, and belongs to no other part; and deleting a member's own items.

| wanted                         | read or write                                                  | requests        |
|--------------------------------|----------------------------------------------------------------|-----------------|
| suspension and admin           | GetItem SUSPENDED and ADMINS USER#<id>                         | 2               |
| nobody sees the name any more  | DeleteItem USER#<id> PROFILE                                   | 1               |
| delete the member's own items  | Query USER#<id>, keys only; BatchWriteItem                     | 1 for 25        |
| delete exported files          | gsi1 JOBS of some hours; Query EXPORT#<job>, BatchWriteItem    | 1, and by 25    |

A member's own items are deleted last, whatever they are: what they count towards was uncounted before.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from datastore.changes.unit_of_work import CREATED, RECEIPT, TOMBSTONE
from datastore.dynamo import Table
from datastore.dynamo.bulk import clear_partition
from datastore.dynamo.entity import Partition
from datastore.jobs.jobs import JOB, all_jobs
from datastore.jobs.leases import TURN
from datastore.members.api_keys import API_KEY
from datastore.members.exports import EXPORT, EXPORT_PIECE
from datastore.members.suspensions import ADMIN, SUSPENSION
from datastore.people.address_use import ADDRESS_USE
from datastore.people.confirmations import CONFIRMATION
from datastore.people.identities import IDENTITY, identities_of
from datastore.people.member_items import PERSONAL, TRACE, MemberItems, Records, in_file, left_out, of_nobody
from datastore.people.profiles import PROFILE, read_profile

# ── erasing ──

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


# ── member items ──


async def _read(table: Table, user: str) -> Records:
    for entity in (SUSPENSION, ADMIN):
        record = await table.get(entity.at(user=user), consistent=True)
        if record is not None:
            yield entity, record
    profile = await read_profile(table, user)
    for identity in () if profile is None else await identities_of(table, profile):
        yield IDENTITY, identity


MEMBER_ITEMS = MemberItems(
    {
        PROFILE: in_file("profile", "Your name, settings and email address, and when you joined."),
        IDENTITY: in_file("identity", "By what you sign in: the issuer and what it calls you, or your address."),
        SUSPENSION: in_file("suspension", "That you may not write, why, and until when."),
        ADMIN: in_file("admin", "That you have lately written as an admin."),
        RECEIPT: left_out(
            "Repeats what the file has: the answers to repeated requests, which expire after seven days. They are "
            "stored under the keys that clients chose, so nobody can list a member's.",
            PERSONAL,
        ),
        TOMBSTONE: left_out("That a member is erased, whom it names by a keyed hash."),
        CONFIRMATION: left_out("For three days: that an email was sent to an address, which it names by a keyed hash."),
        JOB: left_out("Names who began it by a keyed hash; its input is forgotten when it ends.", TRACE),
        EXPORT: left_out("Says nothing about a member.", PERSONAL),
        EXPORT_PIECE: left_out("Says nothing about a member.", PERSONAL),
        **of_nobody(ADDRESS_USE, API_KEY, CREATED, TURN),
    },
    _read,
)
