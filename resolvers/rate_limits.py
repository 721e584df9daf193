"""Rate limits: moving windows, counted per process.

With four processes, a limit of 60/minute admits up to 240: it stops floods and does not count exactly.
"""

from __future__ import annotations

import time
from functools import cache

from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

from datastore.refusals import RateLimited


@cache
def _item(limit: str) -> RateLimitItem:
    return parse(limit)


class Rates:
    """The windows of one process."""

    def __init__(self) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    async def hit(self, limit: str, *key: str) -> None:
        """Counts a hit of a key; RateLimited, with the time until the next is admitted, if the limit is reached."""
        item = _item(limit)
        if await self._limiter.hit(item, *key):
            return
        window = await self._limiter.get_window_stats(item, *key)
        raise RateLimited(retry_after=max(0.1, round(window.reset_time - time.time(), 1)))
