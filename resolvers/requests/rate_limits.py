"""Rate limits of one process: so many hits of a key per second, minute, hour or day.

Invariant: a hit is admitted if, since every earlier moment, the admitted hits are at most the limit and what it allows
in the time since: limit · (1 + seconds since / period). So a key that was idle for a period may hit as often as the
limit at once, and then evenly. A key costs one number and a hit constant time: the number is the moment at which the
key has its whole limit again, and a key past that moment needs none.

With four processes, a limit of 60/minute admits four times as many: it stops floods and does not count exactly. The
limits per network address hold over all processes (`resolvers.requests.address_limits`).
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from math import ceil
from typing import NamedTuple

from datastore.refusals import RateLimited
from datastore.values.seal import Seal
from resolvers.values.network_addresses import network

MAX_KEYS = 50_000
"""Keys per limit, some 10 MB; beyond that, those that have not hit for the longest time are forgotten."""

OFF = "0"
"""In place of a rate: no limit."""

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_RATE = re.compile(rf"([1-9][0-9]{{0,6}})/({'|'.join(_SECONDS)})")
_TOLERANCE = 1e-6
"""Seconds, for rounding."""


class Rate(NamedTuple):
    """So many hits per period of so many seconds."""

    limit: int
    seconds: int


@cache
def parse_rate(text: str) -> Rate:
    """The rate in a setting such as 60/minute, or ValueError."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a number per second, minute, hour or day")
    return Rate(int(match[1]), _SECONDS[match[2]])


class RateLimit:
    """One rate and the hits of its keys."""

    def __init__(self, rate: Rate) -> None:
        self._seconds = rate.seconds
        self._interval = rate.seconds / rate.limit
        self._whole_at: OrderedDict[tuple[str, ...], float] = OrderedDict()
        """When each key has its whole limit again, in the order of their latest hits."""

    def hit(self, key: tuple[str, ...], now: float) -> float:
        """Count a hit if it is admitted and return 0; otherwise return the seconds until the next is admitted."""
        whole_at = max(now, self._whole_at.get(key, now)) + self._interval
        wait = whole_at - now - self._seconds
        if wait > _TOLERANCE:
            return wait
        self._whole_at[key] = whole_at
        self._whole_at.move_to_end(key)
        self._forget(now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Two keys at a hit, so that idle keys are forgotten faster than new ones come."""
        for _ in range(2):
            oldest, whole_at = next(iter(self._whole_at.items()))
            if whole_at <= now or len(self._whole_at) > MAX_KEYS:
                del self._whole_at[oldest]


class Rates:
    """The limits of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limits: dict[str, RateLimit] = {}

    def hit(self, limit: str, *key: str) -> None:
        """Count a hit of a key; RateLimited, with the time until the next is admitted, if the limit is reached."""
        rate_limit = self._limits.get(limit)
        if rate_limit is None:
            rate_limit = self._limits[limit] = RateLimit(parse_rate(limit))
        wait = rate_limit.hit(key, self._clock())
        if wait > 0.0:
            raise RateLimited(retry_after=ceil(wait * 10) / 10)


def address_hash(seal: Seal, address: str) -> str:
    """The keyed hash that stands for an address in the table."""
    return seal.keyed_hash("address", network(address).encode()).hex()
