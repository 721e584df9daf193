"""Suspensions: a suspended member reads as before, and their mutations are refused with the reason.

Those that are declared with `while_suspended` are not: the right to one's own data does not end with a suspension.

Every process looks every five seconds whether any was changed, so mutations are refused everywhere within half a
minute, on open sockets too: each mutation asks here. A process that cannot read them goes on with those that it knows.
Members' roles are read with them: one that is taken away ends within a minute, since open sockets are looked at every
half minute. Those of an erased member stay known until the next change: nobody is that member any more.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial

from datastore.dynamo import iso, optimistic
from datastore.members import sessions as session_store
from datastore.members import suspensions as suspension_store
from datastore.members.member_items import MEMBER_ITEMS, delete_exports, delete_rights
from datastore.members.suspensions import MemberRoles, Suspension
from datastore.people.profiles import Profile
from datastore.refusals import Conflict, InvalidInput, NotAllowed
from resolvers.people.member_data import Erasure, MemberData
from resolvers.people.visibility import load_member
from resolvers.requests.context import Context, Role, Services, UserId
from resolvers.values.texts import parse_line

# ── suspensions ──

LONGEST_REASON = 500
LONGEST = timedelta(days=3653)
"""Of a suspension with an end, ten years with their leap days; and how long one without an end outlasts an erasure."""


async def suspend_member(ctx: Context, /, *, user: UserId, until: datetime | None = None, reason: str) -> Profile:
    """Refuse a member's writes until a time, or until somebody reinstates them; they may sign in anew to leave.

    A guest cannot, and keeps the session, without which nobody could export or erase what is theirs.
    """
    viewer = ctx.with_role(Role.MODERATOR)
    reason = parse_line(reason, LONGEST_REASON, "A reason", ("input", "reason"))
    now = ctx.now()
    if until is not None and not now < until <= now + LONGEST:
        raise InvalidInput("A suspension ends in the future, within ten years.", path=("input", "until"))
    member = await load_member(ctx, user)
    if viewer.is_user(member.user):
        raise NotAllowed("Nobody can suspend themselves.", path=("input", "user"))
    await refuse_admin(ctx, member, "An admin cannot be suspended.")
    earlier = (await suspension_store.read_suspensions(ctx.table, [member.user])).get(member.user)
    began = earlier.at if earlier is not None and earlier.holds_at(now) else now
    suspended = Suspension(member.user, reason, began, until)
    if not member.is_guest:  # first, since a repeat that finds a receipt would leave them
        await session_store.end_sessions(ctx.table, member.user)
    await suspension_store.suspend(ctx.table, ctx.unit, member, suspended)
    ctx.services.get(Suspensions).changed(member.user, suspended)
    return member


async def reinstate_member(ctx: Context, /, *, user: UserId) -> Profile:
    """End a member's suspension."""
    viewer = ctx.with_role(Role.MODERATOR)
    member = await load_member(ctx, user)
    if viewer.is_user(member.user):
        raise NotAllowed("Nobody can reinstate themselves.", path=("input", "user"))
    if not await suspension_store.reinstate(ctx.table, ctx.unit, member, member.user):
        raise Conflict("This member is not suspended.", path=("input", "user"))
    ctx.services.get(Suspensions).changed(member.user, None)
    return member


async def refuse_admin(ctx: Context, member: Profile, message: str) -> None:
    """NotAllowed for a member who has lately written as an admin."""
    if await suspension_store.is_admin(ctx.table, member.user, ctx.now()):
        raise NotAllowed(message, path=("input", "user"))


# ── what a process knows ──


class Suspensions:
    """Every suspension and role, as this process has last read them (see `Watch`)."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[str, Suspension] = {}
        self._roles: dict[str, frozenset[Role]] = {}
        self._changes = 0
        self._admins_noted: tuple[date, set[str]] = (date.min, set())

    async def check(self, ctx: Context, *, while_suspended: bool) -> None:
        """NotAllowed if the viewer, a member, is suspended and the mutation is not for them.

        An admin is never suspended, and is remembered as one.
        """
        viewer = ctx.viewer
        if viewer.may(Role.ADMIN):
            await self._note_admin(ctx)
            return
        found, now = self._known.get(viewer.id), ctx.now()
        if found is not None and found.holds_at(now) and not while_suspended:
            end = "" if found.until is None else f" until {iso(found.until)}"
            raise NotAllowed(
                f"You are suspended{end} and can only read, and export or erase your own data: {found.reason}",
                path=("viewer", "suspension"),
                retry_after=None if found.until is None else (found.until - now).total_seconds(),
            )

    async def _note_admin(self, ctx: Context) -> None:
        """Note once a day that the viewer is an admin by their token. Admins by the table are known from there.

        What a socket's viewer has of the table may have been taken away since, and says nothing.
        """
        now, user = self._services.clock(), ctx.viewer.id
        if Role.ADMIN not in ctx.viewer.token_roles or Role.ADMIN in self.roles_of(user):
            return
        if self._admins_noted[0] != now.date():
            self._admins_noted = (now.date(), set())
        if user not in self._admins_noted[1]:
            await suspension_store.note_admin(self._services.table, user, ctx.unit)
            self._admins_noted[1].add(user)

    def changed(self, user: str, suspended: Suspension | None) -> None:
        """What this process has just written."""
        self._changes += 1
        self._known.pop(user, None)
        if suspended is not None:
            self._known[user] = suspended

    def roles_of(self, user: str) -> frozenset[Role]:
        """The roles that a member has here, besides those that their token gives them."""
        return self._roles.get(user, frozenset())

    def roles_changed(self, given: MemberRoles) -> None:
        """What this process has just written."""
        self._changes += 1
        self._roles[given.user] = roles_in(given)

    async def refresh(self) -> None:
        """Read all of them, unless this process changes one meanwhile: then they are read the next time."""
        changes = self._changes
        known, roles = await suspension_store.read_rights(self._services.table)
        if changes == self._changes:
            self._known = dict(known)
            self._roles = {user: roles_in(given) for user, given in roles.items()}


def roles_in(given: MemberRoles) -> frozenset[Role]:
    return frozenset(role for role in Role if role in given.roles)


# ── member data ──


async def _erase(erasure: Erasure) -> None:
    await delete_rights(erasure.table, erasure.user)
    await delete_exports(erasure.table, erasure.user, erasure.services.clock())


MEMBER_DATA = MemberData(MEMBER_ITEMS, erase=_erase)


# ── roles ──
# Giving members roles and taking them away. A token may give its bearer others, which end with the token.


async def set_roles(ctx: Context, /, *, user: UserId, roles: list[str]) -> Profile:
    """Give a member these roles and no others. A key or a token that leaks must not give its finder a role for good."""
    ctx.member()
    session = ctx.with_role(Role.ADMIN).session
    if session is None or session.origin is not None:
        raise NotAllowed("Roles are given by an admin who has signed in on this service's own page, /sign-in.")
    member = await load_member(ctx, user)
    if member.is_guest:
        raise Conflict("A guest has no roles: they have to sign in with an address first.", path=("input", "user"))
    given = MemberRoles(member.user, _given(roles))
    ends_own = ctx.viewer.is_user(member.user) and Role.ADMIN not in roles_in(given)

    async def give(admins: Mapping[str, MemberRoles]) -> None:
        by = admins.get(ctx.viewer.id)
        if by is None:  # this process does not know yet
            raise NotAllowed(f"This is for {Role.ADMIN.value}s only.")
        besides = next((each for each in admins.values() if each != by), None)
        if ends_own and besides is None:
            raise Conflict("You are the last admin: make another one first.", path=("input", "roles"))
        await suspension_store.set_roles(
            ctx.table, ctx.unit, member, given, by=by, besides=besides if ends_own else None
        )

    await optimistic(partial(suspension_store.read_admins, ctx.table), give)
    ctx.services.get(Suspensions).roles_changed(given)
    return member


def _given(texts: list[str]) -> tuple[str, ...]:
    """What is stored: every member has the role member without being given it."""
    return tuple(role.value for role in parse_roles(texts) if role is not Role.MEMBER)


def parse_roles(texts: Sequence[str]) -> list[Role]:
    """Each role once, in the order of `Role`."""
    if unknown := [text for text in texts if text not in set(Role)]:
        known = ", ".join(Role)
        raise InvalidInput(f"{unknown[0][:40]!r} is not a role. The roles are {known}.", path=("input", "roles"))
    return [role for role in Role if role in texts]
