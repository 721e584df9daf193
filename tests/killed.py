"""A process that is killed at one of its writes: the write is applied, and everything after it never happens.

The process is what was begun in the block; what the service does beside goes on, as in a process of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from datastore.dynamo import Table
from tests.intercepted import WRITES, Send, begun_within, intercepted


class Killed(BaseException):
    """Nothing handles it."""


@contextmanager
def killed_at(table: Table, write: int) -> Iterator[list[int]]:
    """Let the table's n-th write be the last, counted from 0; the list's one number counts the writes."""
    counted = [0]

    async def call(_: str, send: Send) -> Any:
        if not is_killed():
            return await send()
        if counted[0] > write:
            raise Killed
        counted[0] += 1
        last = counted[0] > write
        answer = await send()
        if last:
            raise Killed
        return answer

    with begun_within() as is_killed, intercepted(table, WRITES, call):
        yield counted
