"""What every process keeps whole: suspensions and roles, hold rules, webhooks. It is read again once it has changed."""

from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import TypeAlias

import structlog

from datastore.changes.occurrences import Journal
from datastore.changes.revisions import Watched, read_revisions
from datastore.dynamo import Table
from resolvers.live.background import Repeated, uneven, unless_failed

Refresh: TypeAlias = Callable[[], Awaitable[object]]

LOOK_SECONDS = 5.0
"""How often a process looks for what others have changed, at the latest."""

_log = structlog.get_logger("ringside.watch")


class Watch(Repeated):
    """Looks for new revisions, and lets what has one be read again."""

    def __init__(self, table: Table, journal: Journal, refreshes: Mapping[Watched, Refresh]) -> None:
        self._table = table
        self._journal = journal
        self._refreshes = refreshes
        self._refreshed: dict[Watched, int] = {}
        self._certain: dict[Watched, int] = {}
        super().__init__(self.look, lambda: uneven(LOOK_SECONDS, 0.8), "revisions could not be read", _log)

    async def look(self) -> None:
        asked_at = monotonic()
        revisions = await read_revisions(self._table)
        for watched in self._refreshes:
            if (revision := getattr(revisions, watched)) != self._certain.get(watched):
                await unless_failed(
                    self._refresh(watched, revision), "something new could not be read", _log, watched=watched
                )
        if revisions.webhooks == self._certain.get("webhooks"):
            self._journal.confirm(asked_at)

    async def _refresh(self, watched: Watched, revision: int) -> None:
        """Twice for each revision: while a transaction ends, its items may be seen one after the other."""
        await self._refreshes[watched]()
        if revision == self._refreshed.get(watched):
            self._certain[watched] = revision
        self._refreshed[watched] = revision
