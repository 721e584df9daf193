"""A process that is killed at one of its writes: the write is applied, and everything after it never happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from datastore.dynamo import Table

WRITES = ("put_item", "update_item", "delete_item", "transact_write_items", "batch_write_item")


class Killed(BaseException):
    """Nothing handles it."""


@contextmanager
def killed_at(table: Table, write: int) -> Iterator[list[int]]:
    """Let the table's n-th write be the last, counted from 0; the list's one number counts the writes."""
    client, counted = table.client, [0]
    originals = {name: getattr(client, name) for name in WRITES}

    def dying(name: str) -> Any:
        async def call(**parameters: Any) -> Any:
            if counted[0] > write:
                raise Killed
            counted[0] += 1
            last = counted[0] > write
            answer = await originals[name](**parameters)
            if last:
                raise Killed
            return answer

        return call

    for name in WRITES:
        setattr(client, name, dying(name))
    try:
        yield counted
    finally:
        for name, original in originals.items():
            setattr(client, name, original)
