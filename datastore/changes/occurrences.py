"""The journal's records: occurrences, webhooks, what is to be delivered to them; and the writes that record a change.

| wanted                   | read or write                                                     | requests |
|--------------------------|-------------------------------------------------------------------|----------|
| record what a change is  | one Put in the change's transaction, and one for each webhook     | 0 more   |

`Journal.occurrence` returns these writes, and the part's write function appends them to the transaction that it sends
anyway: the occurrence, and for each webhook that wants its kind a delivery. So nothing is recorded that did not happen,
and nothing happens without its record. With the journal off and no webhook there are none.

Each process knows the webhooks as they were at most `MOST_AGE` ago: a webhook is told of everything that occurs once it
has existed for that long.

An occurrence gets its id after its transaction's object was read and before it is written. So the occurrences of one
object have ids in the order in which they happened, as far as the servers' clocks agree: webhooks are told them as
`sequence`. Changes that only add to a count, such as joining a league, do not wait for each other: their occurrences
may have ids in either order.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from datastore.dynamo import SingleFlight, Table, shared_context, within_deadline
from datastore.dynamo.entity import Entity, Key, shard_of
from datastore.dynamo.writes import Put, Write, absent
from datastore.values.ids import creation_time

# ── kinds ──


class Ground(StrEnum):
    """Why a moderator decided."""

    SPAM = "SPAM"
    ABUSE = "ABUSE"
    OFF_TOPIC = "OFF_TOPIC"
    ILLEGAL = "ILLEGAL"
    PERSONAL_DATA = "PERSONAL_DATA"
    FRAUD = "FRAUD"
    OTHER = "OTHER"


class Kind(StrEnum):
    """What occurred. The object is the comment, contender, event, … itself."""

    COMMENT_POSTED = "comment.posted"
    COMMENT_EDITED = "comment.edited"
    COMMENT_DELETED = "comment.deleted"
    COMMENT_REPORTED = "comment.reported"
    COMMENT_MODERATED = "comment.moderated"
    COMMENT_ANSWERED = "comment.answered"
    COMMENTS_IMPORTED = "comments.imported"
    HOLD_RULES_SET = "holdRules.set"

    BOARD_CREATED = "board.created"
    BOARD_CHANGED = "board.changed"
    CONTENDER_ADDED = "contender.added"
    CONTENDER_CHANGED = "contender.changed"
    CONTENDER_RETIRED = "contender.retired"
    CONTENDER_RESTORED = "contender.restored"
    VOTE_CAST = "vote.cast"
    VOTE_VOIDED = "vote.voided"
    VOTE_RESTORED = "vote.restored"
    SUSPECTS_SOUGHT = "suspects.sought"
    VOTERS_VOIDED = "voters.voided"
    VOTERS_RESTORED = "voters.restored"

    EVENT_CREATED = "event.created"
    EVENT_CHANGED = "event.changed"
    EVENT_LOCKED = "event.locked"
    EVENT_SCORED = "event.scored"
    EVENT_UNSCORED = "event.unscored"
    MATCH_ADDED = "match.added"
    MATCH_CHANGED = "match.changed"
    MATCH_REMOVED = "match.removed"
    MATCHES_REORDERED = "matches.reordered"
    RESULT_RECORDED = "result.recorded"
    TIE_BREAK_RECORDED = "tieBreak.recorded"
    PREDICTION_SUBMITTED = "prediction.submitted"
    PREDICTION_VOIDED = "prediction.voided"

    LEAGUE_CREATED = "league.created"
    LEAGUE_JOINED = "league.joined"
    LEAGUE_ADMITTED = "league.admitted"
    LEAGUE_LEFT = "league.left"
    LEAGUE_MEMBER_REMOVED = "league.memberRemoved"
    LEAGUE_CODE_CHANGED = "league.codeChanged"
    LEAGUE_DELETED = "league.deleted"

    WORD_LIST_CREATED = "wordList.created"
    WORD_LIST_CHANGED = "wordList.changed"
    WORD_LIST_DELETED = "wordList.deleted"
    WORDS_ADDED = "words.added"
    WORD_CHANGED = "word.changed"
    WORD_REMOVED = "word.removed"
    SUBSCRIPTION_STARTED = "subscription.started"
    SUBSCRIPTION_ENDED = "subscription.ended"
    QUIZ_RECORDED = "quiz.recorded"
    QUIZ_REMOVED = "quiz.removed"
    SENTENCE_WRITTEN = "sentence.written"
    SENTENCE_CHANGED = "sentence.changed"
    SENTENCE_REMOVED = "sentence.removed"

    PROFILE_CHANGED = "profile.changed"
    MEMBER_EXPORTED = "member.exported"
    MEMBER_ERASED = "member.erased"
    MEMBER_ROLES_SET = "member.rolesSet"
    MEMBER_SUSPENDED = "member.suspended"
    MEMBER_REINSTATED = "member.reinstated"
    MEMBER_TAKEN_BACK = "member.takenBack"

    API_KEY_CREATED = "apiKey.created"
    API_KEY_REVOKED = "apiKey.revoked"

    WEBHOOK_ADDED = "webhook.added"
    WEBHOOK_REMOVED = "webhook.removed"
    WEBHOOK_SECRET_ROTATED = "webhook.secretRotated"  # noqa: S105 - it names no secret
    WEBHOOK_REDELIVERED = "webhook.redelivered"


ON_DEMAND = frozenset({Kind.VOTE_CAST, Kind.PREDICTION_SUBMITTED})
"""Recorded only while a webhook names them: there are thousands a second, and each record is a further write."""

REMOVALS = frozenset(
    {
        Kind.COMMENT_DELETED,
        Kind.MATCH_REMOVED,
        Kind.PREDICTION_VOIDED,
        Kind.LEAGUE_DELETED,
        Kind.WORD_LIST_DELETED,
        Kind.WORD_REMOVED,
        Kind.SUBSCRIPTION_ENDED,
        Kind.QUIZ_REMOVED,
        Kind.SENTENCE_REMOVED,
        Kind.MEMBER_ERASED,
        Kind.API_KEY_REVOKED,
        Kind.WEBHOOK_REMOVED,
    }
)
"""After these the object need not exist any more."""


# ── occurrences ──


class Source(StrEnum):
    """What an occurrence came from."""

    MEMBER = "MEMBER"
    API_KEY = "API_KEY"
    COMMAND = "COMMAND"
    SERVICE = "SERVICE"


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

    `actor` and `object` name nodes as "User:01J…" or "Comment:42#01J…". An erased member's id leads to nobody.
    """

    ulid: str
    kind: str
    actor: str | None = None
    object: str | None = None
    ground: Ground | None = None
    note: str | None = None
    expires: datetime | None = None
    source: Source = Source.SERVICE
    """It stays when its actor is erased."""

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
    ttl="expires",
)


@dataclass(frozen=True, slots=True)
class OldSecret:
    """A secret that signs until its end, together with a newer one."""

    secret: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that is told of occurrences of some kinds. Without kinds: of all except those that must be named.

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
WEBHOOKS = WEBHOOK.on()
"""All webhooks."""


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
    """From when the day counts after which it is given up: its first failure, or when it was queued again."""
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


# ── recording ──

MOST_WEBHOOKS = 10
"""Each webhook that wants a kind adds an item to the transactions of that kind, which have at most 100."""
MOST_AGE = 10.0
"""For how many seconds a process may not know of a new webhook."""
_NEW = absent()
"""The condition of every occurrence: its id is new, so if it exists already, its transaction was carried out."""


class Journal:
    """What one process records: for how many days, for which webhooks, and whether it runs a command."""

    def __init__(self, days: int, new_id: Callable[[], str], *, of_command: bool = False) -> None:
        self.of_command = of_command
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

    @property
    def has_webhooks(self) -> bool:
        return bool(self._webhooks)

    def webhook(self, id_: str) -> Webhook | None:
        """A webhook that this process tells of what it does; None some seconds after it was removed."""
        return next((webhook for webhook in self._webhooks if webhook.id == id_), None)

    def confirm(self, asked_at: float) -> None:
        """The webhooks that are known were all that there were at this time of the monotonic clock."""
        self._known_at = max(self._known_at, asked_at)

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
        source: Source,
        ground: Ground | None = None,
        note: str | None = None,
    ) -> tuple[Put, ...]:
        """The writes to append to a transaction that does something to the object of a `name` such as "Event:01J…".

        There is one write for the journal, and one for each webhook that wants the kind.
        """
        telling = [webhook.id for webhook in self._webhooks if wants(webhook, kind)]
        recorded = self._days and (telling or kind not in ON_DEMAND)
        if not telling and not recorded:
            return ()
        occurred = Occurrence(self._new_id(), kind, actor, name, ground, note, source=source)
        deliveries = [new_delivery(webhook, occurred) for webhook in telling]
        for delivery in deliveries:
            self.on_delivery(delivery)
        writes = [DELIVERY.put(delivery) for delivery in deliveries]
        if recorded:
            writes.append(OCCURRENCE.put(replace(occurred, expires=occurred.at + self._days), when=_NEW))
        return tuple(writes)


def is_record(write: Write) -> bool:
    """Whether a write puts an occurrence into the journal. A delivery does not: it is removed once it is sent."""
    return write.when is _NEW


def wants(webhook: Webhook, kind: str) -> bool:
    return kind in webhook.kinds if webhook.kinds else kind not in ON_DEMAND


def _no_id() -> str:
    raise RuntimeError("a journal that is off needs no ids")


OFF = Journal(0, _no_id)
"""For changes of which nobody needs to know, such as demo data."""
