"""Daily emails: a record for each member and date, so that nobody gets a second one.

`datastore/people/sent_emails.py` says what makes sure of that. The table removes the records after two months; by then
the date's own record says that its emails were sent, and no run sends them again.

A run that sends emails also notes to whom, a hundred members in one item. So later runs read a date's notes in place of
one record for each member. A member whom no note names costs that record, and nothing else.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent
from datastore.dynamo.entity import Entity, Partition
from datastore.dynamo.keys import HIGHEST, Key
from datastore.people.profiles import PROFILE, Profile
from datastore.people.sent_emails import SentEmails
from datastore.vocabulary.subscriptions import SUBSCRIPTION, Subscription

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table

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
    new = DailyMailing(on, now)
    try:
        await table.write(DAILY_MAILING.put(new, when=absent()))
    except ConditionFailed:
        return await table.get(DAILY_MAILING.at(date=on), consistent=True) or new
    return new


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
    return [note async for note in table.iterate(SENT_NOTE.on(None, date=on, shard=shard), at_once=1000)]


async def read_sent_mails(table: Table, wanted: Sequence[tuple[str, date]]) -> Mapping[tuple[str, date], Mail]:
    """Those of these emails, each of a member and a date, that were sent."""
    mails = await table.get_many([MAIL.at(user=user, date=on) for user, on in wanted], consistent=True)
    return {(mail.user, mail.date): mail for mail in mails if mail is not None and mail.sent is not None}


async def copy_mails(table: Table, record: str, member: str, dates: Sequence[date], unit: UnitOfWork) -> None:
    """Let the emails that an address's record got on these dates count as the member's too. Safe to repeat."""
    for mail in (await read_sent_mails(table, [(record, on) for on in dates])).values():
        with suppress(ConditionFailed):  # the member got one of their own
            await unit.apply(table, MAIL.put(replace(mail, user=member), when=absent("sent")))


@dataclass(frozen=True, slots=True)
class Addressee:
    """What decides about a member's email."""

    profile: Profile | None
    subscriptions: tuple[Subscription, ...]
    """The active ones."""


async def read_addressee(table: Table, user: str) -> Addressee:
    """The table's own state, read consistently in one query: an index may show what ended seconds ago.

    It reads the member's items from the profile to the last subscription; standings lie in between.
    """
    key = PROFILE.at(user=user)
    collection: Partition[Any] = Partition(PROFILE, None, key.pk, low=key.sk, high=f"SUBSCRIPTION#{HIGHEST}")
    found = table.iterate(collection, PROFILE, SUBSCRIPTION, consistent=True, at_once=1000)
    records = [record async for record in found]
    return Addressee(
        profile=next((record for record in records if isinstance(record, Profile)), None),
        subscriptions=tuple(record for record in records if isinstance(record, Subscription) and record.active),
    )
