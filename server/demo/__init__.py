"""Demo data: every part plants its own once, and says what it planted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from datastore.dynamo import Entity, Key
from resolvers.context import Services
from server.demo import comments, people, pickem, vocabulary, voting


@dataclass(frozen=True, slots=True)
class Planted:
    """A part whose demo data is in the table."""

    part: str
    at: datetime


PLANTED = Entity(Planted, Key("DEMO#{part}", "DEMO"))

PARTS: Mapping[str, Callable[[Services], Awaitable[str]]] = {
    "people": people.plant,
    "voting": voting.plant,
    "pickem": pickem.plant,
    "comments": comments.plant,
    "vocabulary": vocabulary.plant,
}


async def plant(services: Services) -> AsyncIterator[str]:
    """Plants what is not there yet. A part that was interrupted is planted again from its beginning."""
    for part, planting in PARTS.items():
        if await services.table.get(PLANTED.at(part=part), consistent=True) is None:
            yield await planting(services)
            await services.table.write(PLANTED.put(Planted(part, services.clock())))
