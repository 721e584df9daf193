"""Profile screens: the records that several fields of one member need, read in one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from datastore import vocabulary as vocabulary_store
from datastore.dynamo import PageRequest, Reads, read_each
from datastore.vocabulary import DateRange, ProfileScreen
from resolvers.requests.context import Context, Services

SCREEN_AGE = timedelta(days=31)
"""How far back a profile screen reaches; older days are read connection by connection."""


async def load_screen(ctx: Context, user: str, dates: DateRange, request: PageRequest) -> ProfileScreen | None:
    """The profile screen, if it contains the requested page: a first page of recent days."""
    if dates.since is None or request.position is not None or dates.since < ctx.now().date() - SCREEN_AGE:
        return None
    return await ctx.services.get(profile_screens).load((user, dates.since))


def profile_screens(services: Services) -> Reads[tuple[str, date], ProfileScreen]:
    """Screens by member and first day; none for a member whose screen is too large for one read.

    All fields that load a member's screen at the same time share one read, from the earliest of their days.
    """

    async def read(keys: Sequence[tuple[str, date]]) -> Mapping[tuple[str, date], ProfileScreen | Exception]:
        earliest: dict[str, date] = {}
        for user, since in keys:
            earliest[user] = min(since, earliest.get(user, since))
        screens = await read_each(
            list(earliest), lambda user: vocabulary_store.read_profile_screen(services.table, user, earliest[user])
        )
        return {(user, since): screens[user] for user, since in keys if user in screens}

    return services.cache.batches("profile_screens", read)
