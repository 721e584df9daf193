"""Daily emails: a record for each member and date, so that nobody gets a second one.

    claim ── send ── mark as sent
      │        └── certainly not sent: the claim is released, and the next run tries again
      └── claimed by another run: skipped until that claim is ten minutes old

A run that is killed after the mail server accepted an email, but before it is marked as sent, leaves its claim; the
member then gets that email a second time, with the same Message-ID. Nothing else can send one twice. The table removes
the records after two months; by then the date's own record says that its emails were sent, and no run sends them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, less, where
from datastore.dynamo.entity import Entity, Partition
from datastore.dynamo.keys import HIGHEST, Key
from datastore.people import PROFILE, Profile
from datastore.vocabulary.subscriptions import SUBSCRIPTION, Subscription

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datastore.dynamo import Table
    from datastore.receipts import Once

CLAIM_LIFETIME = timedelta(minutes=10)
RECORD_LIFETIME = timedelta(days=62)
LATEST = timedelta(days=31)
"""How long after the first run a date's emails may still be sent: no record of them expires before that."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A member's email of a date: claimed by a run, and then sent."""

    user: str
    date: date
    run: str
    claimed: datetime
    expires: datetime
    sent: datetime | None = None


MAIL = Entity(Mail, Key("USER#{user}", "MAIL#{date}"), ttl="expires")


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


async def read_mails(table: Table, users: Sequence[str], on: date) -> Mapping[str, Mail]:
    """The emails of that date that are claimed or sent, by member."""
    mails = await table.get_many([MAIL.at(user=user, date=on) for user in users], consistent=True)
    return {mail.user: mail for mail in mails if mail is not None}


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


async def claim_mail(table: Table, wanted: Mail, once: Once, claim_lifetime: timedelta = CLAIM_LIFETIME) -> Mail | None:
    """Claim a member's email. None if this run must send it, else the record of the run that claimed or sent it."""
    lapsed = absent("sent") & less("claimed", wanted.claimed - claim_lifetime)
    try:
        free = absent() | lapsed | (where(run=wanted.run) & absent("sent"))
        await once.apply(table, MAIL.put(wanted, when=free), *once.not_erased(wanted.user))
    except ConditionFailed as failed:
        item = failed.failures.get(0)
        return MAIL.read(item) if item else wanted
    return None


async def mark_sent(table: Table, mine: Mail, now: datetime) -> bool:
    """Mark an email as sent. False if the claim lapsed and another run has taken it."""
    try:
        await table.write(MAIL.change(MAIL.item_key(mine), values={"sent": now}, when=where(run=mine.run)))
    except ConditionFailed:
        return False
    return True


async def release_claim(table: Table, mine: Mail) -> None:
    """Release the claim of an email that was certainly not sent, so that another run may try at once."""
    try:
        await table.write(MAIL.delete(MAIL.item_key(mine), when=where(run=mine.run) & absent("sent")))
    except ConditionFailed:
        return
