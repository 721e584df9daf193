"""`ringside audit`: checks the invariants of the stored data, record by record.

Each part has a function that yields a sentence for every breach it finds.
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
    for check_part in PARTS.values():
        async for breach in check_part(services):
            yield breach
