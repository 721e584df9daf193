"""Recently created objects: an index may not show them yet, but taking back and exporting must miss none.

| wanted                    | read or write                        | requests |
|---------------------------|--------------------------------------|----------|
| note a board or an event  | PutItem, before it is created        | 1        |
| what was noted lately     | Query CREATED#<kind>, consistent     | 1        |

Boards and events are found by an index, which is behind for a moment. Each is noted here for an hour, far longer than
an index is behind. A note may name what was never created.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key

if TYPE_CHECKING:
    from datastore.dynamo import Table

LIFETIME = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Created:
    """The id of a board or an event that is about to be created."""

    kind: str
    id: str
    expires: datetime


CREATED = Entity(Created, Key("CREATED#{kind}", "{id}"), ttl="expires")


async def note_created(table: Table, kind: str, id_: str, now: datetime) -> None:
    await table.write(CREATED.put(Created(kind, id_, now + LIFETIME)))


async def read_created(table: Table, kind: str) -> set[str]:
    """The ids that were noted within the last hour, or a little before."""
    return {created.id async for created in table.iterate(CREATED.on(kind=kind), consistent=True)}
