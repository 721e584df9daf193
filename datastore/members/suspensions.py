"""Members' rights: who may not write, who has roles here, and who is an admin, whom nobody may suspend.

| wanted                      | read or write                              | requests               |
|-----------------------------|--------------------------------------------|------------------------|
| every suspension and role   | Query RIGHTS, consistent                   | 1, a process a change  |
| some members' suspensions   | BatchGetItem RIGHTS SUSPENDED#<id>         | 1 a hundred            |
| suspend, reinstate          | one item, the revision and the receipt     | 1                      |
| give or take roles          | one item, the revision and the receipt     | 1                      |
| an erased member's roles    | Delete, with the job that erases           | 0 more                 |
| whether a member is admin   | BatchGetItem, consistent                   | 1                      |
| that one has no rights      | the same, and checks in the transaction    | 1                      |
| an admin by token has written | PutItem ADMINS USER#<id>                 | 1, a process and day   |

Suspensions and roles have one partition key: each process reads them as a whole, and only moderators and admins write
there. Tokens may give roles too, which are not in the table, so whom a token makes an admin is known by an item that
their own writes leave for 90 days.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from datastore.changes.occurrences import Kind
from datastore.changes.revisions import changed
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Stale, Table
from datastore.dynamo.entity import Entity, ItemKey, Key
from datastore.dynamo.writes import ALWAYS, Write, absent, more, present, where
from datastore.refusals import NotAllowed

ADMIN_ROLE = "admin"
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


@dataclass(frozen=True, slots=True)
class MemberRoles:
    """The roles that a member has here, besides those that their token gives them."""

    user: str
    roles: tuple[str, ...]


SUSPENSION = Entity(Suspension, Key("RIGHTS", "SUSPENDED#{user}"), ttl="until")
MEMBER_ROLES = Entity(MemberRoles, Key("RIGHTS", "ROLES#{user}"))
ADMIN = Entity(Admin, Key("ADMINS", "USER#{user}"), ttl="expires")


async def read_rights(table: Table) -> tuple[Mapping[str, Suspension], Mapping[str, MemberRoles]]:
    """Every suspension and every member's roles, by member."""
    suspensions: dict[str, Suspension] = {}
    roles: dict[str, MemberRoles] = {}
    rights = table.iterate(SUSPENSION.collection(), SUSPENSION, MEMBER_ROLES, consistent=True, at_once=1000)
    async for right in rights:
        (roles if isinstance(right, MemberRoles) else suspensions)[right.user] = right
    return suspensions, roles


async def read_suspensions(table: Table, users: Sequence[str]) -> Mapping[str, Suspension]:
    """The suspensions of these members, by member; consistent."""
    suspensions = await table.find_many([SUSPENSION.at(user=user) for user in users], consistent=True)
    return {suspension.user: suspension for suspension in suspensions}


async def suspend(table: Table, unit: UnitOfWork, answer: Any, suspension: Suspension) -> None:
    """Suspend a member, or change their suspension."""
    name = f"User:{suspension.user}"
    occurred = unit.occurred(Kind.MEMBER_SUSPENDED, name, note=suspension.reason)
    await unit.transact(table, answer, SUSPENSION.put(suspension), changed("rights"), *occurred)


async def reinstate(table: Table, unit: UnitOfWork, answer: Any, user: str) -> bool:
    """End a member's suspension; False if there was none, or if it had ended by itself."""
    occurred = unit.occurred(Kind.MEMBER_REINSTATED, f"User:{user}")
    holds = present() & (absent("until") | more("until", unit.now))
    delete = SUSPENSION.delete(SUSPENSION.at(user=user), when=holds)
    try:
        await unit.transact(table, answer, delete, changed("rights"), *occurred)
    except ConditionFailed as failed:
        return failed.doubtful
    return True


async def note_admin(table: Table, user: str, unit: UnitOfWork) -> None:
    await table.write(ADMIN.put(Admin(user, unit.now + _ADMIN_LIFETIME)))


async def is_admin(table: Table, user: str, now: datetime) -> bool:
    keys: list[ItemKey[Any]] = [ADMIN.at(user=user), MEMBER_ROLES.at(user=user)]
    admin, roles = await table.get_many(keys, consistent=True)
    return (admin is not None and now < admin.expires) or (roles is not None and ADMIN_ROLE in roles.roles)


async def without_rights(table: Table, user: str, now: datetime) -> Sequence[Write] | None:
    """The checks that a member has no roles here and is not suspended; None if they have, or are."""
    keys: list[ItemKey[Any]] = [MEMBER_ROLES.at(user=user), SUSPENSION.at(user=user)]
    roles, suspension = await table.get_many(keys, consistent=True)
    if roles is not None or (suspension is not None and suspension.holds_at(now)):
        return None
    ended = absent() if suspension is None else where(until=suspension.until)
    return [MEMBER_ROLES.check(MEMBER_ROLES.at(user=user), absent()), SUSPENSION.check(SUSPENSION.at(user=user), ended)]


async def still_admin(table: Table, user: str) -> Write:
    """The check, for what only an admin may do, that a member has this role here; NotAllowed if they have lost it."""
    roles = await table.get(MEMBER_ROLES.at(user=user), consistent=True)
    if roles is None or ADMIN_ROLE not in roles.roles:
        raise NotAllowed
    return MEMBER_ROLES.check(MEMBER_ROLES.item_key(roles), where(roles=roles.roles))


async def set_roles(
    table: Table,
    unit: UnitOfWork,
    answer: Any,
    given: MemberRoles,
    *,
    by: MemberRoles | None = None,
    besides: MemberRoles | None = None,
) -> None:
    """Give a member these roles and no others.

    Stale if the roles have changed of the admin who gives them, or of the other admin `besides`.
    """
    key = MEMBER_ROLES.at(user=given.user)
    is_own = by is not None and by.user == given.user
    when = where(roles=by.roles) if by is not None and is_own else ALWAYS
    write: Write = MEMBER_ROLES.put(given, when=when) if given.roles else MEMBER_ROLES.delete(key, when=when)
    unchanged = [each for each in (None if is_own else by, besides) if each is not None]
    others = [MEMBER_ROLES.check(MEMBER_ROLES.item_key(each), where(roles=each.roles)) for each in unchanged]
    note = ", ".join(given.roles) or "none"
    occurred = unit.occurred(Kind.MEMBER_ROLES_SET, f"User:{given.user}", note=note)
    try:
        await unit.transact(table, answer, write, changed("rights"), *others, *occurred)
    except ConditionFailed as failed:
        if failed.doubtful:
            raise
        raise Stale from None


def no_roles(user: str) -> Write:
    """The write that takes every role away, for the transaction that erases the member: nobody may count on them."""
    return MEMBER_ROLES.delete(MEMBER_ROLES.at(user=user))


async def read_admins(table: Table) -> Mapping[str, MemberRoles]:
    """The members who have the role admin here, with their roles."""
    _, roles = await read_rights(table)
    return {user: each for user, each in roles.items() if ADMIN_ROLE in each.roles}
