"""How many shards a board's tallies are spread over. Two rules apply, and the larger number wins.

Conflicts: with R votes a second, T seconds a transaction, n contenders and S shards, about one vote in n·S / (4·R·T)
conflicts with another. `shard_count` keeps that near one in ten.

Units: a vote's transaction writes three counters of one shard, which are 6 write units under one partition key, and a
key takes 1,000 a second. Shards are planned for 500, because voters are spread by chance: the fullest of 60 shards
then stays below 700 (three standard deviations of 83 votes).

All votes of one voter go to one shard.
"""

from __future__ import annotations

from math import ceil

MAX_SHARDS = 64
_TRANSACTION_SECONDS = 0.008
_CONFLICTS = 0.1
_UNITS_A_VOTE = 6
_UNITS_A_SHARD = 500


def shard_count(contenders: int, rate: int) -> int:
    """The shards that votes are written to: S = ⌈max(4·R·T / (n · one in ten), 6·R / 500)⌉, 1 to 64."""
    without_conflicts = ceil(4 * rate * _TRANSACTION_SECONDS / (_CONFLICTS * max(2, contenders)))
    without_heat = ceil(rate * _UNITS_A_VOTE / _UNITS_A_SHARD)
    return max(1, min(MAX_SHARDS, max(without_conflicts, without_heat)))
