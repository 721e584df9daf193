"""`ringside audit`: what must hold in the table at any time, looked up record by record.

Every part names its invariants in a function that yields a sentence for each breach it finds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping

from resolvers.context import Services
from server.audit import comments, people, pickem, vocabulary, voting

PARTS: Mapping[str, Callable[[Services], AsyncIterator[str]]] = {
    "people": people.breaches,
    "voting": voting.breaches,
    "pickem": pickem.breaches,
    "comments": comments.breaches,
    "vocabulary": vocabulary.breaches,
}


async def breaches(services: Services) -> AsyncIterator[str]:
    for part in PARTS.values():
        async for breach in part(services):
            yield breach
