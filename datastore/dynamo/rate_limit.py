"""A rate, and how often its keys have hit.

Invariant: a hit is admitted if, since every earlier moment, the admitted hits are at most the limit and what it allows
in the time since: limit · (1 + seconds since / period). So a key that was idle for a period may hit as often as the
limit at once, and then evenly. A key costs one number and a hit constant time: the number is the moment at which the
key has its whole limit again, and a key past that moment needs none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

MAX_KEYS = 50_000
"""Keys per limit, some 10 MB; beyond that, those that have not hit for the longest time are forgotten."""
_TOLERANCE = 1e-6
"""Seconds, for rounding."""


class RateLimit:
    """So many hits of each key per period of so many seconds."""

    def __init__(self, limit: int, seconds: float) -> None:
        self._seconds = seconds
        self._interval = seconds / limit
        self._whole_at: OrderedDict[Hashable, float] = OrderedDict()
        """When each key has its whole limit again, in the order of their latest hits."""

    def wait(self, key: Hashable, now: float) -> float:
        """The seconds until the next hit of a key is admitted; 0 if it is now."""
        wait = max(now, self._whole_at.get(key, now)) + self._interval - now - self._seconds
        return wait if wait > _TOLERANCE else 0.0

    def hit(self, key: Hashable, now: float) -> float:
        """Count a hit if it is admitted and return 0; otherwise return the seconds until the next is admitted."""
        wait = self.wait(key, now)
        if wait:
            return wait
        self._whole_at[key] = max(now, self._whole_at.get(key, now)) + self._interval
        self._whole_at.move_to_end(key)
        self._forget(now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Two keys at a hit, so that idle keys are forgotten faster than new ones come."""
        for _ in range(2):
            oldest, whole_at = next(iter(self._whole_at.items()))
            if whole_at <= now or len(self._whole_at) > MAX_KEYS:
                del self._whole_at[oldest]
