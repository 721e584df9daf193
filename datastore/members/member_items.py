"""What the service keeps of a member that belongs to no other part, and of nobody.

| wanted                | read                                  | requests |
|-----------------------|---------------------------------------|----------|
| suspension and admin  | GetItem SUSPENDED and ADMINS USER#<id> | 2        |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datastore.changes.created import CREATED
from datastore.changes.tombstones import TOMBSTONE
from datastore.changes.unit_of_work import RECEIPT
from datastore.jobs.jobs import JOB
from datastore.jobs.leases import TURN
from datastore.members.api_keys import API_KEY
from datastore.members.exports import EXPORT, EXPORT_PIECE
from datastore.members.suspensions import ADMIN, SUSPENSION
from datastore.people.address_use import ADDRESS_USE
from datastore.people.confirmations import CONFIRMATION
from datastore.people.member_items import (
    PERSONAL,
    TRACE,
    MemberItems,
    Records,
    in_file,
    left_out,
    of_nobody,
)
from datastore.people.profiles import PROFILE

if TYPE_CHECKING:
    from datastore.dynamo import Table


async def _read(table: Table, user: str) -> Records:
    for entity in (SUSPENSION, ADMIN):
        record = await table.get(entity.at(user=user), consistent=True)
        if record is not None:
            yield entity, record


MEMBER_ITEMS = MemberItems(
    {
        PROFILE: in_file("profile", "Your name, settings and email address, and when you joined."),
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
