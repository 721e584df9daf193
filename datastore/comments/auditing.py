"""Reads for `ringside audit`: every record about comments, and what the indexes list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from datastore.comments import COMMENT, HELD, Comment, Status
from datastore.comments.counts import LEADER, TALLY, Leader, Tally
from datastore.comments.transfer import INTENT, Intent

if TYPE_CHECKING:
    from datastore.dynamo import Table
    from datastore.dynamo.entity import Partition


def all_records(table: Table) -> AsyncIterator[Comment | Tally | Leader | Intent]:
    return table.scan(COMMENT, HELD, TALLY, LEADER, INTENT)


async def listed_comments(table: Table, product: str, *, language: str | None = None, rating: int | None = None) -> int:
    """How many comments the index of a language, a rating or both lists."""
    given = {"product": product, "language": language, "rating": rating}
    index = "gsi2" if language is None else "gsi1" if rating is None else "gsi3"
    return await _count(table, COMMENT.on(index, **{name: value for name, value in given.items() if value is not None}))


async def listed_held(table: Table, status: Status) -> int:
    """How many comments a moderator's queue lists."""
    return await _count(table, HELD.on("gsi1", status=status))


async def _count(table: Table, partition: Partition[Comment]) -> int:
    return len([None async for _ in table.iterate(partition)])
