"""A process that is killed at one of its writes: the write is applied, and everything after it never happens."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from datastore.dynamo import Table
from tests.intercepted import WRITES, intercepted

_REPORTS = ("'ACTIVITY'", "OPERATIONS#")
"""What each process reports of its use by itself, at any moment: no step of what is killed."""


class Killed(BaseException):
    """Nothing handles it."""


@contextmanager
def killed_at(table: Table, write: int) -> Iterator[list[int]]:
    """Let the table's n-th write be the last, counted from 0; the list's one number counts the writes."""
    counted = [0]

    async def call(_: str, send: Any) -> Any:
        if any(text in str(send.keywords) for text in _REPORTS):
            return await send()
        if counted[0] > write:
            raise Killed
        counted[0] += 1
        last = counted[0] > write
        answer = await send()
        if last:
            raise Killed
        return answer

    with intercepted(table, WRITES, call):
        yield counted
