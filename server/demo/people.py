"""Two hundred members with made-up names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from datastore.people.identities import SignInMethod, of_issuer, seed_members
from datastore.people.profiles import Profile
from datastore.values.ids import derived_id
from resolvers.requests.context import Services
from server.demo.files import read_json

_NAMES = read_json("names.json")

_JOINED = datetime(2025, 1, 1, tzinfo=UTC)


def _member(name: str) -> tuple[str, str]:
    return derived_id(_JOINED, f"demo member {name}".encode()), name


MEMBERS = tuple(_member(f"{first} {last}") for last in _NAMES["last"] for first in _NAMES["first"])
"""Id and name of each."""


def user_of(name: str) -> str:
    """Whom `ringside token --user` names to sign in as the member with this name."""
    return name.lower().replace(" ", "-")


async def seed(services: Services) -> str:
    now = services.clock()
    profiles = (
        Profile(
            user=user,
            name=name,
            joined_at=now - timedelta(days=400 - index),
            email=f"{user_of(name)}@example.org",
            time_zone="Europe/Vienna",
        )
        for index, (user, name) in enumerate(MEMBERS)
    )
    await seed_members(
        services.table, ((profile, of_issuer(SignInMethod.SITE, "", user_of(profile.name))) for profile in profiles)
    )
    return f"{len(MEMBERS)} members"
