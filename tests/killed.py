"""A process that is killed at one of its writes: the write is applied, and everything after it never happens."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from datastore.dynamo import Table
from tests.intercepted import WRITES, Send, intercepted

_is_killed: ContextVar[bool] = ContextVar("_is_killed", default=False)
"""Whether a write is of what is killed, not of what the service has long begun beside it, such as a report of usage."""


class Killed(BaseException):
    """Nothing handles it."""


@contextmanager
def killed_at(table: Table, write: int) -> Iterator[list[int]]:
    """Let the n-th write of the block be the last, counted from 0; the list's one number counts the writes."""
    counted = [0]

    async def call(_: str, send: Send) -> Any:
        if not _is_killed.get():
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
        before = _is_killed.set(True)
        try:
            yield counted
        finally:
            _is_killed.reset(before)
