"""Two hundred members with made-up names."""

from __future__ import annotations

from datetime import timedelta

from datastore.people import profiles as profile_store
from datastore.people.profiles import Profile
from resolvers.requests.context import Services
from server.demo.files import read_json

_NAMES = read_json("names.json")

MEMBERS = tuple((f"{first}-{last}".lower(), f"{first} {last}") for last in _NAMES["last"] for first in _NAMES["first"])
"""Id and name of each."""


async def seed(services: Services) -> str:
    now = services.clock()
    profiles = (
        Profile(
            user=user,
            name=name,
            joined_at=now - timedelta(days=400 - index),
            email=f"{user}@example.org",
            time_zone="Europe/Vienna",
        )
        for index, (user, name) in enumerate(MEMBERS)
    )
    await profile_store.seed_profiles(services.table, profiles)
    return f"{len(MEMBERS)} members"
