"""Daily mails: the mark that each member gets one per date.

    claim ── send ── mark sent
      │        └── refused for certain: the claim is given back, the next run tries again
      └── another run has it: left alone until its claim is ten minutes old

A run that is killed between the mail server's yes and the mark leaves a claim behind, and the member gets that mail a
second time, with the same Message-ID. Nothing else can double one. Marks are removed by the table two months later;
by then the date itself says that its letters have gone out, and no run sends them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed, Entity, Key, absent, less, where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datastore.dynamo import Table

CLAIM = timedelta(minutes=10)
KEPT_FOR = timedelta(days=62)
LATEST = timedelta(days=31)
"""How long after its first run a date's letters may still be sent: the marks of all of them are there."""


@dataclass(frozen=True, slots=True)
class Mail:
    """The mail of a member and a date: claimed by a run, and then sent."""

    user: str
    date: date
    run: str
    claimed: datetime
    expires: datetime
    sent: datetime | None = None


MAIL = Entity(Mail, Key("USER#{user}", "MAIL#{date}"), ttl="expires")


@dataclass(frozen=True, slots=True)
class Mailing:
    """A date whose letters a run has begun to send."""

    date: date
    begun: datetime


MAILING = Entity(Mailing, Key("MAILING#{date}", "MAILING"))


async def begin(table: Table, on: date, now: datetime) -> Mailing:
    """The date's mailing: begun now, or when its first run did."""
    new = Mailing(on, now)
    try:
        await table.write(MAILING.put(new, when=absent()))
    except ConditionFailed:
        return await table.get(MAILING.at(date=on), consistent=True) or new
    return new


async def marks(table: Table, users: Sequence[str], on: date) -> Mapping[str, Mail]:
    """The marks there are, by member."""
    found = await table.get_many([MAIL.at(user=user, date=on) for user in users], consistent=True)
    return {mark.user: mark for mark in found if mark is not None}


async def claim(table: Table, wanted: Mail, held_for: timedelta = CLAIM) -> Mail | None:
    """None when the mail is this run's to send; else the mark that stands in the way."""
    lapsed = absent("sent") & less("claimed", wanted.claimed - held_for)
    try:
        await table.write(MAIL.put(wanted, when=absent() | lapsed | (where(run=wanted.run) & absent("sent"))))
    except ConditionFailed as failed:
        item = failed.failures.get(0)
        return MAIL.read(item) if item else wanted
    return None


async def mark_sent(table: Table, mine: Mail, now: datetime) -> bool:
    """Whether the mark is this run's still; another run may have taken a claim that lapsed."""
    try:
        await table.write(MAIL.change(MAIL.place_of(mine), values={"sent": now}, when=where(run=mine.run)))
    except ConditionFailed:
        return False
    return True


async def give_back(table: Table, mine: Mail) -> None:
    """The mail was not sent, for certain: whoever comes next may try at once."""
    try:
        await table.write(MAIL.delete(MAIL.place_of(mine), when=where(run=mine.run) & absent("sent")))
    except ConditionFailed:
        return
