"""Profile screens: the records that several fields of one member need, read in one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from datastore import vocabulary as vocabulary_store
from datastore.vocabulary import ProfileScreen
from resolvers.loading.loader import Loader, read_each

if TYPE_CHECKING:
    from resolvers.requests.context import Services


def profile_screens(services: Services) -> Loader[tuple[str, date], ProfileScreen]:
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

    loader: Loader[tuple[str, date], ProfileScreen] = Loader(read, fresh=True)
    return services.loaders.add("profile_screens", loader)
