"""Seeding: an event with its matches and predictions in bulk, counted as if each prediction had been submitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from datastore.dynamo.writes import Put
from datastore.people import SHARDS
from datastore.pickem.events import EVENT, GATE, MATCH, Event, Gate, Match, gate_state, picked
from datastore.pickem.predictions import PREDICTION, Prediction

if TYPE_CHECKING:
    from datastore.dynamo import Table


async def seed_event(table: Table, event: Event, matches: Sequence[Match], predictions: Iterable[Prediction]) -> None:
    """Repeatable: the same records are written again."""
    await table.write_many(event_items(event, matches, predictions))


def event_items(event: Event, matches: Sequence[Match], predictions: Iterable[Prediction]) -> Iterator[Put]:
    """The event, its matches, its predictions, and its gates with what the predictions count."""
    yield EVENT.put(event)
    yield from map(MATCH.put, matches)
    counts: list[Counter[str]] = [Counter() for _ in range(SHARDS)]
    passed = [0] * SHARDS
    for prediction in predictions:
        passed[prediction.shard] += 1
        counts[prediction.shard].update(picked(match, team) for match, team in prediction.picks.items())
        yield PREDICTION.put(prediction)
    for shard, counted in enumerate(counts):
        gate = Gate(event.id, shard, gate_state(event), event.starts_at, 0, passed[shard], dict(counted))
        yield GATE.put(gate)
