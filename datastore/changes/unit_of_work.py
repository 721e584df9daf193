"""A request's changes: each with its receipt, its record in the journal, and a check that its members are not erased.

| wanted                                    | read or write                                           | requests |
|-------------------------------------------|---------------------------------------------------------|----------|
| the stored answer to an idempotency key   | GetItem IDEMPOTENCY#<owner>#<key>, consistent           | 1        |
| a change and its receipt, or neither      | the change's transaction, one item more                 | 0 more   |
| a change of steps, not begun again        | a check of the receipt in the first transaction         | 0 more   |
| a change made once, its answer lost       | its occurrence, on the condition that it is new         | 0 more   |
| the receipts that name a member           | gsi1 RECEIPTS#<id>, gsi2 RECEIPTSABOUT#<hash>           | 2        |
| erase a member                            | PutItem ERASED#<hash>, with the job that erases         | 0 more   |
| nothing for or about an erased member     | a check of the same item in the change's transaction    | 0 more   |
| note a board or an event                  | PutItem CREATED#<kind>, before it is created            | 1        |
| what was noted lately                     | Query CREATED#<kind>, consistent                        | 1        |

**Receipts.** A receipt is written in the transaction of its change, and contains the answer. So a repeat by the client,
or a retry by this service after a lost connection, finds the first answer and changes nothing.

**Tombstones.** For or about an erased member nothing more is written. A tombstone names its member by a keyed hash, so
it does not contain the id. It stays until every token of the member has expired, since a token's signature is valid
whatever happened to its member, and until a suspension of the member would have ended. The check costs 2 write units.
Writes of visitors and API keys have none. After a rotation of secrets some processes know only the old ones: so a
tombstone is written under the hash by each secret, and a transaction checks each hash.

**Recently created.** Boards and events are found by an index, which is behind for a moment, but taking back and
exporting must miss none. So each is noted for an hour, far longer than an index is behind. A note may name what was
never created.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from datastore.changes.occurrences import OFF, Ground, Journal, Kind, Source, is_record
from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.attributes import codec_for
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Check, Condition, Put, Write, absent, less, where
from datastore.refusals import IdempotencyMismatch, NotAllowed
from datastore.values.seal import Seal

# ── tombstones ──

VISITOR_PREFIX = "visitor-"
"""What the ids of visitors begin with, and those of members do not."""
_PURPOSE = "erased member"
_PREFIX = "ERASED#"


class MemberErased(NotAllowed):
    explanation = "This account is erased: nothing can be written for it or about it any more."


@dataclass(frozen=True, slots=True)
class Tombstone:
    """An erased member, and the job that erases them."""

    member_hash: str
    expires: datetime
    job: str


TOMBSTONE = Entity(Tombstone, Key(f"{_PREFIX}{{member_hash}}", "ERASED"), ttl="expires")


class Tombstones:
    """The keys of tombstones, which depend on the service's secrets."""

    def __init__(self, seal: Seal) -> None:
        self._seal = seal

    def hashes(self, member: str) -> list[str]:
        return [hashed.hex() for hashed in self._seal.keyed_hashes(_PURPOSE, member.encode())]

    def puts(
        self, member: str, expires: datetime, job: str, now: datetime, earlier: Tombstone | None = None
    ) -> list[Put]:
        """The writes that begin a member's erasure, unless another job does it than that of an earlier tombstone."""
        free = absent() | less("expires", now)
        free = free if earlier is None else free | where(job=earlier.job)
        return [TOMBSTONE.put(Tombstone(hashed, expires, job), when=free) for hashed in self.hashes(member)]

    def checks(self, member: str, now: datetime) -> list[Check]:
        """What a transaction for or about a member must hold. There are none for a visitor."""
        if member.startswith(VISITOR_PREFIX):
            return []
        # The engine removes expired items late.
        not_erased = absent() | less("expires", now)
        return [TOMBSTONE.check(TOMBSTONE.at(member_hash=hashed), not_erased) for hashed in self.hashes(member)]

    async def read(self, table: Table, member: str, now: datetime) -> Tombstone | None:
        keys = [TOMBSTONE.at(member_hash=hashed) for hashed in self.hashes(member)]
        found = await table.get_many(keys, consistent=True)
        return next((tombstone for tombstone in found if tombstone is not None and now < tombstone.expires), None)


def is_tombstone_check(write: Write) -> bool:
    return isinstance(write, Check) and write.fields is TOMBSTONE.fields


def checked_members(checks: Iterable[Write]) -> list[str]:
    """The hashes of the members that checks are about; of each member, the one by the newest secret comes first."""
    return [check.key["pk"]["S"].removeprefix(_PREFIX) for check in checks if isinstance(check, Check)]


# ── created ──

LIFETIME = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Created:
    """The id of a board or an event that is about to be created."""

    kind: str
    id: str
    expires: datetime


CREATED = Entity(Created, Key("CREATED#{kind}", "{id}"), ttl="expires")


async def note_created(table: Table, kind: str, id_: str, now: datetime) -> None:
    await table.write(CREATED.put(Created(kind, id_, now + LIFETIME)))


async def read_created(table: Table, kind: str) -> set[str]:
    """The ids that were noted within the last hour, or a little before."""
    return {created.id async for created in table.iterate(CREATED.on(kind=kind), consistent=True)}


# ── unit of work ──

RECEIPT_LIFETIME = timedelta(days=7)
LONGEST_KEY = 128
_MEMBER = "User:"
"""What the journal's names of members begin with."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to one request of one owner."""

    owner: str
    key: str
    input_hash: str
    answer: str
    expires: datetime
    member: str | None = None
    """The owner, if that is a member."""
    about: str | None = None
    """The hash, by the newest secret, of another member, whom the answer may describe."""


RECEIPT = Entity(
    Receipt,
    Key("IDEMPOTENCY#{owner}#{key}", "IDEMPOTENCY"),
    gsi1=Key("RECEIPTS#{member}", "{key}", when="member"),
    gsi2=Key("RECEIPTSABOUT#{about}", "{owner}#{key}", when="about"),
    ttl="expires",
)


class AlreadyAnswered(Exception):
    """The request was carried out before; its receipt contains the answer."""


@dataclass(frozen=True, slots=True)
class UnitOfWork:
    """The changes of one request, stored with what the journal says of them and with the request's receipt.

    Without an idempotency key there is no receipt.
    """

    owner: str
    key: str | None
    input_hash: str
    now: datetime
    journal: Journal = OFF
    actor: str | None = None
    """Whom the journal names."""
    tombstones: Tombstones | None = None
    """The tombstones that writes are checked against; None for a change that no member makes, or that erases one."""

    @classmethod
    def unkeyed(
        cls, now: datetime, journal: Journal = OFF, actor: str | None = None, tombstones: Tombstones | None = None
    ) -> UnitOfWork:
        """For a change that no request asked for: it leaves no receipt."""
        return cls("", None, "", now, journal, actor, tombstones)

    def occurred(
        self,
        kind: Kind,
        name: str | None,
        *,
        about: str | None = None,
        ground: Ground | None = None,
        note: str | None = None,
    ) -> tuple[Write, ...]:
        """The journal's writes for a change (see `Journal.occurrence`): they belong in the change's transaction.

        With `about` come the checks that this member is not erased.
        """
        writes = self.journal.occurrence(
            kind, self.actor, name, source=self._source, about=about, ground=ground, note=note
        )
        return (*writes, *self.not_erased(about)) if about is not None else writes

    def not_erased(self, member: str) -> tuple[Write, ...]:
        """The checks that a member is not erased, for `apply` and `transact`."""
        return () if self.tombstones is None else tuple(self.tombstones.checks(member, self.now))

    async def refuse_erased(self, table: Table) -> None:
        """MemberErased if the actor is erased: before work that has no first write of its own to say so."""
        if checks := () if self._member is None else self.not_erased(self._member):
            await self.apply(table, *checks)

    async def apply(self, table: Table, *writes: Write) -> None:
        """Carry out the writes without a receipt, unless an attempt whose answer was lost has done so.

        MemberErased if the actor, or a member they are about, is erased. ConditionFailed has the indexes of `writes`;
        checks of tombstones come last among them. It is doubtful only if nothing is recorded.
        """
        changes = [write for write in writes if not is_tombstone_check(write)]
        checks = [write for write in writes if is_tombstone_check(write)]
        if self._member is not None:
            checks += self.not_erased(self._member)
        # A transaction names each item once.
        unique = {write.key["pk"]["S"]: write for write in checks if isinstance(write, Check)}
        try:
            await table.transact(*changes, *unique.values())
        except ConditionFailed as failed:
            records = [index for index, change in enumerate(changes) if is_record(change)]
            if any(map(failed.at, records)):
                return  # nothing else can have written it: its id is new
            if any(index >= len(changes) for index in failed.failures):
                raise MemberErased from None
            if records:  # none of the attempts was applied: it would have left its record
                raise ConditionFailed(failed.failures) from None
            raise

    async def transact(self, table: Table, answer: Any, *writes: Write) -> None:
        """Carry out the writes, together with the receipt for `answer`.

        ConditionFailed has the indexes of `writes`; AlreadyAnswered means that the receipt already existed, and
        MemberErased that the actor, or a member that the writes are about, is erased.
        """
        if self.key is None:
            await self.apply(table, *writes)
            return
        changes = [write for write in writes if not is_tombstone_check(write)]
        checks = [write for write in writes if is_tombstone_check(write)]
        try:
            await self.apply(table, *changes, self._receipt(self.key, answer, checks), *checks)
        except ConditionFailed as failed:
            if failed.at(len(changes)):
                raise AlreadyAnswered from None
            raise

    async def store_receipt(self, table: Table, answer: Any, *, about: str | None = None) -> None:
        """Store the receipt for an answer to which nothing is left to write. `about` is a member that it names."""
        if self.key is not None:
            await self.transact(table, answer, *(() if about is None else self.not_erased(about)))

    def unanswered(self) -> tuple[Write, ...]:
        """The check that there is no receipt: for the first step of a change whose last step writes it."""
        if self.key is None:
            return ()
        return (RECEIPT.check(RECEIPT.at(owner=self.owner, key=self.key), self._is_free),)

    @property
    def _is_free(self) -> Condition:
        # The engine removes expired items late; until then an expired receipt counts as absent.
        return absent() | less("expires", self.now)

    @property
    def _source(self) -> Source:
        if self.journal.of_command:
            return Source.COMMAND
        if self.actor is None:  # the owner of a request without an actor is a visitor
            return Source.MEMBER if self.owner else Source.SERVICE
        return Source.MEMBER if self._member is not None else Source.API_KEY

    @property
    def _member(self) -> str | None:
        is_member = self.actor is not None and self.actor.startswith(_MEMBER)
        return self.actor.removeprefix(_MEMBER) if is_member and self.actor is not None else None

    def _receipt(self, key: str, answer: Any, checks: Sequence[Write]) -> Write:
        kind: Any = type(answer)
        stored = orjson.dumps(codec_for(kind).encode(answer)).decode()
        expires, member = self.now + RECEIPT_LIFETIME, self._member
        own = checked_members(() if member is None else self.not_erased(member))
        about = next((hashed for hashed in checked_members(checks) if hashed not in own), None)
        receipt = Receipt(self.owner, key, self.input_hash, stored, expires, member, about)
        return RECEIPT.put(receipt, when=self._is_free)

    async def answer(self, table: Table, kind: Any) -> Any:
        """The stored answer of an earlier request; IdempotencyMismatch if that request had another input."""
        if self.key is None:
            return None
        receipt = await table.get(RECEIPT.at(owner=self.owner, key=self.key), consistent=True)
        if receipt is None or receipt.expires < self.now:
            return None
        if receipt.input_hash != self.input_hash:
            raise IdempotencyMismatch(path=("input", "idempotencyKey"))
        return codec_for(kind).decode(orjson.loads(receipt.answer))


async def delete_receipts(table: Table, member: str, hashes: Sequence[str]) -> int:
    """Delete a member's receipts, and others' whose answers are about them; return how many the indexes show."""
    partitions = [RECEIPT.on("gsi1", member=member), *(RECEIPT.on("gsi2", about=hashed) for hashed in hashes)]
    found = [receipt for partition in partitions async for receipt in table.iterate(partition)]
    await table.write_many(RECEIPT.delete(RECEIPT.item_key(receipt)) for receipt in found)
    return len(found)
