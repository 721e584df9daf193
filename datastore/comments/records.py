"""The records of comments: comments themselves, what members reported about them, and late arrivals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from datastore.dynamo.attributes import item_size
from datastore.dynamo.conditions import Condition, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.values.ids import creation_time

_ARRIVAL_LIFETIME = timedelta(days=30)


class Status(StrEnum):
    """Whether a comment may be seen."""

    PUBLISHED = "PUBLISHED"
    PENDING = "PENDING"
    REJECTED = "REJECTED"


@dataclass(frozen=True, slots=True)
class Comment:
    """A member's comment on a product. Values of None are not stored, since each item is stored four times."""

    product: str
    ulid: str
    language: str
    rating: int
    body: str
    author: str
    title: str | None = None
    edited_at: datetime | None = None
    held: Status | None = None
    note: str | None = None
    arrived: str | None = None
    """The position of its late arrival, if it was published after it had been held."""
    revision: int | None = None

    @property
    def status(self) -> Status:
        return self.held or Status.PUBLISHED

    @property
    def created_at(self) -> datetime:
        return creation_time(self.ulid)

    @property
    def arrived_at(self) -> datetime | None:
        return None if self.arrived is None else creation_time(self.arrived)

    @property
    def node_key(self) -> str:
        return f"{self.product}#{self.ulid}"

    @property
    def size(self) -> int:
        """Bytes of its item, in the table and in each index."""
        return item_size(COMMENT.item(self))


COMMENT = Entity(
    Comment,
    Key("PRODUCT#{product}", "COMMENT#{ulid}"),
    gsi1=Key("PRODUCT#{product}#{language}", "{ulid}"),
    gsi2=Key("PRODUCT#{product}#~#{rating}", "{ulid}"),
    gsi3=Key("PRODUCT#{product}#{language}#{rating}", "{ulid}"),
)
HELD = Entity(Comment, Key("PRODUCT#{product}", "HELD#{ulid}"), gsi1=Key("MODERATION#{status}", "{ulid}"))


def entity_for(comment: Comment) -> Entity[Comment]:
    return COMMENT if comment.held is None else HELD


@dataclass(frozen=True, slots=True)
class Reports:
    """Members' reports of one published comment: a reason for each reporter."""

    product: str
    ulid: str
    reasons: dict[str, str]
    revision: int = 1

    @property
    def unchanged(self) -> Condition:
        """Also the reasons: reports that start over after a decision have revision 1 again."""
        return where(revision=self.revision, reasons=self.reasons)


REPORTS = Entity(Reports, Key("PRODUCT#{product}", "REPORTS#{ulid}"), gsi1=Key("MODERATION#PUBLISHED", "{ulid}"))


@dataclass(frozen=True, slots=True)
class LateArrival:
    """A comment that was held and published later. Feeds show it at `position`, which is its `arrived`."""

    product: str
    position: str
    comment: str

    @property
    def expires(self) -> datetime:
        return creation_time(self.position) + _ARRIVAL_LIFETIME


LATE_ARRIVAL = Entity(LateArrival, Key("PRODUCT#{product}", "ARRIVAL#{position}"), ttl="expires")
