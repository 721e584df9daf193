"""Every profile stands in its shard of the index of members, and nowhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator

from datastore.people import PROFILE, SHARDS
from resolvers.context import Services


async def breaches(services: Services) -> AsyncIterator[str]:
    profiles, listed = 0, 0
    async for _ in services.table.scan(PROFILE):
        profiles += 1
    for shard in range(SHARDS):
        async for profile in services.table.iterate(PROFILE.on("gsi1", shard=shard), PROFILE):
            listed += 1
            if profile.shard != shard:
                yield f"people: {profile.user} is listed in shard {shard} and belongs into {profile.shard}"
    if listed != profiles:
        yield f"people: {profiles} profiles, but {listed} in the index of members"
