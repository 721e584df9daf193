"""`ringside audit`: checks the invariants of the stored data, record by record.

Each part has a function that yields a sentence for every suspected breach. Its reads see different moments, so writes
during the audit, and indexes that are behind, raise suspicions too. Only what all of `PASSES` passes find in the same
words is a breach: where a count is being written, its numbers change from pass to pass. After the first pass, reads are
consistent and begin without a cache. The pauses are longer than an index of DynamoDB is usually behind.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import structlog

from resolvers.requests.context import Services
from server.audit import comments, journal, people, pickem, vocabulary, voting

PARTS: Mapping[str, Callable[[Services], AsyncIterator[str]]] = {
    "people": people.breaches,
    "voting": voting.breaches,
    "pickem": pickem.breaches,
    "leagues": pickem.league_breaches,
    "comments": comments.breaches,
    "vocabulary": vocabulary.breaches,
    "journal": journal.breaches,
}
PASSES = 4
PAUSE_SECONDS = 1.0
"""Before the second pass; each further pause is a second longer, six seconds in all."""

_log = structlog.get_logger("ringside.audit")


async def find_breaches(services: Services) -> list[str]:
    return [breach for part in PARTS for breach in await _confirmed(services, part)]


async def _confirmed(services: Services, part: str) -> list[str]:
    suspects = first = await find_suspects(services, part)
    for number in range(1, PASSES):
        if not suspects:
            break
        await asyncio.sleep(PAUSE_SECONDS * number)
        again = set(await _find_again(services, part))
        suspects = [suspect for suspect in suspects if suspect in again]
    if len(suspects) < len(first):
        changed = [suspect for suspect in first if suspect not in suspects]
        _log.info("suspected breaches changed while they were checked", part=part, count=len(changed), first=changed[0])
    return suspects


async def find_suspects(services: Services, part: str) -> list[str]:
    """What one pass over a part finds: its breaches, each once, and false suspicions if others write meanwhile."""
    return list(dict.fromkeys([suspect async for suspect in PARTS[part](services)]))


async def _find_again(services: Services, part: str) -> list[str]:
    fresh = Services(services.table.consistent(), services.seal, services.policy, clock=services.clock)
    try:
        return await find_suspects(fresh, part)
    finally:
        await fresh.close()
