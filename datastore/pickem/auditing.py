"""Reads for `ringside audit`: every prediction and standing, and what the indexes list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from datastore.people.profiles import SHARDS
from datastore.pickem.predictions import PREDICTION, RANKING_SHARDS, Prediction
from datastore.pickem.standings import STANDING, Standing

if TYPE_CHECKING:
    from datastore.dynamo import Table


async def all_predictions(table: Table, event: str) -> AsyncIterator[Prediction]:
    """The predictions for an event, shard by shard; consistent reads."""
    for shard in range(SHARDS):
        async for prediction in table.iterate(PREDICTION.on(event=event, shard=shard), consistent=True, at_once=500):
            yield prediction


def all_standings(table: Table) -> AsyncIterator[Standing]:
    """Of all seasons, in the order of the table; consistent reads."""
    return table.scan(STANDING, consistent=True)


async def listed_standings(table: Table, season: str) -> AsyncIterator[tuple[int, Standing]]:
    """Every standing in the ranking of a season, with the shard of the ranking that lists it."""
    for shard in range(RANKING_SHARDS):
        async for standing in table.iterate(STANDING.on("gsi2", season=season, ranking_shard=shard), at_once=500):
            yield shard, standing
