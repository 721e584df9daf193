"""Two hundred members with made-up names, what they did, and the files that all parts of the demo read."""

import asyncio
import csv
import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson

from datastore.journal.usage import Activity, report_activity
from datastore.people.identities import SignInMethod, of_issuer, seed_members
from datastore.people.profiles import Profile
from datastore.values.ids import derived_id
from resolvers.requests.context import Services

# ── files ──
# Texts and pictures, as they lie in `data/`.

_FOLDER: Final = Path(__file__).with_name("data")


def read_json(name: str) -> Any:
    return orjson.loads((_FOLDER / name).read_bytes())


def read_rows(name: str) -> list[Mapping[str, str]]:
    """The rows of a tab-separated file whose first line names the columns."""
    with (_FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def read_texts(folder: str) -> list[str]:
    """The files of a folder, in the order of their names."""
    return [file.read_text(encoding="utf-8").strip() for file in sorted((_FOLDER / folder).iterdir())]


# ── members ──

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


# ── activity ──
# What the fan club did on each of the last days, for the plots of the admin pages: made up, more at weekends.

DAYS = 29
PER_DAY = {"votes": 90, "comments": 12, "predictions": 8, "quizzes": 20, "new_members": 3}


async def seed_activity(services: Services) -> str:
    today = services.clock().date()
    days = [today - timedelta(days=before) for before in range(1, DAYS + 1)]
    await asyncio.gather(*(report_activity(services.table, _activity(day)) for day in days))
    return f"Added what was done on {DAYS} days."


def _activity(day: date) -> Activity:
    drawn = random.Random(day.toordinal())
    most = 1.6 if day.weekday() >= 5 else 1.0  # noqa: PLR2004 - Saturday
    counted: dict[str, Any] = {what: round(number * drawn.uniform(0.4, most)) for what, number in PER_DAY.items()}
    return Activity(day, "demo", **counted)
