"""Suspended members, and admins, whom nobody may suspend.

| wanted                      | read or write                            | requests              |
|-----------------------------|------------------------------------------|-----------------------|
| every suspension            | Query SUSPENDED, consistent              | 1, each process every 20 s |
| some members' suspensions   | BatchGetItem SUSPENDED USER#<id>         | 1 a hundred           |
| suspend, reinstate          | one item, with the request's receipt     | 1                     |
| whether a member is admin   | GetItem ADMINS USER#<id>, consistent     | 1                     |
| an admin has written        | PutItem ADMINS USER#<id>                 | 1, a process and day  |

All suspensions have one partition key: each process reads them as a whole, and only moderators write there. Roles are
in tokens and not in the table, so an admin is known by an item that their own writes leave for 90 days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.errors import ConditionFailed
from datastore.dynamo.writes import present

_ADMIN_LIFETIME = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Suspension:
    """A member who may not write until a time; until somebody reinstates them if that is None."""

    user: str
    reason: str
    at: datetime
    until: datetime | None = None

    def holds_at(self, now: datetime) -> bool:
        return self.until is None or now < self.until


@dataclass(frozen=True, slots=True)
class Admin:
    """A member who has lately written as an admin."""

    user: str
    expires: datetime


SUSPENSION = Entity(Suspension, Key("SUSPENDED", "USER#{user}"), ttl="until")
ADMIN = Entity(Admin, Key("ADMINS", "USER#{user}"), ttl="expires")


async def read_every_suspension(table: Table) -> Mapping[str, Suspension]:
    suspensions = table.iterate(SUSPENSION.on(), consistent=True, at_once=1000)
    return {suspension.user: suspension async for suspension in suspensions}


async def read_suspensions(table: Table, users: Sequence[str]) -> Mapping[str, Suspension]:
    """The suspensions of these members, by member; consistent."""
    suspensions = await table.get_many([SUSPENSION.at(user=user) for user in users], consistent=True)
    return {suspension.user: suspension for suspension in suspensions if suspension is not None}


async def suspend(table: Table, unit: UnitOfWork, answer: Any, suspension: Suspension) -> None:
    """Suspend a member, or change their suspension."""
    name = f"User:{suspension.user}"
    occurred = unit.occurred(Kind.MEMBER_SUSPENDED, name, about=suspension.user, note=suspension.reason)
    await unit.transact(table, answer, SUSPENSION.put(suspension), *occurred)


async def reinstate(table: Table, unit: UnitOfWork, answer: Any, user: str) -> bool:
    """End a member's suspension; False if there was none."""
    occurred = unit.occurred(Kind.MEMBER_REINSTATED, f"User:{user}", about=user)
    try:
        await unit.transact(table, answer, SUSPENSION.delete(SUSPENSION.at(user=user), when=present()), *occurred)
    except ConditionFailed as failed:
        return failed.doubtful
    return True


async def note_admin(table: Table, user: str, unit: UnitOfWork) -> None:
    await unit.apply(table, ADMIN.put(Admin(user, unit.now + _ADMIN_LIFETIME)), *unit.not_erased(user))


async def is_admin(table: Table, user: str, now: datetime) -> bool:
    admin = await table.get(ADMIN.at(user=user), consistent=True)
    return admin is not None and now < admin.expires
