"""Receipts: a repeated request finds the first answer and changes nothing.

| wanted                                 | operation                                        | requests |
|----------------------------------------|--------------------------------------------------|----------|
| the stored answer to an idempotency key | GetItem IDEMPOTENCY#<owner>#<key>, consistent   | 1        |
| a change and its receipt, or neither   | the change's transaction, one item more          | 0 more   |

A receipt is written in the same transaction as the change, and contains the answer. So a repeat by the client, or a
retry by this service after a lost connection, finds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from datastore.dynamo import ConditionFailed
from datastore.dynamo.attributes import codec_for
from datastore.dynamo.conditions import absent, less
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.journal.recording import OFF
from datastore.refusals import IdempotencyMismatch

if TYPE_CHECKING:
    from datastore.dynamo import Table
    from datastore.dynamo.writes import Write
    from datastore.journal.kinds import Ground, Kind
    from datastore.journal.recording import Journal

RECEIPT_LIFETIME = timedelta(days=7)
LONGEST_KEY = 128


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to one request of one owner."""

    owner: str
    key: str
    input_hash: str
    answer: str
    expires: datetime


RECEIPT = Entity(Receipt, Key("IDEMPOTENCY#{owner}#{key}", "IDEMPOTENCY"), ttl="expires")


class AlreadyAnswered(Exception):
    """The request was carried out before; its receipt contains the answer."""


@dataclass(frozen=True, slots=True)
class Once:
    """One request's claim to be carried out once. Without an idempotency key nothing is claimed and nothing stored."""

    owner: str
    key: str | None
    input_hash: str
    now: datetime
    journal: Journal = OFF
    actor: str | None = None
    """Whom the journal names."""

    @classmethod
    def unkeyed(cls, now: datetime, journal: Journal = OFF, actor: str | None = None) -> Once:
        """For a change that no request asked for: it leaves no receipt."""
        return cls("", None, "", now, journal, actor)

    def occurred(
        self, kind: Kind, name: str, *, about: str | None = None, ground: Ground | None = None, note: str | None = None
    ) -> tuple[Write, ...]:
        """The journal's writes for a change (see `Journal.occurrence`): they belong into the change's transaction."""
        return self.journal.occurrence(kind, self.actor, name, about=about, ground=ground, note=note)

    async def transact(self, table: Table, answer: Any, *writes: Write) -> None:
        """Carry out the writes, together with the receipt for `answer`.

        ConditionFailed has the indexes of `writes`; AlreadyAnswered means that the receipt already existed.
        """
        if self.key is None:
            await table.transact(*writes)
            return
        try:
            await table.transact(*writes, self._receipt(self.key, answer))
        except ConditionFailed as failed:
            if failed.at(len(writes)):
                raise AlreadyAnswered from None
            raise

    def _receipt(self, key: str, answer: Any) -> Write:
        kind: Any = type(answer)
        stored = orjson.dumps(codec_for(kind).encode(answer)).decode()
        receipt = Receipt(self.owner, key, self.input_hash, stored, self.now + RECEIPT_LIFETIME)
        # The engine removes expired items late; until then an expired receipt counts as absent.
        return RECEIPT.put(receipt, when=absent() | less("expires", self.now))

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
