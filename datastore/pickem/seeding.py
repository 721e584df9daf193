"""Seeding: writes an event with its matches and predictions in bulk, counted as if each had been submitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from datastore.dynamo import Table
from datastore.dynamo.writes import Put
from datastore.pickem.events import EVENT, MATCH, Event, Match, number_matches, season_entry
from datastore.pickem.gates import GATE, GATES, Gate, gate_number, pick_counter
from datastore.pickem.predictions import PREDICTION, Prediction


async def seed_event(table: Table, event: Event, matches: Sequence[Match], predictions: Iterable[Prediction]) -> None:
    """Write an event with its matches and predictions. Seeding it again writes the same records."""
    await table.write_many(event_items(event, matches, predictions))


def event_items(event: Event, matches: Sequence[Match], predictions: Iterable[Prediction]) -> Iterator[Put]:
    """The event, its season's entry, its matches, its predictions, and its gates with what the predictions count."""
    event, numbered = number_matches(event, matches)
    yield EVENT.put(event)
    yield season_entry(event)
    yield from map(MATCH.put, numbered)
    numbers = {match.id: match.number for match in numbered}
    counts: list[Counter[str]] = [Counter() for _ in range(GATES)]
    predicted = [0] * GATES
    for prediction in predictions:
        gate = gate_number(prediction.user)
        predicted[gate] += 1
        counts[gate].update(pick_counter(numbers[match], team) for match, team in prediction.picks.items())
        yield PREDICTION.put(prediction)
    for number, counted in enumerate(counts):
        yield GATE.put(Gate(event.id, number, event.version, predicted[number], dict(counted)))
