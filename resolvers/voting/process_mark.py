"""This process's dirty mark on one board: one item, whatever fails."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from datastore import voting as voting_store
from datastore.dynamo import DynamoError, remaining
from datastore.voting import DirtyMark

if TYPE_CHECKING:
    from resolvers.context import Services

_AHEAD = 3.0
"""Seconds for which a mark is written in advance, so that not every vote writes it."""

RENEWED_AFTER = 5.0
"""Seconds after which a mark is written again while votes are in flight, as a sign of life."""

_log = structlog.get_logger("ringside.standings")


class ProcessMark:
    """Marks a board as dirty before votes on it are acknowledged, until they are settled."""

    def __init__(self, slug: str, services: Services) -> None:
        self.process = secrets.token_hex(6)
        self._slug = slug
        self._services = services
        self._written: DirtyMark | None = None
        self._written_at = float("-inf")
        self._covers_until = float("-inf")
        """By the loop's clock; minus infinity unless the mark is known to be stored."""
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def cover(self) -> asyncio.Task[None] | None:
        """Begin to mark the board for as long as this request may last; None if it is marked already.

        A vote is written at the same time, and acknowledged after both. The task outlives a request that is cancelled.
        """
        seconds = remaining()
        if self._covers_until >= asyncio.get_running_loop().time() + seconds:
            return None
        task = asyncio.get_running_loop().create_task(self._cover(seconds))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # raised in the request that waits for it, if there is one

    async def _cover(self, seconds: float) -> None:
        async with self._writing:
            if self._covers_until < asyncio.get_running_loop().time() + seconds:
                await self._write(seconds)

    async def _write(self, seconds: float) -> None:
        now, began = self._services.clock(), asyncio.get_running_loop().time()
        since = self._written.since if self._written is not None else now
        until = now + timedelta(seconds=seconds + _AHEAD)
        mark = DirtyMark(self._slug, self.process, until, since)
        await voting_store.write_mark(self._services.table, mark)
        self._written, self._written_at, self._covers_until = mark, began, began + seconds + _AHEAD

    async def renew(self) -> None:
        """Write the mark again if it has not been for some seconds."""
        async with self._writing:
            began = asyncio.get_running_loop().time()
            if self._written is not None and began - self._written_at >= RENEWED_AFTER:
                await self._write(max(0.0, self._covers_until - began))

    async def remove(self, is_quiet: Callable[[], bool]) -> None:
        """Delete the mark, if the board still is quiet when nothing else is being written."""
        async with self._writing:
            mark = self._written
            if mark is None or not is_quiet():
                return
            # Forgotten before it is deleted: the next vote waits for the lock and marks the board again.
            self._written, self._covers_until = None, float("-inf")
            try:
                await voting_store.delete_mark(self._services.table, mark)
            except DynamoError as error:
                _log.warning("a dirty mark was not deleted; readers settle this board for a while", reason=str(error))

    async def close(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)
