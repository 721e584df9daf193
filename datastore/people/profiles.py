"""Members.

| wanted                      | read or write                                        | requests      |
|-----------------------------|------------------------------------------------------|---------------|
| one member                  | GetItem USER#<id> PROFILE                            | 1             |
| the members on a page       | BatchGetItem, distinct ids                           | 1 a hundred   |
| a member of nobody's        | Put if absent                                        | 1             |
| an address to be confirmed  | transaction: profile, if no other one is meanwhile   | 1             |
| a confirmed email address   | transaction: profile, if it is still wanted; GetItem | 2             |
| all members                 | gsi1 USERS#<shard>, 16 shards                        | 16 and more   |
| members, newest first       | gsi3 MEMBERS#<shard>, 16 shards                      | 16 a page     |
| names with this beginning   | gsi2 NAMES#<shard>, 16 shards                        | 16 a page     |
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Page, Table, Window
from datastore.dynamo.entity import HIGHEST, Entity, Key, shard_of
from datastore.dynamo.paging import shard_limit
from datastore.dynamo.writes import Condition, Write, absent, present, where
from datastore.refusals import NotFound
from datastore.values.folding import folded, is_stream_safe

SHARDS = 16
LONGEST_SEARCH = 80
"""Letters of a name by which it is found: an index key holds 1 KB."""


def member_shard(user: str) -> int:
    """A member's shard in sharded indexes and tallies; never changes."""
    return shard_of(user, SHARDS)


def searched(name: str) -> str:
    """A name, or its beginning, in the form in which names are searched: without case, as a part of a key."""
    plain = folded(name) if is_stream_safe(name) else name.casefold()
    return plain.replace("#", "＃")[:LONGEST_SEARCH]


class OfMember:
    """What lies in its member's shard."""

    __slots__ = ()
    user: str

    @property
    def shard(self) -> int:
        return member_shard(self.user)


@dataclass(frozen=True, slots=True)
class Profile(OfMember):
    """A member's public profile and private settings."""

    user: str
    name: str
    joined_at: datetime
    avatar_url: str | None = None
    email: str | None = None
    time_zone: str | None = None
    daily_word_at: str | None = None
    """When the daily words are due in the member's time zone: `07:30`. None means as soon as their date begins."""
    lock_reminder_hours: int | None = None
    """How long before an event's lock the member is reminded; None or 0 means never."""
    reply_emails: bool | None = None
    """Whether the member is told of replies to their comments by email."""
    email_confirmed: datetime | None = None
    """When the member confirmed `email` by the link sent to it, or by a token that says so."""
    email_pending: str | None = None
    """The keyed hash of the address that is to be confirmed."""
    email_bounced: str | None = None
    """The keyed hash of an address that was taken away. It comes back if the member sets or confirms it."""
    identities: tuple[str, ...] = ()
    """The keys of what the member signs in by (`datastore.people.identities`)."""
    expires: datetime | None = None
    """When a guest ends who has written nothing."""

    @property
    def node_key(self) -> str:
        return self.user

    @property
    def is_guest(self) -> bool:
        """Whether the member has shown nothing but a name."""
        return bool(self.identities) and all(key.startswith("GUEST.") for key in self.identities)

    @property
    def signs_in(self) -> bool:
        """Whether somebody does. A profile that is only an address to which words are sent is found by nobody."""
        return bool(self.identities)

    @property
    def proven_email(self) -> str | None:
        """The address, if it is known to be the member's."""
        return self.email if self.email_confirmed is not None else None

    @property
    def searched_name(self) -> str:
        return searched(self.name)


NO_EMAIL: Final[Mapping[str, None]] = {"email": None, "email_confirmed": None}
"""The values of a profile that has no address any more."""


def proven(email: str, at: datetime) -> dict[str, str | datetime | None]:
    """The values of a profile with an address that was confirmed at a time."""
    return {"email": email, "email_confirmed": at, "email_bounced": None}


PROFILE = Entity(
    Profile,
    Key("USER#{user}", "PROFILE"),
    ttl="expires",
    gsi1=Key("USERS#{shard:02d}", "USER#{user}"),
    gsi2=Key("NAMES#{shard:02d}", "{searched_name}#{user}", when="signs_in"),
    gsi3=Key("MEMBERS#{shard:02d}", "{user}", when="signs_in"),
)


async def read_profile(table: Table, user: str) -> Profile | None:
    """The profile as it is now; what is only shown comes from `read_profiles`, in batches."""
    return await table.get(PROFILE.at(user=user), consistent=True)


async def read_profiles(table: Table, users: Sequence[str], *, consistent: bool = False) -> Mapping[str, Profile]:
    """The profiles that exist, by id."""
    profiles = await table.find_many([PROFILE.at(user=user) for user in users], consistent=consistent)
    return {profile.user: profile for profile in profiles}


async def read_members_page(table: Table, beginning: str, window: Window) -> Page[Profile]:
    """The members whose name begins so, by name; without a beginning all of them, the newest first."""
    request = window.open(f"members\n{beginning}")
    shards = [PROFILE.on("gsi3", shard=shard).newest_first() for shard in range(SHARDS)]
    if beginning:
        low, high = beginning, beginning + HIGHEST
        shards = [PROFILE.on("gsi2", shard=shard).between(low, high) for shard in range(SHARDS)]
    return await table.page(shards, request, limit=shard_limit(request.wanted, SHARDS))


async def listed_profiles(table: Table) -> AsyncIterator[tuple[int, Profile]]:
    """Every profile in the index of members, with the shard that lists it."""
    for shard in range(SHARDS):
        async for profile in table.iterate(PROFILE.on("gsi1", shard=shard), PROFILE, at_once=1000):
            yield shard, profile


async def create_profile(table: Table, new: Profile) -> bool:
    """Create a profile that nobody signs in to unless there is one; return whether it was created."""
    return await table.try_write(PROFILE.put(new, when=absent()))


async def update_profile(table: Table, changed: Profile, names: Iterable[str], unit: UnitOfWork) -> None:
    """Change the named attributes of an existing profile; NotFound if there is none. Without names nothing occurred."""
    key, values = PROFILE.item_key(changed), {name: getattr(changed, name) for name in names}
    write: Write = PROFILE.check(key, present())  # the engine refuses an update of nothing
    occurrence: tuple[Write, ...] = ()
    if values:
        write = PROFILE.update(key, values=values, when=present())
        if "name" in values:  # nothing else is in an index, and others may have changed the name since it was read
            write = PROFILE.update_with_indexes(changed, *values, when=present())
        occurrence = unit.occurred(Kind.PROFILE_CHANGED, f"User:{changed.user}")
    try:
        await unit.transact(table, changed, write, *occurrence)
    except ConditionFailed:
        raise NotFound from None


async def remove_bounced_address(table: Table, profile: Profile, hashed: str, unit: UnitOfWork) -> bool:
    """Take a profile's address away, so that nothing is sent until one is confirmed again. False if it has another."""
    values = {**NO_EMAIL, "email_bounced": hashed}
    change = PROFILE.update(PROFILE.item_key(profile), values=values, when=where(email=profile.email))
    occurrence = unit.occurred(Kind.PROFILE_CHANGED, f"User:{profile.user}")
    try:
        await unit.apply(table, change, *occurrence)
    except ConditionFailed:
        return False
    return True


async def confirm_email(table: Table, user: str, email: str, pending: str, unit: UnitOfWork) -> Profile | None:
    """Give a profile the address whose keyed hash is pending in it; None if none or another one is."""
    values = {**proven(email, unit.now), "email_pending": None}
    return await _set_email(table, user, values, where(email_pending=pending), unit)


async def expect_email(table: Table, seen: Profile, pending: str, unit: UnitOfWork) -> None:
    """Let the link of an email count that may have been sent, unless another address was asked for meanwhile."""
    unchanged = present() & where(email_pending=seen.email_pending)
    change = PROFILE.update(PROFILE.item_key(seen), values={"email_pending": pending}, when=unchanged)
    with suppress(ConditionFailed):
        await unit.apply(table, change, *unit.occurred(Kind.PROFILE_CHANGED, f"User:{seen.user}"))


async def set_email(table: Table, user: str, email: str, unit: UnitOfWork) -> Profile | None:
    """Give a profile an address that was just proven to be the member's; None if there is no profile any more."""
    values = {**proven(email, unit.now), "email_pending": None}
    return await _set_email(table, user, values, present(), unit)


async def give_email(table: Table, user: str, email: str, unit: UnitOfWork) -> Profile | None:
    """Give a profile without an address one that is proven to be the member's; None if it has one."""
    return await _set_email(table, user, proven(email, unit.now), present() & absent("email"), unit)


async def _set_email(
    table: Table, user: str, values: Mapping[str, Any], when: Condition, unit: UnitOfWork
) -> Profile | None:
    """The profile as it then is; None if the condition did not hold."""
    key = PROFILE.at(user=user)
    occurrence = unit.occurred(Kind.PROFILE_CHANGED, f"User:{user}")
    try:
        await unit.apply(table, PROFILE.update(key, values=values, when=when), *occurrence)
    except ConditionFailed as failed:
        if not failed.doubtful:
            return None
    stored = await table.get(key, consistent=True)
    return stored if stored is not None and stored.email_confirmed == unit.now else None
