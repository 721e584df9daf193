"""How often somebody may do something: moving windows, per process.

A limit of 60/minute on four processes is at most four times that: it stops floods, it does not count exactly.
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

    async def hit(self, limit: str, *who: str) -> None:
        """Counts one more of these, or RateLimited with the time until the next may come. `limit`: "30/minute"."""
        item = _item(limit)
        if await self._limiter.hit(item, *who):
            return
        window = await self._limiter.get_window_stats(item, *who)
        raise RateLimited(retry_after=max(0.1, round(window.reset_time - time.time(), 1)))
