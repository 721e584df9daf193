"""Removing a member's predictions: as if they had never been submitted.

| wanted                          | read or write                                                | requests         |
|---------------------------------|--------------------------------------------------------------|------------------|
| a member's predictions, exactly | BatchGetItem EVENT#<id>#<shard> USER#<user>, consistent      | 1 for 100 events |
| remove one                      | a transaction: prediction, gate, standing                     | 1                |

The index of a member's predictions is behind, so every event is asked instead. The transaction also uncounts the picks
at the gate and takes the points out of the standing. What is counted from predictions, the histograms of the event and
of the season, is for another scoring to count again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING

from datastore.changes.kinds import Kind
from datastore.dynamo import Table, chunks, optimistic
from datastore.dynamo.conditions import where
from datastore.people.profiles import member_shard
from datastore.pickem.events import read_matches
from datastore.pickem.gates import GATE, gate_number
from datastore.pickem.predictions import PREDICTION, Prediction, Share, as_read, pick_counters
from datastore.pickem.standings import Standing, read_counted, standing_write

if TYPE_CHECKING:
    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo.writes import Write
    from datastore.pickem.event_records import Event, Match

_EVENTS_AT_ONCE = 100


async def predictions_in(table: Table, user: str, events: Sequence[Event]) -> AsyncIterator[tuple[Event, Prediction]]:
    """A member's predictions for these events, each with its event."""
    shard = member_shard(user)
    for some in chunks(events, _EVENTS_AT_ONCE):
        keys = [PREDICTION.at(event=event.id, shard=shard, user=user) for event in some]
        for event, prediction in zip(some, await table.get_many(keys, consistent=True), strict=True):
            if prediction is not None:
                yield event, prediction


async def remove_prediction(table: Table, event: Event, user: str, unit: UnitOfWork) -> None:
    """Remove a member's prediction for an event, with its picks and points."""

    async def remove(counted: tuple[Prediction | None, Standing | None]) -> None:
        prediction, standing = counted
        if prediction is None:
            return
        card = await read_matches(table, event.id)  # after the prediction, which may pick a match that was just added
        occurrence = unit.occurred(Kind.PREDICTION_VOIDED, f"Prediction:{prediction.node_key}", about=user)
        await unit.apply(table, *_removal(prediction, standing, card), *occurrence)

    await optimistic(lambda: read_counted(table, event.id, user, event.season), remove, idempotent=True)


def _removal(prediction: Prediction, standing: Standing | None, card: Mapping[str, Match]) -> list[Write]:
    counters = pick_counters(prediction, card)
    uncounted = {"predictions": -1, **{name: -counters.count(name) for name in counters}}
    gate = GATE.at(event=prediction.event, number=gate_number(prediction.user))
    writes: list[Write] = [
        PREDICTION.delete(PREDICTION.item_key(prediction), when=as_read(prediction)),
        GATE.change(gate, add=uncounted),
    ]
    if prediction.share is None or not prediction.share.counts or standing is None:
        return writes
    after = standing.credited(prediction.share, Share.taken_back(prediction.share.generation))
    return [*writes, standing_write(after, where(version=standing.version))]
