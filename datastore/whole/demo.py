"""The parts of the demo data that are complete.

| wanted                             | read or write                     | requests |
|------------------------------------|-----------------------------------|----------|
| whether a part is complete         | GetItem DEMO#<part> DEMO          | 1        |
| mark a part as complete            | PutItem DEMO#<part> DEMO          | 1        |
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from datastore.dynamo import Table
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key


@dataclass(frozen=True, slots=True)
class DemoPart:
    """A part whose demo data is complete."""

    part: str
    at: datetime


DEMO_PART = Entity(DemoPart, Key("DEMO#{part}", "DEMO"))


async def is_seeded(table: Table, part: str) -> bool:
    return await table.get(DEMO_PART.at(part=part), consistent=True) is not None


async def mark_seeded(table: Table, part: str, now: datetime) -> None:
    await table.write(DEMO_PART.put(DemoPart(part, now)))
