"""Claims on emails, by which each is sent once: a record for each email, of any kind.

    claim ── send ── mark as sent
      │        └── certainly not sent: the claim is released, and the next run tries again
      └── claimed by another run: skipped until that claim is ten minutes old

A claim from more than ten minutes ahead counts as old too: it is of a clock that was wrong.

A run that is killed after the mail server accepted an email, but before it is marked as sent, leaves its claim, and so
does one that never heard whether the server has it; the member may then get that email a second time, with the same
Message-ID. Nothing else can send one twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, outside, where

if TYPE_CHECKING:
    from datastore.dynamo import Table
    from datastore.dynamo.entity import Entity
    from datastore.receipts import Once

CLAIM_LIFETIME = timedelta(minutes=10)
"""An email is given up after half of it (server/mail/smtp.py)."""


class Claim(Protocol):
    """An email that a run has claimed, and then sent."""

    @property
    def user(self) -> str: ...
    @property
    def run(self) -> str: ...
    @property
    def claimed(self) -> datetime: ...
    @property
    def sent(self) -> datetime | None: ...


C = TypeVar("C", bound=Claim)


@dataclass(frozen=True, slots=True)
class MailClaims(Generic[C]):
    """The claims on emails of one kind."""

    entity: Entity[C]

    async def claim(self, table: Table, wanted: C, once: Once, claim_lifetime: timedelta = CLAIM_LIFETIME) -> C | None:
        """Claim an email. None if this run must send it, else the record of the run that claimed or sent it."""
        lapsed = absent("sent") & outside("claimed", wanted.claimed - claim_lifetime, wanted.claimed + CLAIM_LIFETIME)
        mine = where(run=wanted.run) & absent("sent")
        try:
            put = self.entity.put(wanted, when=absent() | lapsed | mine)
            await once.apply(table, put, *once.not_erased(wanted.user))
        except ConditionFailed as failed:
            return failed.stored(self.entity) or wanted
        return None

    async def mark_sent(self, table: Table, mine: C, now: datetime) -> bool:
        """Mark an email as sent. False if the claim lapsed and another run has taken it."""
        key = self.entity.item_key(mine)
        try:
            await table.write(self.entity.change(key, values={"sent": now}, when=where(run=mine.run)))
        except ConditionFailed:
            return False
        return True

    async def release(self, table: Table, mine: C) -> None:
        """Release the claim of an email that was certainly not sent, so that another run may try at once."""
        unsent = where(run=mine.run) & absent("sent")
        try:
            await table.write(self.entity.delete(self.entity.item_key(mine), when=unsent))
        except ConditionFailed:
            return
