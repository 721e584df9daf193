"""Subscriptions: per member, list and character set.

A member with both character sets is one subscriber of a list. So each change reads the member's other subscription to
the list, and its transaction checks that it is unchanged. The count is spread over 16 items, so that subscribers of a
popular list do not wait for each other.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from datastore.changes.kinds import Kind
from datastore.dynamo import ConditionFailed, optimistic, optimistic_from
from datastore.dynamo.conditions import absent, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.people.profiles import (
    PROFILE,
    SHARDS,
    Profile,
    member_shard,
)
from datastore.refusals import NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table
    from datastore.dynamo.entity import Partition
    from datastore.dynamo.writes import Write


class CharacterSet(Enum):
    """The spelling of words that a member learns."""

    SIMPLIFIED = "SIMPLIFIED"
    TRADITIONAL = "TRADITIONAL"

    @property
    def other(self) -> CharacterSet:
        return CharacterSet.TRADITIONAL if self is CharacterSet.SIMPLIFIED else CharacterSet.SIMPLIFIED


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's subscription to the daily words of a list. An ended one stays, but not in the index.

    The oldest of those that ended are deleted when a member has too many.
    """

    user: str
    list: str
    character_set: CharacterSet
    active: bool
    since: datetime

    @property
    def shard(self) -> int:
        return member_shard(self.user)


SUBSCRIPTION = Entity(
    Subscription,
    Key("USER#{user}", "SUBSCRIPTION#{list}#{character_set}"),
    gsi1=Key("USERS#{shard:02d}", "USER#{user}#SUBSCRIPTION#{list}#{character_set}", when="active"),
)


@dataclass(frozen=True, slots=True)
class SubscriberCount:
    """One shard of the number of a list's subscribers."""

    list: str
    shard: int
    count: int = 0


SUBSCRIBER_COUNT = Entity(SubscriberCount, Key("LIST#{list}", "SUBSCRIBERS#{shard:02d}"))


async def read_subscriber_count(table: Table, list_id: str) -> int:
    answer = await table.query(SUBSCRIBER_COUNT.on(None, list=list_id), limit=SHARDS, consistent=True)
    return sum(part.count for part in answer.records)


async def read_subscriptions(table: Table, user: str) -> list[Subscription]:
    return [record async for record in table.iterate(SUBSCRIPTION.on(None, user=user), consistent=True)]


async def subscribe(table: Table, wanted: Subscription, unit: UnitOfWork) -> Subscription:
    """Start a subscription. One that is already active stays as it is."""

    async def start(both: tuple[Subscription | None, Subscription | None]) -> Subscription:
        current, other = both
        answer = current if current is not None and current.active else wanted
        occurrence = () if answer is current else subscription_occurrence(unit, Kind.SUBSCRIPTION_STARTED, wanted)
        await unit.transact(table, answer, *start_writes(wanted, current, other), *occurrence)
        return answer

    return await optimistic(partial(read_both, table, wanted), start, idempotent=True)


async def delete_ended(table: Table, ended: Sequence[Subscription]) -> None:
    """Delete these subscriptions, which count nowhere, but for those that were started again."""
    for subscription in ended:
        with suppress(ConditionFailed):
            await table.write(SUBSCRIPTION.delete(SUBSCRIPTION.item_key(subscription), when=where(active=False)))


def subscription_occurrence(unit: UnitOfWork, kind: Kind, changed: Subscription) -> tuple[Write, ...]:
    """Of the subscription itself: thousands may subscribe to one list at the same time."""
    name = f"Subscription:{changed.list}.{changed.character_set.value}.{changed.user}"
    return unit.occurred(kind, name, about=changed.user)


def start_writes(wanted: Subscription, current: Subscription | None, other: Subscription | None) -> list[Write]:
    key = SUBSCRIPTION.item_key(wanted)
    if current is not None and current.active:
        return [SUBSCRIPTION.check(key, where(active=True))]
    free = absent() if current is None else where(active=False)
    return [SUBSCRIPTION.put(wanted, when=free), *_count_writes(wanted, other, 1)]


async def import_subscription(table: Table, imported: Subscription) -> None:
    """Store an imported subscription, active or ended, unless the member has already changed it here."""

    async def store(both: tuple[Subscription | None, Subscription | None]) -> None:
        current, other = both
        if current is None and imported.active:
            await table.transact(*start_writes(imported, current, other))
        elif current is None:
            await table.write(SUBSCRIPTION.put(imported, when=absent()))

    assumed: tuple[Subscription | None, Subscription | None] = (None, None)
    await optimistic_from(assumed, partial(read_both, table, imported), store, idempotent=True)


async def read_same_subscriptions(table: Table, wanted: Sequence[Subscription]) -> list[Subscription | None]:
    """The stored subscription of the same member, list and character set for each of these."""
    return await table.get_many([SUBSCRIPTION.item_key(subscription) for subscription in wanted], consistent=True)


async def unsubscribe(
    table: Table, user: str, list_id: str, character_set: CharacterSet, unit: UnitOfWork
) -> Subscription:
    """End a subscription. One that has already ended stays as it is; NotFound if there never was one."""
    wanted = Subscription(user, list_id, character_set, active=False, since=unit.now)

    async def end(both: tuple[Subscription | None, Subscription | None]) -> Subscription:
        current, other = both
        if current is None:
            raise NotFound("There is no subscription to this list in this character set.")
        ended = replace(current, active=False)
        occurrence = subscription_occurrence(unit, Kind.SUBSCRIPTION_ENDED, ended) if current.active else ()
        await unit.transact(table, ended, *end_writes(current, ended, other), *occurrence)
        return ended

    return await optimistic(partial(read_both, table, wanted), end, idempotent=True)


def end_writes(current: Subscription, ended: Subscription, other: Subscription | None) -> list[Write]:
    if not current.active:
        return [SUBSCRIPTION.check(SUBSCRIPTION.item_key(current), where(active=False))]
    return [
        SUBSCRIPTION.update_with_indexes(ended, "active", when=where(active=True)),
        *_count_writes(ended, other, -1),
    ]


async def read_both(table: Table, wanted: Subscription) -> tuple[Subscription | None, Subscription | None]:
    """This subscription and the one to the other character set."""
    other_key = SUBSCRIPTION.item_key(replace(wanted, character_set=wanted.character_set.other))
    current, other = await table.get_many([SUBSCRIPTION.item_key(wanted), other_key], consistent=True)
    return current, other


def _count_writes(changed: Subscription, other: Subscription | None, by: int) -> list[Write]:
    """Count one subscriber more or less, unless the member subscribes to the other character set too."""
    other_key = SUBSCRIPTION.item_key(replace(changed, character_set=changed.character_set.other))
    if other is not None and other.active:
        return [SUBSCRIPTION.check(other_key, where(active=True))]
    unchanged = absent() if other is None else where(active=False)
    count = SUBSCRIBER_COUNT.at(list=changed.list, shard=changed.shard)
    return [SUBSCRIPTION.check(other_key, unchanged), SUBSCRIBER_COUNT.update(count, add={"count": by})]


def is_count_change(write: Write) -> bool:
    return write.operation == "Update" and write.fields is SUBSCRIBER_COUNT.fields


# ── the subscribers of all lists ──


@dataclass(slots=True)
class Subscriber:
    """A member with active subscriptions, as the index shows them: it may be seconds behind."""

    user: str
    subscriptions: list[Subscription]
    index_shard: int
    """The shard of the index that lists the member."""
    profile: Profile | None = None

    @property
    def shard(self) -> int:
        return member_shard(self.user)


async def all_subscribers(table: Table, *, at_once: int = 500) -> AsyncIterator[Subscriber]:
    """Every member with an active subscription, once each, in constant memory.

    Entries in flight: a subscription of the last seconds may be missing, and one that has just ended may be there.
    """
    for shard in range(SHARDS):
        current: Subscriber | None = None
        profiles: list[Profile] = []
        partition: Partition[Any] = PROFILE.on("gsi1", shard=shard)
        async for record in table.iterate(partition, PROFILE, SUBSCRIPTION, at_once=at_once):
            # The entries of `ada!` stand between the profile and the subscriptions of `ada`.
            while profiles and not record.user.startswith(profiles[-1].user):
                profiles.pop()
            if isinstance(record, Profile):
                profiles.append(record)
                continue
            if current is None or current.user != record.user:
                if current is not None:
                    yield current
                own = next((profile for profile in profiles if profile.user == record.user), None)
                current = Subscriber(record.user, [], shard, own)
            current.subscriptions.append(record)
        if current is not None:
            yield current
