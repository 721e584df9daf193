"""Turns for work that would block the event loop: checking and compiling documents takes up to 50 ms each.

The work of a turn runs in a thread, where Python lets the event loop interrupt it (server/http/process.py). One turn
follows the other, with a pause as long as the turn between them: such work takes at most half of a process, however
many new documents a client sends. Requests for the same document wait for the same turn.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

from datastore.dynamo import SingleFlight, shared_context

Result = TypeVar("Result")


class Turns:
    """Which work may run next, first come, first served."""

    def __init__(self) -> None:
        self.waiting = 0
        """The pieces of work that wait for their turn, or for the end of it."""
        self._work: SingleFlight[Hashable, Any] = SingleFlight(shared_context)
        self._lock = asyncio.Lock()
        self._next_at = 0.0

    def __contains__(self, key: Hashable) -> bool:
        """Whether this work waits for its turn already."""
        return key in self._work

    async def take(self, key: Hashable, work: Callable[[], Result]) -> Result:
        """The result of this key's work, done in a turn of its own, once for all who ask meanwhile."""
        result: Result = await self._work.run(key, partial(self._carry_out, work))
        return result

    async def _carry_out(self, work: Callable[[], Result]) -> Result:
        self.waiting += 1
        try:
            async with self._lock:
                await asyncio.sleep(max(0.0, self._next_at - time.perf_counter()))
                began = time.perf_counter()
                try:
                    return await asyncio.to_thread(_without_collector, work)
                finally:
                    ended = time.perf_counter()
                    self._next_at = ended + (ended - began)
        finally:
            self.waiting -= 1


def _without_collector(work: Callable[[], Result]) -> Result:
    """The work's result. The garbage collector rests meanwhile, for a moment.

    What the work uses is needed until its end. The collector would only move it to where it looks least often, so that
    it stayed in memory long after.
    """
    gc.disable()
    try:
        return work()
    finally:
        gc.enable()
