"""Emails of runs, by which each is sent once: a record for each email, of any kind.

    record ── send ── mark as sent
      └── not sent, or the process was killed: the next run tries again

Only the process that holds the lease of the emails sends any (`datastore.jobs.leases`). So a record that is not marked
as sent is of an attempt that has ended.

A member may get an email a second time, with the same Message-ID, if the process was killed or lost the table after the
mail server accepted it and before it was marked, or never heard whether the server has it. Nothing else sends one twice
while the processes run: each looks at its lease right before it hands an email over, and stops in the middle if it can
no longer renew it. That leaves one that the machine halts in this very moment, for longer than the lease lasts, and
that is then resumed: its email may go out beside that of the process that has taken over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, present

if TYPE_CHECKING:
    from datetime import datetime

    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table
    from datastore.dynamo.entity import Entity


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

    async def begin(self, table: Table, record: E, unit: UnitOfWork) -> bool:
        """Whether the email is to be sent, for it was not sent before. MemberErased if the member was erased."""
        try:
            await unit.apply(table, self.entity.put(record, when=absent("sent")), *unit.not_erased(record.user))
        except ConditionFailed:
            return False
        return True

    async def mark_sent(self, table: Table, record: E, now: datetime) -> None:
        key = self.entity.item_key(record)
        try:
            await table.write(self.entity.update(key, values={"sent": now}, when=present()))
        except ConditionFailed:  # the member was erased meanwhile
            return
