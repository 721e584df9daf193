"""What is kept of a member, or of nobody, and belongs to no other part; and deleting some of it.

| wanted                         | read or write                                                  | requests        |
|--------------------------------|----------------------------------------------------------------|-----------------|
| rights and identities          | GetItem of each of them, and of the profile; BatchGetItem      | 5               |
| delete rights                  | BatchWriteItem                                                 | 1               |
| delete exported files          | gsi1 JOBS of some days; Query EXPORT#<job>, BatchWriteItem     | 1, and by 25    |
"""

from datetime import datetime, timedelta
from typing import Any

from datastore.changes.unit_of_work import CREATED, RECEIPT
from datastore.dynamo import Table
from datastore.dynamo.entity import Entity
from datastore.jobs.jobs import JOB, TEXT_PIECE, all_jobs
from datastore.jobs.leases import TURN
from datastore.members.api_keys import API_KEY
from datastore.members.exports import EXPORT, EXPORT_PIECE
from datastore.members.sessions import SESSION
from datastore.members.sign_in_codes import SIGN_IN_CODE
from datastore.members.suspensions import ADMIN, MEMBER_ROLES, SUSPENSION
from datastore.people.address_use import ADDRESS_USE
from datastore.people.challenges import SPENT_CHALLENGE
from datastore.people.confirmations import CONFIRMATION
from datastore.people.identities import IDENTITY, identities_of
from datastore.people.imported import IMPORTED
from datastore.people.member_items import KEPT, PERSONAL, MemberItems, Records, in_file, left_out, of_nobody
from datastore.people.profiles import PROFILE, read_profile

# ── erasing ──

_RIGHTS: tuple[Entity[Any], ...] = (SUSPENSION, ADMIN, MEMBER_ROLES)
_FILES_LAST = timedelta(days=3)
"""Pieces of a file expire within hours, and the engine removes what has expired within two days."""


async def delete_rights(table: Table, user: str) -> None:
    """Delete a member's suspension and roles, and that they have written as an admin. Safe to repeat."""
    await table.write_many([entity.delete(entity.at(user=user)) for entity in _RIGHTS])


async def delete_exports(table: Table, user: str, now: datetime) -> None:
    """Delete the files that were exported about a member, complete or not."""
    async for job in all_jobs(table):
        if job.started_at < now - _FILES_LAST:
            return
        if job.about == user:
            await table.clear(EXPORT.collection(job=job.id))


# ── member items ──


async def _read(table: Table, user: str) -> Records:
    for entity in _RIGHTS:
        record = await table.get(entity.at(user=user), consistent=True)
        if record is not None:
            yield entity, record
    profile = await read_profile(table, user)
    for identity in () if profile is None else await identities_of(table, profile):
        yield IDENTITY, identity


MEMBER_ITEMS = MemberItems(
    {
        PROFILE: in_file(
            "profile",
            "Your name, settings and email address, and when you joined.",
            without={"identities": "They are records of their own."},
        ),
        IMPORTED: left_out("Says by its hash which address you had where your comments were imported from.", PERSONAL),
        IDENTITY: in_file("identity", "By what you sign in: the issuer and what it calls you, or your address."),
        SUSPENSION: in_file("suspension", "That you may not write, why, and until when."),
        ADMIN: in_file("admin", "That you have lately written as an admin."),
        MEMBER_ROLES: in_file("roles", "The roles that you have here."),
        SESSION: in_file(
            "session",
            "That you are signed in somewhere: how, since when, and until when.",
            without={"token_hash": "Whoever has the session has it; it is of no use to anybody else."},
        ),
        RECEIPT: left_out(
            "Repeats what the file has: the answers to repeated requests, which expire after seven days.", PERSONAL
        ),
        CONFIRMATION: left_out("For three days: that an email was sent to an address, which it names by a keyed hash."),
        JOB: left_out("Names who began it by a keyed hash; its input is forgotten when it ends.", KEPT),
        EXPORT: left_out("Says nothing about a member.", PERSONAL),
        EXPORT_PIECE: left_out("Says nothing about a member.", PERSONAL),
        **of_nobody(ADDRESS_USE, API_KEY, CREATED, SIGN_IN_CODE, SPENT_CHALLENGE, TEXT_PIECE, TURN),
    },
    _read,
)
