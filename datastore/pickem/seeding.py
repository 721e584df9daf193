"""Seeding: writes an event with its matches and predictions in bulk, counted as if each had been submitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from datastore.dynamo.writes import Put
from datastore.people import SHARDS
from datastore.pickem.events import EVENT, MATCH, Event, Match, gate_state
from datastore.pickem.gates import GATE, Gate, pick_counter
from datastore.pickem.predictions import PREDICTION, Prediction

if TYPE_CHECKING:
    from datastore.dynamo import Table


async def seed_event(table: Table, event: Event, matches: Sequence[Match], predictions: Iterable[Prediction]) -> None:
    """Write an event with its matches and predictions. Seeding it again writes the same records."""
    await table.write_many(event_items(event, matches, predictions))


def event_items(event: Event, matches: Sequence[Match], predictions: Iterable[Prediction]) -> Iterator[Put]:
    """The event, its matches, its predictions, and its gates with what the predictions count."""
    yield EVENT.put(event)
    yield from map(MATCH.put, matches)
    counts: list[Counter[str]] = [Counter() for _ in range(SHARDS)]
    predicted = [0] * SHARDS
    for prediction in predictions:
        predicted[prediction.shard] += 1
        counts[prediction.shard].update(pick_counter(match, team) for match, team in prediction.picks.items())
        yield PREDICTION.put(prediction)
    for shard, counted in enumerate(counts):
        gate = Gate(
            event=event.id,
            number=shard,
            state=gate_state(event),
            lock_at=event.starts_at,
            predictions=predicted[shard],
            picked=dict(counted),
        )
        yield GATE.put(gate)
