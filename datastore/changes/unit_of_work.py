"""A request's changes: each with its receipt and its record in the journal.

| wanted                                    | read or write                                           | requests |
|-------------------------------------------|---------------------------------------------------------|----------|
| the stored answer to an idempotency key   | GetItem USER#<place> RECEIPT#<key>, consistent          | 1        |
| a change and its receipt, or neither      | the change's transaction, one item more                 | 0 more   |
| a change of steps, not begun again        | a check of the receipt in the first transaction         | 0 more   |
| a job and the receipt of its request      | the job's transaction; PutItem of the receipt at its end | 1 more |
| a change made once, its answer lost       | its occurrence, on the condition that it is new         | 0 more   |
| note a board or an event                  | PutItem CREATED#<kind>, before it is created            | 1        |
| what was noted lately                     | Query CREATED#<kind>, consistent                        | 1        |

**Receipts.** A receipt is written in the transaction of its change, and contains the answer. So a repeat by the client,
or a retry by this service after a lost connection, finds the first answer and changes nothing. A member's lie with what
else is theirs, so erasing finds them. Those of visitors and machines have a partition each, since a machine may write a
thousand a second. If a job does what was asked for, the receipt is written with the job's beginning, and replaced by
the answer that its end gives. So a repeat after a lost process finds the job, and does not begin another.

**Recently created.** Boards and events are found by an index, which is behind for a moment, but taking back and
exporting must miss none. So each is noted for an hour, far longer than an index is behind. A note may name what was
never created.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from datastore.changes.occurrences import OFF, Ground, Journal, Kind, Source, is_record
from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.attributes import codec_for
from datastore.dynamo.entity import Entity, ItemKey, Key
from datastore.dynamo.writes import Write, absent, less
from datastore.refusals import IdempotencyMismatch

VISITOR_PREFIX = "visitor-"
"""What the ids of visitors begin with, and those of members do not."""

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


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to one request."""

    user: str
    """The member; for others the owner and the key."""
    key: str
    input_hash: str
    answer: str
    expires: datetime


RECEIPT = Entity(Receipt, Key("USER#{user}", "RECEIPT#{key}"), ttl="expires")


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

    @classmethod
    def unkeyed(cls, now: datetime, journal: Journal = OFF, actor: str | None = None) -> UnitOfWork:
        """For a change that no request asked for: it leaves no receipt."""
        return cls("", None, "", now, journal, actor)

    def occurred(
        self, kind: Kind, name: str | None, *, ground: Ground | None = None, note: str | None = None
    ) -> tuple[Write, ...]:
        """The journal's writes for a change (see `Journal.occurrence`): they belong in the change's transaction."""
        return self.journal.occurrence(kind, self.actor, name, source=self._source, ground=ground, note=note)

    async def apply(self, table: Table, *writes: Write) -> None:
        """Carry out the writes without a receipt, unless an attempt whose answer was lost has done so.

        ConditionFailed is doubtful only if nothing is recorded.
        """
        try:
            await table.transact(*writes)
        except ConditionFailed as failed:
            records = [index for index, write in enumerate(writes) if is_record(write)]
            if any(map(failed.at, records)):
                return  # nothing else can have written it: its id is new
            if records:  # none of the attempts was applied: it would have left its record
                raise ConditionFailed(failed.failures) from None
            raise

    async def transact(self, table: Table, answer: Any, *writes: Write) -> None:
        """Carry out the writes, together with the receipt for `answer`.

        ConditionFailed has the indexes of `writes`; AlreadyAnswered means that another request's receipt existed.
        """
        if self.key is None:
            await self.apply(table, *writes)
            return
        receipt = self._receipt(self.key, answer)
        # The engine removes expired items late; until then an expired receipt counts as absent.
        write = RECEIPT.put(receipt, when=absent() | less("expires", self.now))
        try:
            await self.apply(table, *writes, write)
        except ConditionFailed as failed:
            if failed.doubtful and failed.stored(RECEIPT, len(writes)) == receipt:
                return  # an attempt whose answer was lost has stored it: this request still has to do what follows
            if failed.at(len(writes)):
                raise AlreadyAnswered from None
            raise

    async def store_receipt(self, table: Table, answer: Any) -> None:
        """Store the receipt for an answer to which nothing is left to write."""
        if self.key is not None:
            await self.transact(table, answer)

    async def replace_receipt(self, table: Table, answer: Any) -> None:
        """Store the answer that a job's end gives, in place of the one of its beginning."""
        if self.key is not None:
            await table.write(RECEIPT.put(self._receipt(self.key, answer)))

    async def delete_receipt(self, table: Table) -> None:
        """Let a repeat begin another job, since this one has failed."""
        if self.key is not None:
            await table.write(RECEIPT.delete(self._place(self.key)))

    @property
    def _source(self) -> Source:
        if self.journal.of_command:
            return Source.COMMAND
        if self.actor is None:  # the owner of a request without an actor is a visitor
            return Source.MEMBER if self.owner else Source.SERVICE
        return Source.MEMBER if self._is_member else Source.API_KEY

    @property
    def _is_member(self) -> bool:
        return self.actor is not None and self.actor.startswith("User:")

    def _holder(self, key: str) -> str:
        is_own = self.actor == f"User:{self.owner}"  # a visitor who signs in may ask again as the member
        return self.owner if is_own else f"{self.owner}.{key}"

    def _place(self, key: str) -> ItemKey[Receipt]:
        return RECEIPT.at(user=self._holder(key), key=key)

    def _receipt(self, key: str, answer: Any) -> Receipt:
        kind: Any = type(answer)
        stored = orjson.dumps(codec_for(kind).encode(answer)).decode()
        return Receipt(self._holder(key), key, self.input_hash, stored, self.now + RECEIPT_LIFETIME)

    async def answer(self, table: Table, kind: Any) -> Any:
        """The stored answer of an earlier request; IdempotencyMismatch if that request had another input."""
        if self.key is None:
            return None
        receipt = await table.get(self._place(self.key), consistent=True)
        if receipt is None or receipt.expires < self.now:
            return None
        if receipt.input_hash != self.input_hash:
            raise IdempotencyMismatch(path=("input", "idempotencyKey"))
        return codec_for(kind).decode(orjson.loads(receipt.answer))
