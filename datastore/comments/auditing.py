"""Reads for `ringside audit`: every record of comments, and what the indexes list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from datastore.comments.counts import TALLY, Tally
from datastore.comments.leaders import LEADER, Leader
from datastore.comments.pointers import LATEST_SHARDS, POINTER, Pointer
from datastore.comments.records import COMMENT, HELD, Comment, Status
from datastore.dynamo import Table
from datastore.dynamo.entity import Partition


def all_records(table: Table) -> AsyncIterator[Comment | Tally | Leader | Pointer]:
    return table.scan(COMMENT, HELD, TALLY, LEADER, POINTER)


async def listed_comments(table: Table, product: str, *, language: str | None = None, rating: int | None = None) -> int:
    """How many comments the index of a language, a rating or both lists."""
    key_values = {"product": product, "language": language, "rating": rating}
    index = "gsi2" if language is None else "gsi1" if rating is None else "gsi3"
    return await _count(
        table, COMMENT.on(index, **{name: value for name, value in key_values.items() if value is not None})
    )


async def listed_held(table: Table, status: Status) -> int:
    """How many comments a moderator's queue lists."""
    return await _count(table, HELD.on("gsi1", status=status))


async def listed_latest(table: Table) -> int:
    """How many comments the index of the site's latest ones lists."""
    return sum([await _count(table, POINTER.on("gsi1", shard=shard)) for shard in range(LATEST_SHARDS)])


async def _count(table: Table, partition: Partition[Any]) -> int:
    return len([None async for _ in table.iterate(partition)])
