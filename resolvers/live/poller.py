"""One poll for any number of listeners: it begins with the first listener and ends with the last.

A look that fails is logged and repeated. The poll follows the rule of `resolvers.loading`: it runs in a context of
its own, a listener may leave at any time without affecting the others, and the end of the process ends the poll and all
waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import structlog

from datastore.dynamo import SingleFlight, shared_context
from resolvers.live.background import unless_failed

_log = structlog.get_logger("ringside.live")


class Poller:
    """Calls `look` repeatedly, with pauses of `seconds`. A look returns whether it found news."""

    def __init__(self, look: Callable[[], Awaitable[bool]], seconds: float) -> None:
        self._look = look
        self._seconds = seconds
        self._listeners = 0
        self._polls: SingleFlight[None, None] = SingleFlight(shared_context)
        self._news = asyncio.Condition()
        self._wanted = asyncio.Event()
        self._closed = False

    @property
    def idle(self) -> bool:
        """Whether there are no listeners."""
        return self._listeners == 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        self._listeners += 1
        self._polls.begin(None, self._poll)
        try:
            yield
        finally:
            self._listeners -= 1
            if self.idle:
                await self._polls.close()

    def hurry(self) -> None:
        """End the present pause, so that the next look begins at once."""
        self._wanted.set()

    async def until(self, condition: Callable[[], bool]) -> bool:
        """Wait until a look has made the condition true; False if the process ends before."""
        async with self._news:
            await self._news.wait_for(lambda: self._closed or condition())
        return not self._closed

    async def close(self) -> None:
        """End the poll, and all waiting."""
        self._closed = True
        await self._polls.close()
        await self._tell()

    async def _poll(self) -> None:
        while True:
            if await unless_failed(self._look(), "a topic could not be looked at; trying again", _log):
                await self._tell()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await self._wanted.wait()
            self._wanted.clear()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()
