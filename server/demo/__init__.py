"""Demo data: a fan club's members, masks to vote on, a season to predict, two leagues, comments, word lists, activity.

The texts and pictures are files in `data/`. Each part is added once and reports what it added.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from datastore.whole import layout as layout_store
from resolvers.requests.context import Services
from server.demo import comments, people, pickem, vocabulary, voting

PARTS: Mapping[str, Callable[[Services], Awaitable[str]]] = {
    "people": people.seed,
    "voting": voting.seed,
    "pickem": pickem.seed,
    "points": pickem.seed_points,
    "leagues": pickem.seed_leagues,
    "comments": comments.seed,
    "vocabulary": vocabulary.seed,
    "activity": people.seed_activity,
}


async def seed(services: Services) -> AsyncIterator[str]:
    """Add the parts that are missing. An interrupted part starts again from its beginning."""
    for part, seed_part in PARTS.items():
        if not await layout_store.is_seeded(services.table, part):
            yield await seed_part(services)
            await layout_store.mark_seeded(services.table, part, services.clock())
