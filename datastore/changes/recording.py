"""Recording: the writes that a transaction adds for what it changes.

`Journal.occurrence` returns them, and the part's write function appends them to the transaction that it sends anyway:
the occurrence, and for each webhook that wants its kind a delivery. So nothing is recorded that did not happen, and
nothing happens without its record. With the journal off and no webhook there are none.

Each process knows the webhooks as they were at most `MOST_AGE` ago: a webhook is told of everything that occurs once it
has existed for that long.

An occurrence gets its id after its transaction's object was read and before it is written. So the occurrences of one
object have ids in the order in which they happened, as far as the servers' clocks agree: webhooks are told them as
`sequence`. Changes that only add to a
count, such as joining a league, do not wait for each other: their occurrences may have ids in either order.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from datastore.changes.kinds import ON_DEMAND, Ground, Kind
from datastore.changes.occurrences import (
    DELIVERY,
    OCCURRENCE,
    WEBHOOKS,
    Delivery,
    Occurrence,
    Webhook,
    new_delivery,
)
from datastore.dynamo import SingleFlight, shared_context, within_deadline
from datastore.dynamo.conditions import absent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datastore.dynamo import Table
    from datastore.dynamo.writes import Put, Write

MOST_WEBHOOKS = 10
"""Each one that wants a kind adds an item to the transactions of that kind, which have at most 100."""
MOST_AGE = 10.0
"""Seconds for which a process may not know of a webhook that was added."""
_NEW = absent()
"""The condition of every occurrence: its id is new, so if it exists already, its transaction was carried out."""


class Journal:
    """What one process knows to record: for how many days, and for which webhooks."""

    def __init__(self, days: int, new_id: Callable[[], str]) -> None:
        self._days = timedelta(days=days)
        self._new_id = new_id
        self._webhooks: tuple[Webhook, ...] = ()
        self._known_at = -float("inf")
        self._reads: SingleFlight[None, None] = SingleFlight(shared_context)
        self.on_delivery: Callable[[Delivery], None] = lambda _: None
        """Is told of each delivery that this process is about to write."""

    # ── the webhooks ──

    @property
    def is_current(self) -> bool:
        """Whether every webhook that was added `MOST_AGE` ago is known."""
        return time.monotonic() - self._known_at < MOST_AGE

    async def learn(self, table: Table) -> None:
        """Read the webhooks, once for all who ask at the same time."""
        await within_deadline(self._reads.run(None, lambda: self._read(table)))

    async def _read(self, table: Table) -> None:
        asked_at = time.monotonic()
        self.know([webhook async for webhook in table.iterate(WEBHOOKS, consistent=True)], asked_at)

    def know(self, webhooks: Sequence[Webhook], asked_at: float) -> None:
        """Remember the webhooks as they were read at a time of the monotonic clock."""
        if asked_at >= self._known_at:
            self._webhooks = tuple(webhook for webhook in webhooks if webhook.active)
            self._known_at = asked_at

    async def close(self) -> None:
        await self._reads.close()

    # ── the writes ──

    def occurrence(
        self,
        kind: Kind,
        actor: str | None,
        name: str | None,
        *,
        about: str | None = None,
        ground: Ground | None = None,
        note: str | None = None,
    ) -> tuple[Put, ...]:
        """The writes to append to a transaction that does something to the object of a `name` such as "Event:01J…".

        `about` is the member whose id is part of the name, or to whom something is done. There is one write for the
        journal, and one for each webhook that wants the kind.
        """
        telling = [webhook.id for webhook in self._webhooks if wants(webhook, kind)]
        recorded = self._days and (telling or kind not in ON_DEMAND)
        if not telling and not recorded:
            return ()
        occurred = Occurrence(self._new_id(), kind, actor, name, about, ground, note)
        deliveries = [new_delivery(webhook, occurred) for webhook in telling]
        for delivery in deliveries:
            self.on_delivery(delivery)
        writes = [DELIVERY.put(delivery) for delivery in deliveries]
        if recorded:
            writes.append(OCCURRENCE.put(replace(occurred, expires=occurred.at + self._days), when=_NEW))
        return tuple(writes)


def is_record(write: Write) -> bool:
    """Whether it puts an occurrence into the journal. A delivery is none: it is removed once it is sent."""
    return write.when is _NEW


def wants(webhook: Webhook, kind: str) -> bool:
    return kind in webhook.kinds if webhook.kinds else kind not in ON_DEMAND


def _no_id() -> str:
    raise RuntimeError("a journal that is off needs no ids")


OFF = Journal(0, _no_id)
"""For changes of which nobody needs to know, such as demo data."""
