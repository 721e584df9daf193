"""Settling: moving a board's tallies to its contenders every two seconds while votes come in.

A process that may have counted votes leaves a dirty mark on the board first, so that another process settles them if
this one is killed. A board is settled by one task at a time per process, and not at all while nobody votes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from datastore import voting as voting_store
from datastore.dynamo import DynamoError, SingleFlight, remaining, shared_context
from datastore.voting import BoardRows

if TYPE_CHECKING:
    from datetime import datetime

    from resolvers.context import Services

SETTLING_INTERVAL = 2.0

BURST_SECONDS = 0.2
"""The delay from the first vote on a quiet board to its settling, so that a burst is settled at once."""

SHUTDOWN_SECONDS = 5.0
"""How long a stopping process waits for its votes to be settled. Their next reader settles the rest."""

_CLOCK_SKEW = timedelta(seconds=2)
"""The largest difference between the clocks of two servers."""

_MARK_AHEAD = timedelta(seconds=3)
_log = structlog.get_logger("ringside.standings")


class BoardSettler:
    """Settles the votes that this process counts on one board. `publish` takes the new rows and the previous ones."""

    def __init__(self, slug: str, services: Services, publish: Callable[[BoardRows, BoardRows | None], None]) -> None:
        self.name = secrets.token_hex(6)
        """Identifies this process in its dirty marks."""
        self._slug = slug
        self._services = services
        self._publish = publish
        self._in_flight = 0
        self._changed = False
        self._marked_until: datetime | None = None
        self._marking = asyncio.Lock()
        self._last_settling = float("-inf")
        self._rows: BoardRows | None = None
        self._loop: SingleFlight[str, None] = SingleFlight(shared_context)
        self._settlings: SingleFlight[str, bool] = SingleFlight(shared_context)

    @asynccontextmanager
    async def voting(self) -> AsyncIterator[None]:
        """Settles the votes cast inside in time, even if this process is killed."""
        self._in_flight += 1
        try:
            await self._mark_dirty()
            yield
        except BaseException:
            # The engine may still apply a vote that got no answer. Its mark stays as if its process were gone, so
            # readers of the board settle it until the mark expires.
            self.name = secrets.token_hex(6)
            self._marked_until = None
            raise
        finally:
            self._in_flight -= 1
            self._changed = True
            self._loop.begin(self._slug, self._settle_until_quiet)

    async def _mark_dirty(self) -> None:
        """Marks the board for longer than this request and all its attempts can last."""
        needed = self._services.clock() + timedelta(seconds=remaining()) + _CLOCK_SKEW
        if self._marked_until is not None and self._marked_until >= needed:
            return
        async with self._marking:
            if self._marked_until is None or self._marked_until < needed:
                until = needed + _MARK_AHEAD
                await voting_store.mark_dirty(self._services.table, self._slug, self.name, until)
                self._marked_until = until

    async def _settle_until_quiet(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._changed or self._in_flight:
                await asyncio.sleep(max(BURST_SECONDS, self._last_settling + SETTLING_INTERVAL - loop.time()))
                if await self.settle() and not (self._changed or self._in_flight):
                    await self._clear_dirty()
        finally:
            self._rows = None  # most boards are quiet most of the time

    async def _clear_dirty(self) -> None:
        async with self._marking:
            if self._changed or self._in_flight or self._marked_until is None:
                return
            # Forgotten before the mark is deleted: the next vote waits for the lock and marks the board again.
            self._marked_until = None
            try:
                await voting_store.clear_dirty(self._services.table, self._slug, self.name)
            except DynamoError as error:
                _log.warning("a dirty mark was not deleted; readers settle this board for a while", reason=str(error))

    async def settle(self) -> bool:
        """Settles the board or waits for the settling under way. Returns whether all earlier votes are settled."""
        return await self._settlings.run(self._slug, self._settle)

    @property
    def is_settling(self) -> bool:
        return self._slug in self._settlings

    async def settle_anew(self) -> None:
        """A settling that starts after this call, so that it includes what was just written."""
        if self.is_settling:
            await self.settle()
        await self.settle()

    async def _settle(self) -> bool:
        self._last_settling = asyncio.get_running_loop().time()
        self._changed = False
        try:
            rows = await voting_store.settle(self._services.table, self._slug, self._services.clock(), self._rows)
        except DynamoError as error:
            _log.warning("a board could not be settled; trying again", board=self._slug, reason=str(error))
            self._changed = True
            return False
        except Exception:  # noqa: BLE001 - a fault must not end the settling of later votes
            _log.exception("a board could not be settled; trying again", board=self._slug)
            self._changed = True
            return False
        if rows is None:
            return True
        self._publish(rows, self._rows)
        self._rows = rows
        if not rows.complete:
            self._changed = True
            self._loop.begin(self._slug, self._settle_until_quiet)
        return rows.complete

    async def close(self) -> None:
        if self._slug not in self._loop:
            return
        await self._loop.close()
        try:
            async with asyncio.timeout(SHUTDOWN_SECONDS):
                await self.settle_anew()
                if not self._changed:
                    await self._clear_dirty()
        except TimeoutError:
            _log.warning("a board was left unsettled; its next reader settles it", board=self._slug)
        await self._settlings.close()
