"""Predictions: each passes an open gate in the transaction that stores it.

The gate's condition is the deadline: open, and its lock ahead by this process's clock at the moment of each attempt.
The same write counts the picks at the gate, so the counts per team are exact the moment the event is locked and cost
no item of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import sample
from typing import Any

from datastore.dynamo import ConditionFailed, Page, PageRequest, Table, Window
from datastore.dynamo.conditions import absent, less, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.dynamo.merge import share_of
from datastore.people import SHARDS, shard_of
from datastore.pickem.events import GATE, Clock, Event, GateState, later, picked
from datastore.receipts import Once

RANKING_SHARDS = 4
"""Partitions of a ranking. Every page reads each, so there are few: four take some 4,000 writes a second on DynamoDB,
more than several scorers make."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One member's picks for one event: the team's place by match. `token` is the request that wrote it."""

    event: str
    user: str
    picks: dict[str, int]
    submitted_at: datetime
    joined_at: datetime
    starts_at: datetime
    token: str
    version: int = 1
    generation: int = 0
    points: int | None = None
    correct: int | None = None

    @property
    def node_key(self) -> str:
        return f"{self.event}:{self.user}"

    @property
    def shard(self) -> int:
        return shard_of(self.user)

    @property
    def lane(self) -> int:
        return self.shard % RANKING_SHARDS

    @property
    def is_scored(self) -> bool:
        return self.generation > 0


PREDICTION = Entity(
    Prediction,
    Key("EVENT#{event}#{shard:02d}", "USER#{user}"),
    gsi1=Key("USER#{user}", "PREDICTION#{starts_at}#{event}"),
    gsi2=Key(
        "EVENT#{event}#RANKED#{lane}", "{points:best_first}#{correct:best_first}#{joined_at}#{user}", when="is_scored"
    ),
)


async def prediction(table: Table, event: str, user: str) -> Prediction | None:
    return await table.get(PREDICTION.at(event=event, shard=shard_of(user), user=user), consistent=True)


async def submit(
    table: Table, new: Prediction, before: Prediction | None, event: Event, clock: Clock, once: Once, answer: Any
) -> bool:
    """Stores a prediction in place of an earlier one. False: the gate or the earlier prediction is not as expected.

    False is never said of what was stored: after a lost answer the own prediction is read back first.
    """
    changes = _changes(before.picks if before else {}, new.picks)
    if before is None:
        changes["predictions"] = 1
    passing = where(state=GateState.OPEN) & later("lock_at", clock) & less("card", event.version + 1)
    place = GATE.at(event=event.id, number=new.shard)
    gate = GATE.change(place, add=changes, when=passing) if changes else GATE.check(place, passing)
    unchanged = absent() if before is None else where(version=before.version)
    try:
        await once.transact(table, answer, PREDICTION.put(new, when=unchanged), gate)
    except ConditionFailed:
        stored = await prediction(table, new.event, new.user)
        return stored is not None and stored.token == new.token
    return True


def _changes(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, int]:
    changes: Counter[str] = Counter()
    changes.update(picked(match, team) for match, team in new.items())
    changes.subtract(picked(match, team) for match, team in old.items())
    return {name: number for name, number in changes.items() if number}


async def predictions_to_score(table: Table, event: str, by: int) -> AsyncIterator[list[Prediction]]:
    """All predictions of an event, up to `by` at a time, as they are now.

    Shards come in a random order, so that several scorers seldom meet.
    """
    for shard in sample(range(SHARDS), SHARDS):
        rest = PREDICTION.on(event=event, shard=shard)
        while True:
            found = await table.query(rest, limit=by, consistent=True)
            if found.items:
                yield list(found.records)
            if found.last is None:
                break
            rest = rest.past(found.last)


async def predictions_of_event(table: Table, event: Event, window: Window) -> Page[Prediction]:
    """Best first once they are scored; in the order of the members' ids until then."""
    if event.scored is not None:
        ranked = [PREDICTION.on("gsi2", event=event.id, lane=lane) for lane in range(RANKING_SHARDS)]
        request = window.open(f"predictions:{event.id}:ranked")
        return await table.page(ranked, request, limit=share_of(request.wanted, RANKING_SHARDS))
    shards = [PREDICTION.on(event=event.id, shard=shard) for shard in range(SHARDS)]
    request = window.open(f"predictions:{event.id}")
    return await table.page(shards, request, limit=share_of(request.wanted, SHARDS), consistent=True)


async def predictions_of_user(table: Table, user: str, request: PageRequest) -> Page[Prediction]:
    """Newest event first."""
    return await table.page([PREDICTION.on("gsi1", user=user).newest_first()], request)


def predictions_of_user_request(user: str, window: Window) -> PageRequest:
    return window.open(f"predictions of:{user}")
