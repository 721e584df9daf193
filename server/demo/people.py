"""Two hundred members with made-up names."""

from __future__ import annotations

from datetime import timedelta

from datastore.people import PROFILE, Profile
from resolvers.context import Services

_FIRST = (
    "Ada", "Amara", "Anouk", "Bo", "Carmen", "Chidi", "Dara", "Elif", "Emil", "Farah", "Greta", "Hana", "Ines", "Ivo",
    "Jia", "Kofi", "Lena", "Luca", "Mei", "Mira", "Nadia", "Noor", "Olu", "Pia", "Quinn",
)  # fmt: skip
_LAST = ("Abara", "Berg", "Castillo", "Dubois", "Ekman", "Fontana", "Grau", "Haddad")

MEMBERS = tuple((f"{first}-{last}".lower(), f"{first} {last}") for last in _LAST for first in _FIRST)


async def plant(services: Services) -> str:
    now = services.clock()
    profiles = (
        Profile(
            user=user,
            name=name,
            joined_at=now - timedelta(days=400 - place),
            email=f"{user}@example.org",
            time_zone="Europe/Vienna",
        )
        for place, (user, name) in enumerate(MEMBERS)
    )
    await services.table.write_many(PROFILE.put(profile) for profile in profiles)
    return f"{len(MEMBERS)} members"
