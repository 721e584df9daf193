"""A write before which another process writes: what the first one has read is no longer so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from datastore.dynamo import Table
from tests.killed import WRITES


@contextmanager
def overtaken(table: Table, write: int, rival: Callable[[], Awaitable[Any]]) -> Iterator[list[int]]:
    """Let `rival` come just before the table's n-th write, counted from 0; the list's one number counts the writes.

    The rival's own writes are not counted.
    """
    client, counted, racing = table.client, [0], False
    originals = {name: getattr(client, name) for name in WRITES}

    def overtaking(name: str) -> Any:
        async def call(**parameters: Any) -> Any:
            nonlocal racing
            if not racing:
                counted[0] += 1
                if counted[0] == write + 1:
                    racing = True
                    await rival()
                    racing = False
            return await originals[name](**parameters)

        return call

    for name in WRITES:
        setattr(client, name, overtaking(name))
    try:
        yield counted
    finally:
        for name, original in originals.items():
            setattr(client, name, original)
