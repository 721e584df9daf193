"""Seasons: their events and starts, listed apart from the events, so that reading them reads no cards.

Invariant: each event has one entry, with its season and its start. The event's own transactions write it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from datastore.dynamo import Table
from datastore.dynamo.entity import Entity, Key


@dataclass(frozen=True, slots=True)
class SeasonEntry:
    """An event of a season."""

    season: str
    event: str
    starts_at: datetime


SEASON_ENTRY = Entity(SeasonEntry, Key("SEASONS", "{season}#{event}"))


async def read_entries(table: Table, season: str | None = None) -> list[SeasonEntry]:
    """The events of one season or of all, in the order of the seasons' names; consistent."""
    partition = SEASON_ENTRY.on() if season is None else SEASON_ENTRY.on(season=season)
    return [entry async for entry in table.iterate(partition, consistent=True)]
