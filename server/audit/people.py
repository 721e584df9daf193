"""The index of members lists every profile once, in its own shard; a profile names the identities that lead to it."""

from collections import Counter
from collections.abc import AsyncIterator

from datastore.people import identities as identity_store
from datastore.people import profiles as profile_store
from datastore.people.profiles import Profile
from resolvers.requests.context import Services


async def breaches(services: Services) -> AsyncIterator[str]:
    stored, now = 0, services.clock()
    unmatched: Counter[str] = Counter()
    async for record in identity_store.all_members(services.table):
        stored += isinstance(record, Profile)
        if record.expires is not None and record.expires <= now:
            continue  # a guest who ended: the engine removes profile and identity one after the other
        if isinstance(record, Profile):
            unmatched[record.user] += sum(map(hash, record.identities))
        elif record.user is not None:
            unmatched[record.user] -= hash(str(record.key))
    for user, difference in sorted(unmatched.items()):
        if difference:
            # The number changes from pass to pass while the member changes how they sign in.
            yield f"people: the identities that lead to {user} differ from those of the profile by {difference:x}"
    listed = 0
    async for shard, profile in profile_store.listed_profiles(services.table):
        listed += 1
        if profile.shard != shard:
            yield f"people: {profile.user} is listed in shard {shard} instead of {profile.shard}"
    if listed != stored:
        yield f"people: {stored} profiles, but {listed} in the index of members"
