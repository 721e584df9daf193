"""Subscriptions: per member, list and character set.

A list's subscribers are members, not subscriptions: who takes both character sets counts once. So each change looks at
the member's other subscription to the list, and holds it still within the transaction. The count is spread over 16
items, since one item would make a popular list's subscribers wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.people import PROFILE, SHARDS, Profile, shard_of
from datastore.refusals import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from datastore.dynamo import Table
    from datastore.dynamo.entity import Partition
    from datastore.dynamo.writes import Write
    from datastore.receipts import Once

_ATTEMPTS = 20


class CharacterSet(Enum):
    """Which of a word's two spellings somebody learns."""

    SIMPLIFIED = "SIMPLIFIED"
    TRADITIONAL = "TRADITIONAL"

    @property
    def other(self) -> CharacterSet:
        return CharacterSet.TRADITIONAL if self is CharacterSet.SIMPLIFIED else CharacterSet.SIMPLIFIED


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's wish to get a list's words by mail. One that ended stays, outside of the index of active ones."""

    user: str
    list: str
    character_set: CharacterSet
    active: bool
    since: datetime

    @property
    def shard(self) -> int:
        return shard_of(self.user)


SUBSCRIPTION = Entity(
    Subscription,
    Key("USER#{user}", "SUBSCRIPTION#{list}#{character_set}"),
    gsi1=Key("USERS#{shard:02d}", "USER#{user}#SUBSCRIPTION#{list}#{character_set}", when="active"),
)


@dataclass(frozen=True, slots=True)
class Subscribers:
    """A sixteenth of a list's subscribers."""

    list: str
    shard: int
    count: int = 0


SUBSCRIBERS = Entity(Subscribers, Key("LIST#{list}", "SUBSCRIBERS#{shard:02d}"))


async def subscriber_count(table: Table, list_id: str) -> int:
    found = await table.query(SUBSCRIBERS.on(None, list=list_id), limit=SHARDS, consistent=True)
    return sum(part.count for part in found.records)


async def subscriptions(table: Table, user: str) -> list[Subscription]:
    return [one async for one in table.iterate(SUBSCRIPTION.on(None, user=user), consistent=True)]


async def subscribe(table: Table, wanted: Subscription, once: Once) -> Subscription:
    """The active subscription; what is active already stays as it is."""
    for _ in range(_ATTEMPTS):
        here, there = await _pair(table, wanted)
        answer = here if here is not None and here.active else wanted
        try:
            await once.transact(table, answer, *_beginning(wanted, here, there))
        except ConditionFailed:
            continue
        return answer
    raise Conflict(retry_after=1.0)


def _beginning(
    wanted: Subscription, here: Subscription | None, there: Subscription | None, *, new: bool = False
) -> list[Write]:
    key = SUBSCRIPTION.place_of(wanted)
    if here is not None and here.active:
        return [SUBSCRIPTION.check(key, where(active=True))]
    free = absent() if new else absent() | where(active=False)
    return [SUBSCRIPTION.put(wanted, when=free), *_counted(wanted, there, 1)]


async def import_subscription(table: Table, moved: Subscription, once: Once) -> None:
    """Stores a subscription from elsewhere, active or ended, unless the member has decided otherwise here before."""
    if not moved.active:
        try:
            await table.write(SUBSCRIPTION.put(moved, when=absent()))
        except ConditionFailed:
            return
        return
    try:
        await table.transact(*_beginning(moved, None, None, new=True))
    except ConditionFailed:
        here, _ = await _pair(table, moved)
        if here is None:  # it is the member's second character set
            await subscribe(table, moved, once)


async def subscriptions_like(table: Table, wanted: Sequence[Subscription]) -> list[Subscription | None]:
    """The stored subscription of the same member, list and character set for each of these."""
    return await table.get_many([SUBSCRIPTION.place_of(subscription) for subscription in wanted], consistent=True)


async def unsubscribe(table: Table, user: str, list_id: str, character_set: CharacterSet, once: Once) -> Subscription:
    """The subscription, no longer active; one that ended before stays as it is. NotFound if there never was one."""
    asked = Subscription(user, list_id, character_set, active=False, since=once.now)
    for _ in range(_ATTEMPTS):
        here, there = await _pair(table, asked)
        if here is None:
            message = "There is no subscription to this list in this character set."
            raise NotFound(message)
        ended = replace(here, active=False)
        try:
            await once.transact(table, ended, *_ending(here, ended, there))
        except ConditionFailed:
            continue
        return ended
    raise Conflict(retry_after=1.0)


def _ending(here: Subscription, ended: Subscription, there: Subscription | None) -> list[Write]:
    if not here.active:
        return [SUBSCRIPTION.check(SUBSCRIPTION.place_of(here), where(active=False))]
    return [SUBSCRIPTION.shift(ended, "active", when=where(active=True)), *_counted(ended, there, -1)]


async def _pair(table: Table, asked: Subscription) -> tuple[Subscription | None, Subscription | None]:
    """This subscription and the one in the other character set."""
    other = replace(asked, character_set=asked.character_set.other)
    here, there = await table.get_many([SUBSCRIPTION.place_of(asked), SUBSCRIPTION.place_of(other)], consistent=True)
    return here, there


def _counted(changed: Subscription, there: Subscription | None, by: int) -> list[Write]:
    """One subscriber more or less, unless the other character set keeps the member a subscriber."""
    other = SUBSCRIPTION.place_of(replace(changed, character_set=changed.character_set.other))
    if there is not None and there.active:
        return [SUBSCRIPTION.check(other, where(active=True))]
    count = SUBSCRIBERS.at(list=changed.list, shard=changed.shard)
    unchanged = absent() if there is None else where(active=False)
    return [SUBSCRIPTION.check(other, unchanged), SUBSCRIBERS.change(count, add={"count": by})]


# ── everybody who gets a mail ──


@dataclass(slots=True)
class Reader:
    """A member with active subscriptions. `profile` is None when there is none, or it came in another order."""

    user: str
    profile: Profile | None
    subscriptions: list[Subscription]
    listed_in: int
    """The shard of the index that lists the member."""

    @property
    def shard(self) -> int:
        return shard_of(self.user)


async def readers(table: Table, *, by: int = 500) -> AsyncIterator[Reader]:
    """Every member who has an active subscription, once, in flat memory."""
    for shard in range(SHARDS):
        async for reader in _readers_in(table, shard, by):
            yield reader


async def _readers_in(table: Table, shard: int, by: int) -> AsyncIterator[Reader]:
    """A shard of the index.

    A member's active subscriptions lie together, after the profile. Only the profiles of ids that begin alike may lie
    between a profile and its subscriptions, so few are held at any time.
    """
    held: dict[str, Profile] = {}
    current: Reader | None = None
    partition: Partition[Any] = PROFILE.on("gsi1", shard=shard)
    async for record in table.iterate(partition, PROFILE, SUBSCRIPTION, at_once=by):
        if isinstance(record, Subscription):
            if current is None or current.user != record.user:
                if current is not None:
                    yield current
                current = Reader(record.user, held.pop(record.user, None), [], shard)
            current.subscriptions.append(record)
        else:
            held = {user: profile for user, profile in held.items() if record.user.startswith(user)}
            held[record.user] = record
    if current is not None:
        yield current
