"""Predictions: the transaction that stores one checks that a gate is open.

The gate's condition is the deadline: the gate is open, and its lock is ahead by this process's clock at each attempt.
The same write counts the picks at the gate, so the counts per team are exact as soon as the event is locked.
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
from datastore.dynamo.merge import shard_limit
from datastore.people import SHARDS, member_shard
from datastore.pickem.events import Clock, Event, in_future
from datastore.pickem.gates import GATE, GateState, pick_counter
from datastore.receipts import Once

RANKING_SHARDS = 4
"""Partitions of a ranking. Every page reads all of them, so there are few. On DynamoDB, four take about 4,000 writes a
second, more than several scorers make."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One member's picks for one event: the index of a team by match. `token` names the request that wrote it."""

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
        return member_shard(self.user)

    @property
    def ranking_shard(self) -> int:
        return self.shard % RANKING_SHARDS

    @property
    def is_scored(self) -> bool:
        return self.generation > 0


PREDICTION = Entity(
    Prediction,
    Key("EVENT#{event}#{shard:02d}", "USER#{user}"),
    gsi1=Key("USER#{user}", "PREDICTION#{starts_at}#{event}"),
    gsi2=Key(
        "EVENT#{event}#RANKED#{ranking_shard}",
        "{points:best_first}#{correct:best_first}#{joined_at}#{user}",
        when="is_scored",
    ),
)


async def read_prediction(table: Table, event: str, user: str) -> Prediction | None:
    return await table.get(PREDICTION.at(event=event, shard=member_shard(user), user=user), consistent=True)


async def submit_prediction(
    table: Table, new: Prediction, before: Prediction | None, event: Event, clock: Clock, once: Once, answer: Any
) -> bool:
    """Store a prediction in place of an earlier one. False if the gate is closed or the earlier prediction has changed.

    An attempt whose answer was lost may have stored it: the prediction is read back before False is returned.
    """
    changes = _counter_changes(before.picks if before else {}, new.picks)
    if before is None:
        changes["predictions"] = 1
    is_open = where(state=GateState.OPEN) & in_future("lock_at", clock) & less("card", event.version + 1)
    key = GATE.at(event=event.id, number=new.shard)
    gate = GATE.change(key, add=changes, when=is_open) if changes else GATE.check(key, is_open)
    unchanged = absent() if before is None else where(version=before.version)
    try:
        await once.transact(table, answer, PREDICTION.put(new, when=unchanged), gate)
    except ConditionFailed:
        stored = await read_prediction(table, new.event, new.user)
        return stored is not None and stored.token == new.token
    return True


def _counter_changes(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, int]:
    changes: Counter[str] = Counter()
    changes.update(pick_counter(match, team) for match, team in new.items())
    changes.subtract(pick_counter(match, team) for match, team in old.items())
    return {name: number for name, number in changes.items() if number}


async def predictions_to_score(table: Table, event: str, at_once: int) -> AsyncIterator[list[Prediction]]:
    """All predictions of an event, up to `at_once` at a time; consistent reads.

    Shards come in random order, so that several scorers seldom work on the same one.
    """
    for shard in sample(range(SHARDS), SHARDS):
        rest = PREDICTION.on(event=event, shard=shard)
        while True:
            batch = await table.query(rest, limit=at_once, consistent=True)
            if batch.items:
                yield list(batch.records)
            if batch.last is None:
                break
            rest = rest.past(batch.last)


async def read_event_predictions(table: Table, event: Event, window: Window) -> Page[Prediction]:
    """Best first once they are scored; until then in the order of the members' ids."""
    if event.scored is not None:
        ranked = [PREDICTION.on("gsi2", event=event.id, ranking_shard=shard) for shard in range(RANKING_SHARDS)]
        request = window.open(f"predictions:{event.id}:ranked")
        return await table.page(ranked, request, limit=shard_limit(request.wanted, RANKING_SHARDS))
    shards = [PREDICTION.on(event=event.id, shard=shard) for shard in range(SHARDS)]
    request = window.open(f"predictions:{event.id}")
    return await table.page(shards, request, limit=shard_limit(request.wanted, SHARDS), consistent=True)


async def read_member_predictions(table: Table, user: str, request: PageRequest) -> Page[Prediction]:
    """Newest event first."""
    return await table.page([PREDICTION.on("gsi1", user=user).newest_first()], request)


def member_predictions_request(user: str, window: Window) -> PageRequest:
    return window.open(f"predictions of:{user}")
