"""Emails, each of which is sent once: those that ask for a confirmation, and those of runs.

| wanted                      | read or write                                                           | requests |
|-----------------------------|-------------------------------------------------------------------------|----------|
| the slot of a member        | BatchGetItem CONFIRMATION#<purpose>#<address> DAY#<date>#<slot>, all    | 1        |
| the right to send the day's | Put CONFIRMATION#<purpose>#<address> DAY#<date>#<slot>; acquire it      | 2 a slot |
| sent; not sent              | Update; Delete                                                          | 1        |
| used                        | with what is confirmed, in its transaction                              | 0 more   |

**Emails that ask for a confirmation**: a few for each purpose, address and day.

    acquire ── send ── mark as sent
      │          └── certainly not sent: the record is deleted, and the address may be asked for again at once
      └── the process was killed: its lease lapses (`datastore.jobs.leases`)

A slot is free while it is absent, or nobody holds its lease and no email was sent. Visitors share one slot. Each member
takes one of their own, the first that is free if they have none, so nobody's request keeps another member from
confirming an address that is theirs, and an address gets no more emails a day than there are slots.

The address is stored here as a keyed hash, and what is to be confirmed is only in the link: nobody else's address, list
or request is stored before it is confirmed. So if a process is killed, no other one can send its email. Instead, the
request that asked for it gets no answer or a refusal, and asking again sends it, once the process that is asked has
seen the record unchanged for as long as a lease lasts. If the mail server had accepted the email before the process was
killed, it then comes a second time, with the same Message-ID.

**Emails of runs**: a record for each email, of any kind.

    record ── send ── mark as sent
      └── not sent, or the process was killed: the next run tries again

Only the process that holds the lease of the emails sends any. So a record that is not marked as sent is of an attempt
that has ended. A member may get an email a second time, with the same Message-ID, if the process was killed or lost the
table after the mail server accepted it and before it was marked, or never heard whether the server has it. While the
processes run, nothing else sends one twice: each checks its lease right before it hands an email over, and stops within
three seconds if it can no longer renew it, before another process begins. So does one that is told to stop: it waits so
long for what it is sending. One case is left: a process that is halted at exactly this moment, for longer than the
lease lasts, and then resumed, sends its email although another process has taken over.
"""

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Generic, Protocol, TypeVar

from datastore.dynamo import Table
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Update, absent, present, where
from datastore.jobs.leases import Held, Leases, leased

# ── confirmations ──

MOST_ASKERS = 5
"""Members whom one address may get an email for on one day."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A day's email to an address: sent for a request; its link may then be used once."""

    purpose: str
    address: str
    """Its keyed hash."""
    date: date
    asker: str
    """The keyed hash of the member who asked; empty if anyone may."""
    expires: datetime
    sent: datetime | None = None
    used: datetime | None = None
    slot: int = 0
    used_by: str | None = None
    """The attempt that used it, since two may run within one millisecond."""
    holder: str | None = None
    term: int = 0
    beat: int = 0


CONFIRMATION = leased(Entity(Confirmation, Key("CONFIRMATION#{purpose}#{address}", "DAY#{date}#{slot}"), ttl="expires"))


async def acquire_confirmation(table: Table, leases: Leases, wanted: Confirmation) -> Held[Confirmation] | Confirmation:
    """The lease of the email, if this request must send it, else what an earlier one has stored."""
    stored, places = wanted, [replace(wanted, slot=slot) for slot in range(MOST_ASKERS if wanted.asker else 1)]
    if wanted.asker:
        begun = await table.find_many([CONFIRMATION.item_key(place) for place in places], consistent=True)
        places = [places[each.slot] for each in begun if each.asker == wanted.asker] or places
    for place in places:
        stored = await table.put_once(CONFIRMATION, place)
        if stored.sent is None and leases.is_free(stored):
            lease = await leases.acquire(stored)
            if lease is not None:
                lease.note(asker=wanted.asker)
                return lease
        if stored.asker == wanted.asker:
            break
    return stored


async def delete_confirmation(table: Table, lease: Held[Confirmation]) -> None:
    """The email was certainly not sent: the next request sends it."""
    mine = where(term=lease.record.term) & absent("sent")
    # It stays if another request has acquired it.
    await table.try_write(CONFIRMATION.delete(CONFIRMATION.item_key(lease.record), when=mine))


async def read_confirmation(table: Table, purpose: str, address: str, on: date) -> Confirmation | None:
    key = CONFIRMATION.at(purpose=purpose, address=address, date=on, slot=0)
    return await table.get(key, consistent=True)


def use_confirmation(purpose: str, address: str, on: date, now: datetime, attempt: str) -> Update:
    """The write that uses a link up: it fails for one that was used, and for one whose email has expired."""
    key = CONFIRMATION.at(purpose=purpose, address=address, date=on, slot=0)
    return CONFIRMATION.update(key, values={"used": now, "used_by": attempt}, when=present() & absent("used"))


# ── sent emails ──


class SentEmail(Protocol):
    """The record of an email that a run has begun to send, and then sent."""

    @property
    def user(self) -> str: ...
    @property
    def sent(self) -> datetime | None: ...


E = TypeVar("E", bound=SentEmail)


@dataclass(frozen=True, slots=True)
class SentEmails(Generic[E]):
    """The records of one kind of email."""

    entity: Entity[E]

    async def begin(self, table: Table, record: E) -> bool:
        """Whether the email is to be sent, because it was not sent before."""
        return await table.try_write(self.entity.put(record, when=absent("sent")))

    async def mark_sent(self, table: Table, record: E, now: datetime) -> None:
        key = self.entity.item_key(record)
        # It is gone if the member was erased meanwhile.
        await table.try_write(self.entity.update(key, values={"sent": now}, when=present()))
