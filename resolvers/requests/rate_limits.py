"""Rate limits of one process: so many hits of a key per second, minute, hour or day (see `RateLimit`).

With four processes, a limit of 60/minute admits four times as many: it stops floods and does not count exactly. The
limits per network address hold over all processes (`resolvers.requests.address_limits`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import cache
from math import ceil
from typing import NamedTuple

from datastore.dynamo import RateLimit
from datastore.refusals import RateLimited
from datastore.values.seal import Seal
from resolvers.values.network_addresses import network

OFF = "0"
"""In place of a rate: no limit."""

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_RATE = re.compile(rf"([1-9][0-9]{{0,6}})/({'|'.join(_SECONDS)})")


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


class Rates:
    """The limits of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limits: dict[str, RateLimit] = {}

    def hit(self, limit: str, *key: str) -> None:
        """Count a hit of a key; RateLimited, with the time until the next is admitted, if the limit is reached."""
        rate_limit = self._limits.get(limit)
        if rate_limit is None:
            rate_limit = self._limits[limit] = RateLimit(*parse_rate(limit))
        wait = rate_limit.hit(key, self._clock())
        if wait > 0.0:
            raise RateLimited(retry_after=ceil(wait * 10) / 10)


def address_hash(seal: Seal, address: str) -> str:
    """The keyed hash that stands for an address in the table."""
    return seal.keyed_hash("address", network(address).encode()).hex()
