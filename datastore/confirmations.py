"""Emails that ask for a confirmation: a few for each purpose, address and day.

| wanted                     | read or write                                                           | requests |
|----------------------------|-------------------------------------------------------------------------|----------|
| the right to send the day's| Put CONFIRMATION#<purpose>#<address> DAY#<date>#<slot>, if free         | 1 a slot |
| sent; not sent             | Update; Delete                                                          | 1        |
| used                       | with what is confirmed, in its transaction                              | 0 more   |

    claim ── send ── mark as sent
      │        └── certainly not sent: the claim is released, and the address may be asked for again at once
      └── claimed by a process that was killed: it counts as abandoned after ten minutes

A slot is free while it is absent or its claim is abandoned. Visitors share one slot. Each member takes one of their
own, the first that is free, so nobody's request keeps another member from confirming an address that is theirs, and an
address gets no more emails a day than there are slots.

The address is stored here as a keyed hash, and what is to be confirmed is only in the link: nobody else's address, list
or request is stored before it is confirmed. So if a process is killed, no other one can send its email. Instead, the
request that asked for it gets no answer or a refusal, and asking again sends it. If the mail server had accepted the
email before the process was killed, it then comes a second time, with the same Message-ID.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, outside, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key

if TYPE_CHECKING:
    from datastore.dynamo import Table
    from datastore.dynamo.writes import Delete, Update
    from datastore.receipts import Once

CLAIM_LIFETIME = timedelta(minutes=10)
"""A process that lives has sent its email, or given up, before that."""

MOST_ASKERS = 5
"""Members whom one address may get an email for on one day."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A day's email to an address: claimed by a request, then sent; its link may then be used once."""

    purpose: str
    address: str
    """Its keyed hash."""
    date: date
    asker: str
    """The keyed hash of the member who asked; empty if anyone may."""
    attempt: str
    claimed: datetime
    expires: datetime
    sent: datetime | None = None
    used: datetime | None = None
    slot: int = 0
    used_by: str | None = None
    """The attempt that used it: two of them may be carried out within one millisecond."""


CONFIRMATION = Entity(Confirmation, Key("CONFIRMATION#{purpose}#{address}", "DAY#{date}#{slot}"), ttl="expires")


async def claim_confirmation(table: Table, wanted: Confirmation, once: Once) -> Confirmation:
    """Claim the email: what was claimed, if this request must send it, else what an earlier one has stored.

    MemberErased if `once` is a member's who is erased: nothing is sent then.
    """
    abandoned = absent("sent") & outside("claimed", wanted.claimed - CLAIM_LIFETIME, wanted.claimed + CLAIM_LIFETIME)
    own = where(attempt=wanted.attempt) & absent("sent")
    stored = wanted
    for slot in range(MOST_ASKERS if wanted.asker else 1):
        claim = replace(wanted, slot=slot)
        try:
            await once.apply(table, CONFIRMATION.put(claim, when=absent() | abandoned | own))
        except ConditionFailed as failed:
            stored = failed.stored(CONFIRMATION) or claim
        else:
            return claim
        if stored.asker == wanted.asker:
            break
    return stored


async def mark_confirmation_sent(table: Table, mine: Confirmation, now: datetime) -> None:
    """The email was sent, or may have been: it is not sent again on this day."""
    key = CONFIRMATION.item_key(mine)
    await _unless_lost(table, CONFIRMATION.change(key, values={"sent": now}, when=where(attempt=mine.attempt)))


async def release_confirmation(table: Table, mine: Confirmation) -> None:
    """The email was certainly not sent: the next request sends it."""
    unsent = where(attempt=mine.attempt) & absent("sent")
    await _unless_lost(table, CONFIRMATION.delete(CONFIRMATION.item_key(mine), when=unsent))


async def _unless_lost(table: Table, write: Update | Delete) -> None:
    try:
        await table.write(write)
    except ConditionFailed:  # another request has taken the abandoned claim
        return


async def read_confirmation(table: Table, purpose: str, address: str, on: date) -> Confirmation | None:
    key = CONFIRMATION.at(purpose=purpose, address=address, date=on, slot=0)
    return await table.get(key, consistent=True)


def use_confirmation(purpose: str, address: str, on: date, now: datetime, attempt: str) -> Update:
    """The write that uses a link up: it fails for one that was used, and for one whose email has expired."""
    key = CONFIRMATION.at(purpose=purpose, address=address, date=on, slot=0)
    return CONFIRMATION.change(key, values={"used": now, "used_by": attempt}, when=present() & absent("used"))
