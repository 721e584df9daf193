"""Subscriptions: per member, list and character set.

A member with both character sets is one subscriber of a list. So each change reads the member's other subscription to
the list, and its transaction checks that it is unchanged. The count is spread over 16 items, so that subscribers of a
popular list do not wait for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import Enum
from functools import partial
from secrets import token_hex

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Stale, Table, optimistic, optimistic_from
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Write, absent, present, where
from datastore.people.confirmations import SentEmails, read_confirmation, use_confirmation
from datastore.people.profiles import NO_EMAIL, PROFILE, SHARDS, OfMember, Profile, read_profile
from datastore.refusals import Conflict, NotFound

# ── subscriptions ──


class CharacterSet(Enum):
    """The spelling of words that a member learns."""

    SIMPLIFIED = "SIMPLIFIED"
    TRADITIONAL = "TRADITIONAL"

    @property
    def other(self) -> CharacterSet:
        return CharacterSet.TRADITIONAL if self is CharacterSet.SIMPLIFIED else CharacterSet.SIMPLIFIED


@dataclass(frozen=True, slots=True)
class Subscription(OfMember):
    """A member's subscription to the daily words of a list. An ended one stays, but not in the index.

    The oldest of those that ended are deleted when a member has too many.
    """

    user: str
    list: str
    character_set: CharacterSet
    active: bool
    since: datetime


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
    answer = await table.query(SUBSCRIBER_COUNT.on(list=list_id), limit=SHARDS, consistent=True)
    return sum(part.count for part in answer.records)


async def read_subscriptions(table: Table, user: str) -> list[Subscription]:
    return [record async for record in table.iterate(SUBSCRIPTION.on(user=user), consistent=True)]


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
    """Delete these subscriptions, which count nowhere, except those that were started again."""
    for subscription in ended:
        await table.try_write(SUBSCRIPTION.delete(SUBSCRIPTION.item_key(subscription), when=where(active=False)))


def subscription_occurrence(unit: UnitOfWork, kind: Kind, changed: Subscription) -> tuple[Write, ...]:
    """Of the subscription itself: thousands may subscribe to one list at the same time."""
    name = f"Subscription:{changed.list}.{changed.character_set.value}.{changed.user}"
    return unit.occurred(kind, name)


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
class Subscriber(OfMember):
    """A member with active subscriptions, as the index shows them: it may be seconds behind."""

    user: str
    subscriptions: list[Subscription]
    index_shard: int
    """The shard of the index that lists the member."""
    profile: Profile | None = None


async def all_subscribers(table: Table) -> AsyncIterator[Subscriber]:
    """Every member with an active subscription, once each, in constant memory.

    The index is behind: a subscription of the last seconds may be missing, and one that has just ended may be there.
    """
    for shard in range(SHARDS):
        current: Subscriber | None = None
        async for record in table.iterate(PROFILE.collection("gsi1", shard=shard), PROFILE, SUBSCRIPTION, at_once=500):
            if current is None or current.user != record.user:
                if current is not None and current.subscriptions:
                    yield current
                current = Subscriber(record.user, [], shard)
            # No member's id begins with another's, so the index has the profile right before the subscriptions.
            if isinstance(record, Profile):
                current.profile = record
            else:
                current.subscriptions.append(record)
        if current is not None and current.subscriptions:
            yield current


# ── address subscriptions ──
# Subscriptions of an email address without an account: they have a record of their own until a member claims them.
#
# The record is a member's profile and subscriptions, under an id made from the address. Nobody signs in as it.
#
# Links in emails name the record. So a claim leaves an item that leads from them to the member's subscriptions.
# It lies with the member's items, and is deleted with them when the member is erased.


@dataclass(frozen=True, slots=True)
class AddressClaim:
    """A member has claimed the subscriptions of an address's record."""

    user: str
    record: str
    claimed_at: datetime


ADDRESS_CLAIM = Entity(
    AddressClaim, Key("USER#{user}", "CLAIMED#{record}"), gsi1=Key("CLAIMED#{record}", "USER#{user}")
)


@dataclass(frozen=True, slots=True)
class Claimed:
    """The answer to a claim: the member's subscriptions that the addresses had."""

    subscriptions: tuple[Subscription, ...]


async def note_claim(table: Table, claim: AddressClaim) -> None:
    await table.write(ADDRESS_CLAIM.put(claim))


async def read_claims(table: Table, record: str) -> list[AddressClaim]:
    """Who claimed a record's subscriptions: several, if the address subscribed again after a claim."""
    return [claim async for claim in table.iterate(ADDRESS_CLAIM.on("gsi1", record=record))]


class ConfirmationUsed(Conflict):
    explanation = "This link was already used."


async def confirm_subscription(
    table: Table, owner: Profile, wanted: Subscription, used_up: tuple[str, str, date], unit: UnitOfWork
) -> None:
    """Start the subscription of an address and use its link up, all or nothing; ConfirmationUsed if it was used.

    `owner` is the address's record, which is created if it does not exist. `used_up` names the email: purpose, keyed
    hash of the address, date.
    """
    attempt = token_hex(16)

    async def read() -> tuple[Profile | None, Subscription | None, Subscription | None]:
        return await read_profile(table, owner.user), *await read_both(table, wanted)

    async def confirm(found: tuple[Profile | None, Subscription | None, Subscription | None]) -> None:
        stored, current, other = found
        started = current is None or not current.active
        occurrence = subscription_occurrence(unit, Kind.SUBSCRIPTION_STARTED, wanted) if started else ()
        writes = [use_confirmation(*used_up, unit.now, attempt), _owner_write(owner, stored)]
        try:
            await unit.apply(table, *writes, *start_writes(wanted, current, other), *occurrence)
        except ConditionFailed:
            confirmation = await read_confirmation(table, *used_up)
            if confirmation is not None and confirmation.used_by == attempt:
                return  # an attempt without an answer had been carried out
            if confirmation is None or confirmation.used is not None:
                raise ConfirmationUsed from None
            raise Stale from None

    await optimistic(read, confirm)


def _owner_write(owner: Profile, stored: Profile | None) -> Write:
    if stored is None:
        return PROFILE.put(owner, when=absent())
    values = {name: getattr(owner, name) for name in NO_EMAIL}
    return PROFILE.update(PROFILE.item_key(owner), values=values, when=present())


async def move_subscription(table: Table, old: Subscription, new: Subscription, unit: UnitOfWork) -> None:
    """End the record's subscription and start the member's, both or neither; one of theirs stays as it is."""

    async def move(found: tuple[Subscription | None, Subscription | None]) -> None:
        old_current, old_other = found
        if old_current is None or not old_current.active:
            return
        new_current, new_other = await read_both(table, new)
        occurrences = [*subscription_occurrence(unit, Kind.SUBSCRIPTION_ENDED, old)]
        if new_current is None or not new_current.active:
            occurrences += subscription_occurrence(unit, Kind.SUBSCRIPTION_STARTED, new)
        ends, starts = end_writes(old_current, old, old_other), start_writes(new, new_current, new_other)
        if old.shard == new.shard and is_count_change(ends[-1]) and is_count_change(starts[-1]):
            # A transaction changes an item only once, and the count stays as it is.
            del ends[-1], starts[-1]
        await unit.apply(table, *ends, *starts, *occurrences)

    await optimistic(partial(read_both, table, old), move, idempotent=True)


async def drop_address(table: Table, record: str, address: str) -> None:
    """A record whose subscriptions were claimed receives nothing more."""
    await table.try_write(PROFILE.update(PROFILE.at(user=record), values=NO_EMAIL, when=where(email=address)))


# ── mail ──
# Daily emails: a record for each member and date, so that nobody gets a second one.
#
# `datastore/people/confirmations.py` says what makes sure of that. The table removes the records after two months; by
# then the date's own record says that its emails were sent, and no run sends them again.
#
# A run that sends emails also notes to whom, a hundred members in one item. So later runs read a date's notes in place
# of one record for each member. A member whom no note names costs that record, and nothing else.

RECORD_LIFETIME = timedelta(days=62)
NOTE_LIFETIME = timedelta(days=3)
"""By then every member has a later date due."""
LATEST = timedelta(days=31)
"""How long after the first run a date's emails may still be sent: no record of them expires before that."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A member's email of a date, which a run has begun to send, and then sent."""

    user: str
    date: date
    expires: datetime
    sent: datetime | None = None


MAIL = Entity(Mail, Key("USER#{user}", "MAIL#{date}"), ttl="expires")
DAILY_EMAILS = SentEmails(MAIL)


@dataclass(frozen=True, slots=True)
class DailyMailing:
    """A date whose emails some run has begun to send."""

    date: date
    begun: datetime


DAILY_MAILING = Entity(DailyMailing, Key("MAILING#{date}", "MAILING"))


async def begin_mailing(table: Table, on: date, now: datetime) -> DailyMailing:
    """The date's mailing, begun by this run or by an earlier one."""
    return await table.put_once(DAILY_MAILING, DailyMailing(on, now))


@dataclass(frozen=True, slots=True)
class SentNote:
    """Members of one shard whose email of a date was sent: their keyed hashes, one after another."""

    date: date
    shard: int
    id: str
    members: bytes
    expires: datetime


SENT_NOTE = Entity(SentNote, Key("MAILING#{date}", "SENT#{shard:02d}#{id}"), ttl="expires")


async def note_sent(table: Table, note: SentNote) -> None:
    await table.write(SENT_NOTE.put(note))


async def read_sent_notes(table: Table, on: date, shard: int) -> list[SentNote]:
    """The notes of a date and shard. A late one only means that a run looks at its members' records."""
    return [note async for note in table.iterate(SENT_NOTE.on(date=on, shard=shard), at_once=1000)]


async def read_sent_mails(table: Table, wanted: Sequence[tuple[str, date]]) -> Mapping[tuple[str, date], Mail]:
    """Those of these emails, each of a member and a date, that were sent."""
    mails = await table.find_many([MAIL.at(user=user, date=on) for user, on in wanted], consistent=True)
    return {(mail.user, mail.date): mail for mail in mails if mail.sent is not None}


async def copy_mails(table: Table, record: str, member: str, dates: Sequence[date]) -> None:
    """Let the emails that an address's record got on these dates count as the member's too. Safe to repeat."""
    for mail in (await read_sent_mails(table, [(record, on) for on in dates])).values():
        # The member may have got one of their own.
        await table.try_write(MAIL.put(replace(mail, user=member), when=absent("sent")))


@dataclass(frozen=True, slots=True)
class Addressee:
    """What decides about a member's email."""

    profile: Profile | None
    subscriptions: tuple[Subscription, ...]
    """The active ones."""


async def read_addressee(table: Table, user: str) -> Addressee:
    """The table's own state, read consistently: an index may show what ended seconds ago."""
    profile, subscriptions = await asyncio.gather(read_profile(table, user), read_subscriptions(table, user))
    return Addressee(profile, tuple(each for each in subscriptions if each.active))
