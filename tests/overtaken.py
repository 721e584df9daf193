"""A write before which another process writes: what the first one has read is no longer so."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from datastore.dynamo import Table
from tests.intercepted import WRITES, Send, begun_within, intercepted


@contextmanager
def overtaken(table: Table, write: int, rival: Callable[[], Awaitable[Any]]) -> Iterator[list[int]]:
    """Let `rival` come just before the table's n-th write, counted from 0; the list's one number counts the writes.

    The rival's own writes are not counted, nor are those of what the service does beside.
    """
    counted, racing = [0], False

    async def call(_: str, send: Send) -> Any:
        nonlocal racing
        if not racing and is_counted():
            counted[0] += 1
            if counted[0] == write + 1:
                racing = True
                await rival()
                racing = False
        return await send()

    with begun_within() as is_counted, intercepted(table, WRITES, call):
        yield counted
