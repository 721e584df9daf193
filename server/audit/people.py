"""The index of members lists every profile once, in its own shard."""

from __future__ import annotations

from collections.abc import AsyncIterator

from datastore.people import profiles as profile_store
from resolvers.requests.context import Services


async def breaches(services: Services) -> AsyncIterator[str]:
    stored = 0
    async for _ in profile_store.all_profiles(services.table):
        stored += 1
    listed = 0
    async for shard, profile in profile_store.listed_profiles(services.table):
        listed += 1
        if profile.shard != shard:
            yield f"people: {profile.user} is listed in shard {shard} instead of {profile.shard}"
    if listed != stored:
        yield f"people: {stored} profiles, but {listed} in the index of members"
