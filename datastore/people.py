"""Members.

| wanted                      | read or write                                        | requests      |
|-----------------------------|------------------------------------------------------|---------------|
| one member                  | GetItem USER#<id> PROFILE                            | 1             |
| the members behind a page   | BatchGetItem, distinct ids                           | 1 a hundred   |
| a member's first write      | Put if absent                                        | 1, once a process |
| all members                 | gsi1 USERS#<shard>, 16 shards                        | 16 and more   |
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, present
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.refusals import NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from datastore.dynamo import Table
    from datastore.receipts import Once

from datetime import datetime

SHARDS = 16


def shard_of(user: str) -> int:
    """Where a member's items stand in sharded indexes; never changes."""
    return zlib.crc32(user.encode()) % SHARDS


@dataclass(frozen=True, slots=True)
class Profile:
    """A member as others see them, and the settings only they see."""

    user: str
    name: str
    joined_at: datetime
    avatar_url: str | None = None
    email: str | None = None
    time_zone: str | None = None

    @property
    def node_key(self) -> str:
        return self.user

    @property
    def shard(self) -> int:
        return shard_of(self.user)


PROFILE = Entity(
    Profile,
    Key("USER#{user}", "PROFILE"),
    gsi1=Key("USERS#{shard:02d}", "USER#{user}"),
)


async def profile(table: Table, user: str, *, consistent: bool = False) -> Profile | None:
    return await table.get(PROFILE.at(user=user), consistent=consistent)


async def profiles(table: Table, users: Sequence[str]) -> Mapping[str, Profile]:
    """The profiles there are, by id."""
    found = await table.get_many([PROFILE.at(user=user) for user in users])
    return {record.user: record for record in found if record is not None}


def stored_profiles(table: Table) -> AsyncIterator[Profile]:
    """Every profile, found by a scan of the whole table."""
    return table.scan(PROFILE)


async def listed_profiles(table: Table) -> AsyncIterator[tuple[int, Profile]]:
    """Every profile in the index of members, with the shard that lists it."""
    for shard in range(SHARDS):
        async for profile in table.iterate(PROFILE.on("gsi1", shard=shard), PROFILE, at_once=1000):
            yield shard, profile


async def welcome(table: Table, newcomer: Profile) -> bool:
    """Creates a profile unless there is one; says whether it was created."""
    try:
        await table.write(PROFILE.put(newcomer, when=absent()))
    except ConditionFailed:
        return False
    return True


async def seed_profiles(table: Table, profiles: Iterable[Profile]) -> None:
    """Writes profiles in bulk, over those of the same members."""
    await table.write_many(PROFILE.put(profile) for profile in profiles)


async def update_profile(table: Table, changed: Profile, names: Iterable[str], once: Once) -> None:
    """The named attributes of a profile that is there already."""
    values: dict[str, Any] = {name: getattr(changed, name) for name in names}
    try:
        await once.transact(table, changed, PROFILE.change(PROFILE.place_of(changed), values=values, when=present()))
    except ConditionFailed:
        raise NotFound from None
