"""The records of the journal: occurrences, webhooks, and what is to be delivered to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from datastore.changes.kinds import Ground
from datastore.dynamo.entity import Entity, Partition
from datastore.dynamo.keys import HIGHEST, Key
from datastore.values.ids import creation_time
from datastore.values.shards import shard_of

SHARDS = 16
"""Of the journal. A thousand occurrences a second are 125 units a second and key."""

ACTOR_SHARDS = 4
"""Of one actor's occurrences, since a machine may write a thousand a second by itself."""

DELIVERY_SHARDS = 8
"""Of one webhook's deliveries. A thousand a second are about 400 units a second and key: each is written in its
transaction, and deleted."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """What was done, by whom, to which object; never the content of the object.

    `actor` and `object` name nodes as "User:ada" or "Comment:42#01J…". `about` is the member whose id is part of the
    object's key, if the object is a member's own, or to whom something was done there, as by a league's captain. Both
    it and `actor` are indexed, so that an erased member is found.
    """

    ulid: str
    kind: str
    actor: str | None = None
    object: str | None = None
    about: str | None = None
    ground: Ground | None = None
    note: str | None = None
    expires: datetime | None = None

    @property
    def node_key(self) -> str:
        return self.ulid

    @property
    def at(self) -> datetime:
        return creation_time(self.ulid)

    @property
    def shard(self) -> int:
        return shard_of(self.ulid, SHARDS)

    @property
    def actor_shard(self) -> int:
        return shard_of(self.ulid, ACTOR_SHARDS)

    @property
    def object_key(self) -> str | None:
        return None if self.object is None else object_key(self.object)


def object_key(name: str) -> str:
    """An object's name in a key."""
    return name.replace("#", "/")


OCCURRENCE = Entity(
    Occurrence,
    Key("JOURNAL#{shard:02d}", "{ulid}"),
    gsi1=Key("ACTOR#{actor}#{actor_shard}", "{ulid}", when="actor"),
    gsi2=Key("OBJECT#{object_key}", "{ulid}", when="object"),
    gsi3=Key("ABOUT#{about}", "{ulid}", when="about"),
    ttl="expires",
)


@dataclass(frozen=True, slots=True)
class OldSecret:
    """A secret that signs until its end, beside a newer one."""

    secret: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that is told of occurrences of some kinds. No kinds: of all but those that have to be named.

    Whoever holds its lease sends to it.
    """

    id: str
    url: str
    kinds: tuple[str, ...]
    created_at: datetime
    secret: str
    active: bool = True
    replaced_secrets: tuple[OldSecret, ...] = ()
    """Newest first."""
    holder: str | None = None
    term: int = 0
    beat: int = 0

    @property
    def node_key(self) -> str:
        return self.id

    def secrets(self, now: datetime) -> list[str]:
        """The secrets that sign now, newest first."""
        return [self.secret, *(old.secret for old in self.old_secrets(now))]

    def old_secrets(self, now: datetime) -> tuple[OldSecret, ...]:
        """The replaced secrets that still sign, newest first."""
        return tuple(old for old in self.replaced_secrets if old.until > now)


WEBHOOK = Entity(Webhook, Key("WEBHOOKS", "WEBHOOK#{id}"))
WEBHOOKS: Partition[Webhook] = Partition(
    WEBHOOK, None, WEBHOOK.key.partition.text, low="WEBHOOK#", high=f"WEBHOOK#{HIGHEST}"
)
"""All webhooks."""


@dataclass(frozen=True, slots=True)
class WebhookAdditions:
    """How many webhooks were ever added. While it stays the same, there cannot be more than were read meanwhile."""

    number: int = 0


WEBHOOK_ADDITIONS = Entity(WebhookAdditions, Key("WEBHOOKADDITIONS", "WEBHOOKADDITIONS"))


class DeliveryState(StrEnum):
    """Whether an occurrence has reached a webhook."""

    WAITING = "WAITING"
    DELIVERED = "DELIVERED"
    DEAD = "DEAD"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One occurrence on its way to one webhook.

    It holds the occurrence itself until it is delivered, so that nothing is lost with the journal off.
    """

    webhook: str
    state: DeliveryState
    ulid: str
    kind: str
    content: Occurrence | None = None
    attempts: int = 0
    last_status: int | None = None
    last_error: str | None = None
    next_at: datetime | None = None
    since: datetime | None = None
    """When it was queued again: the day after which it is given up begins then."""
    expires: datetime | None = None

    @property
    def node_key(self) -> str:
        return f"{self.webhook}:{self.ulid}"

    @property
    def shard(self) -> int:
        return shard_of(self.ulid, DELIVERY_SHARDS)

    @property
    def at(self) -> datetime:
        return creation_time(self.ulid)


DELIVERY = Entity(Delivery, Key("DELIVERIES#{webhook}#{state}#{shard:02d}", "{ulid}"), ttl="expires")


def new_delivery(webhook: str, occurrence: Occurrence) -> Delivery:
    """What is written for a webhook in the transaction of the occurrence itself."""
    return Delivery(webhook, DeliveryState.WAITING, occurrence.ulid, occurrence.kind, content=occurrence)
