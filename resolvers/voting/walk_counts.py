"""Counting again how many pairs a voter has seen, after contenders have retired or were restored.

A walk through 30,000 pairs takes up to 200 ms to count. So the event loop counts one slice of 1.5 ms at a time for all
requests together, and keeps each result for the requests that follow: drawing and reading progress store nothing.

After a restoration the votes of the voter's cycle are read first, once for each walk, up to `_MOST_VOTES` of them.
"""

from __future__ import annotations

import asyncio
from hashlib import blake2b
from math import inf
from typing import NamedTuple

from datastore import voting as voting_store
from datastore.voting.pair_walk import PairWalk
from datastore.voting.pairs import EligibleContenders
from resolvers.requests.context import Services

_CHEAP = 50
"""Pairs that are counted at once, in 0.3 ms."""

_MOST = 1000
"""Walks kept, each of at most 4 KB."""

_MOST_VOTES = 4000
"""About 1 MB. Voters with more in their cycle get a restored contender's passed pairs in the next one."""


class _Count(NamedTuple):
    voter: str
    board: str
    walk: PairWalk
    eligible: EligibleContenders


def voter_seed(voter: str, board: str) -> bytes:
    """The seed of a voter's order of pairs on a board."""
    return blake2b(f"{board}#{voter}".encode(), digest_size=32).digest()


class WalkCounts:
    """The walks that this process has counted again."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._turn = asyncio.Lock()
        self._counts = services.cache.each("walk_counts", self._count, age=inf, most=_MOST)

    async def counted(self, voter: str, board: str, walk: PairWalk, eligible: EligibleContenders) -> PairWalk:
        """The walk as `PairWalk.recounted` returns it."""
        if walk.recount_cost(eligible) <= _CHEAP and not walk.needs_seen(eligible):
            return walk.recounted(voter_seed(voter, board), eligible)
        counted = await self._counts.load(_Count(voter, board, walk, eligible))
        assert counted is not None  # noqa: S101 - counting always has a result
        return counted

    async def _count(self, wanted: _Count) -> PairWalk:
        seen = await self._read_seen(wanted) if wanted.walk.needs_seen(wanted.eligible) else None
        seed = voter_seed(wanted.voter, wanted.board)
        counting = wanted.walk.recounting(seed, wanted.eligible, seen)
        while True:
            async with self._turn:  # one slice in each turn of the event loop
                try:
                    next(counting)
                except StopIteration as counted:
                    walk: PairWalk = counted.value
                    return walk
                await asyncio.sleep(0)

    async def _read_seen(self, wanted: _Count) -> frozenset[tuple[int, int]] | None:
        if wanted.walk.seen > _MOST_VOTES:
            return None
        return await voting_store.read_seen_pairs(self._services.table, wanted.voter, wanted.board, wanted.walk.cycle)
