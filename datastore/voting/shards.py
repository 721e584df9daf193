"""How many shards a board's tallies are spread over, so that simultaneous votes seldom write to the same item.

With R votes a second, T seconds a transaction, n contenders and S shards, about one vote in n·S / (4·R·T) conflicts
with another. `shard_count` keeps that near one in ten. All votes of one voter go to one shard.
"""

from __future__ import annotations

import zlib
from math import ceil

MAX_SHARDS = 64
_TRANSACTION_SECONDS = 0.008
_CONFLICTS = 0.1


def shard_count(contenders: int, rate: int) -> int:
    """The shards that votes are written to: S = ⌈4·R·T / (n · one in ten)⌉, 1 to 64."""
    needed = ceil(4 * rate * _TRANSACTION_SECONDS / (_CONFLICTS * max(2, contenders)))
    return max(1, min(MAX_SHARDS, needed))


def voter_shard(voter: str, shards: int) -> int:
    return zlib.crc32(voter.encode()) % shards
