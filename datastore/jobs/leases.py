"""Leases: which process does a piece of work. The item that the work belongs to says who.

| wanted                | write                                                                  | requests |
|-----------------------|------------------------------------------------------------------------|----------|
| acquire               | UpdateItem, if the item is as it was seen                              | 1        |
| take a turn           | GetItem TURN#<name> TURN, consistent, then acquire                     | 2        |
| save, renew, release  | UpdateItem, if nobody has acquired it since; with others a transaction | 1        |

The item has a `holder`, a `term`, which rises whenever a process acquires it, and a `beat`, which rises with every
write of its holder.

Guarantee: what is stored on the item itself, such as progress and outcome, is written by the holder of the latest term
alone, in the order in which it was saved. A process that was taken for dead changes nothing there any more, and learns
that it has lost the lease at its next save. What it writes elsewhere meanwhile must bear to be done twice.

No two clocks are compared. A process takes a lease once it has seen the item unchanged for `LEASE_SECONDS` by its own
clock. The holder renews it after a third of that, and stops after two thirds, counted from when it began the last save
that succeeded. So it has stopped before another process begins, unless it was itself halted meanwhile.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from time import monotonic
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from datastore.dynamo import BoundedDict, ConditionFailed, DynamoError, Table, deadline
from datastore.dynamo.entity import Entity, ItemKey, Key
from datastore.dynamo.writes import Write, less, where

LEASE_SECONDS = 15.0
"""An item that another process sees unchanged for so long has no living holder."""
RELEASE_SECONDS = 5.0
"""How long a process that ends tries to say so. After that the lease lapses by itself."""
_MOST_SEEN = 10_000


class LeaseLost(Exception):
    """Another process has acquired the lease, or it could not be renewed in time."""


class Leased(Protocol):
    """A dataclass with a lease."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def holder(self) -> str | None: ...
    @property
    def term(self) -> int: ...
    @property
    def beat(self) -> int: ...


R = TypeVar("R", bound=Leased)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Turn:
    """The lease of work that has no other item. `place` is what its holder leaves for the next one."""

    name: str
    holder: str | None = None
    term: int = 0
    beat: int = 0
    place: str | None = None


_ENTITIES: dict[type, Entity[Any]] = {}
"""How each kind of record with a lease is stored."""


def leased(entity: Entity[R]) -> Entity[R]:
    """The entity, whose items may be leased."""
    _ENTITIES[entity.record] = entity
    return entity


TURN = leased(Entity(Turn, Key("TURN#{name}", "TURN")))


class Age(NamedTuple):
    """Seconds since an item changed, as one process has seen it by its own clock."""

    at_least: float
    """Since it was first seen in this state."""
    at_most: float
    """Since it was last seen in another state."""


@dataclass(frozen=True, slots=True)
class _Seen:
    state: tuple[int, int]
    since: float
    not_before: float
    looked: float


class Leases:
    """The leases of one process: those that it holds, and when it saw those of others change."""

    def __init__(self, table: Table) -> None:
        self.holder = secrets.token_hex(8)
        self.patience = LEASE_SECONDS
        """After so many seconds this process takes a silent holder for dead."""
        self.lasting = LEASE_SECONDS
        """For so many seconds others take this process for alive."""
        self._table = table
        self._seen: BoundedDict[ItemKey[Any], _Seen] = BoundedDict(_MOST_SEEN)

    def is_free(self, seen: Leased) -> bool:
        """Whether a lease may be acquired, whose item was just read: no living process has it."""
        return self.age(seen).at_least >= self.patience or seen.holder is None

    def age(self, seen: Leased) -> Age:
        """For how long an item has been in the state just read, or in a later one if this read was late."""
        key, state, now = _ENTITIES[type(seen)].item_key(seen), (seen.term, seen.beat), monotonic()
        before = self._seen.get(key, _Seen((-1, -1), now, -inf, -inf))
        if state > before.state:
            before = _Seen(state, now, before.looked, now)
        self._seen[key] = replace(before, looked=now)
        return Age(now - before.since, now - before.not_before)

    async def acquire(self, seen: R) -> Held[R] | None:
        """Acquire a lease, unless its item has changed since it was read: then None. The item is read anew with it."""
        entity: Entity[R] = _ENTITIES[type(seen)]
        began = monotonic()
        mine = replace(seen, holder=self.holder, term=seen.term + 1, beat=seen.beat + 1)
        unchanged = where(term=seen.term, beat=seen.beat)
        try:
            write = entity.update_with_indexes(mine, "holder", "term", "beat", when=unchanged)
            record = await self._table.write_back(write, entity)
        except ConditionFailed as failed:
            stored = failed.stored(entity)
            if not failed.doubtful or stored is None or (stored.holder, stored.term) != (mine.holder, mine.term):
                return None
            record = stored  # this process has acquired it, and the answer was lost
        return Held(self._table, record, began, self.lasting)

    async def begin(self, record: R) -> Held[R]:
        """Write an item that is this process's alone, with its lease."""
        began = monotonic()
        await self._table.write(_ENTITIES[type(record)].put(record))
        return Held(self._table, record, began, self.lasting)

    async def take_turn(self, name: str) -> Held[Turn] | None:
        """Acquire the lease of work that has no item of its own; None if another process does it."""
        seen = await self._table.get(TURN.at(name=name), consistent=True)
        if seen is None:
            seen = await self._table.put_once(TURN, Turn(name))
        return await self.acquire(seen) if self.is_free(seen) else None


class Held(Generic[R]):
    """A lease that this process holds."""

    def __init__(self, table: Table, record: R, began: float, lasting: float) -> None:
        self.record = record
        """The item with the changes that this process has made, stored or not."""
        self._table = table
        self._entity: Entity[R] = _ENTITIES[type(record)]
        self._third = lasting / 3
        self._safe_until = began + 2 * self._third
        self._unsaved: set[str] = set()
        self._saving = asyncio.Lock()

    @property
    def is_safe(self) -> bool:
        """Whether no other process can have begun by now."""
        return monotonic() < self._safe_until

    def note(self, **changes: Any) -> None:
        """Change the item at the next save or renewal."""
        self.record = replace(self.record, **changes)
        self._unsaved |= changes.keys()

    async def save(self, *writes: Write, **changes: Any) -> None:
        """Store changes of the item and those that were noted, which shows as well that the holder is alive.

        LeaseLost if another process has acquired it; then the other writes, which go with it, are not applied either.
        """
        self.note(**changes)
        async with self._saving:
            began, names = monotonic(), self._unsaved
            after = self.record = replace(self.record, beat=self.record.beat + 1)
            self._unsaved = set()
            # A save whose answer is lost may be applied after the next one: then it has the lower beat.
            still_mine = where(term=after.term) & less("beat", after.beat)
            try:
                save = self._entity.update_with_indexes(after, *names, "beat", when=still_mine)
                await (self._table.transact(save, *writes) if writes else self._table.write(save))
            except ConditionFailed as failed:
                stored = failed.stored(self._entity)
                if stored is None or (stored.term, stored.beat) != (after.term, after.beat):
                    raise LeaseLost from None  # otherwise it was this save, whose answer was lost
            except BaseException:
                self._unsaved |= names
                raise
            self._safe_until = began + 2 * self._third

    async def release(self, *writes: Write, **changes: Any) -> None:
        """Leave the work to any process, at once."""
        with deadline(RELEASE_SECONDS):
            await self.save(*writes, holder=None, **changes)

    async def leave(self, **changes: Any) -> None:
        """Release it if that can be done; otherwise it lapses by itself."""
        with suppress(LeaseLost, DynamoError):
            await self.release(**changes)

    async def renew(self) -> None:
        """Show that the holder is alive, if it has not been for a third of the time.

        A failure of the table is passed over while another attempt can still be in time; after that LeaseLost.
        """
        if monotonic() < self._safe_until - self._third:
            return
        try:
            async with asyncio.timeout(max(0.0, self._safe_until - monotonic())):
                await self.save()
        except TimeoutError:
            raise LeaseLost from None
        except DynamoError:
            if not self.is_safe:
                raise LeaseLost from None

    async def renewed_during(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work, during which the lease is renewed. LeaseLost if that fails; the work has ended then.

        A renewal that fails at once is tried again before the lease is lost.
        """
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=self._third / 4))[0]:
                await self.renew()
            return task.result()
        finally:
            task.cancel()
            await asyncio.wait({task})
