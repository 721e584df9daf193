"""Which shard an item belongs to: the one of several items or partitions that its writes go to."""

from __future__ import annotations

import zlib


def shard_of(text: str, shards: int) -> int:
    """The shard of what has this id or name. Keys in the table contain it, so it never changes."""
    return zlib.crc32(text.encode()) % shards
