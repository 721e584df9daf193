"""The calls of a table's client, seen or changed on their way to the engine."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeAlias

from datastore.dynamo import Table
from datastore.dynamo.budgets import NOBODY, current

WRITES = ("put_item", "update_item", "delete_item", "transact_write_items", "batch_write_item")

Send: TypeAlias = Callable[[], Awaitable[Any]]

_begun_in: ContextVar[object] = ContextVar("begun_in")


def is_of_request() -> bool:
    """Whether a call is made for a request: what the service reads beside requests has no meter."""
    return current().spent is not NOBODY.spent


@contextmanager
def begun_within() -> Iterator[Callable[[], bool]]:
    """Yields whether a call is made by what was begun in this block.

    What the service does beside goes on at any moment: it settles, reports and looks for jobs.
    """
    block = object()
    before = _begun_in.set(block)
    try:
        yield lambda: _begun_in.get(None) is block
    finally:
        _begun_in.reset(before)


@contextmanager
def intercepted(table: Table, names: tuple[str, ...], call: Callable[[str, Send], Awaitable[Any]]) -> Iterator[None]:
    """Let `call(name, send)` answer each call of these operations; `send()` sends it."""
    client = table.client
    originals = {name: getattr(client, name) for name in names}

    def through(name: str) -> Callable[..., Awaitable[Any]]:
        return lambda **parameters: call(name, partial(originals[name], **parameters))

    for name in names:
        setattr(client, name, through(name))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(client, name, original)


@contextmanager
def beforehand(
    table: Table, happens: Callable[[], Awaitable[Any]], *names: str, about: str = ""
) -> Iterator[list[str]]:
    """Let something happen before the first call of these operations whose request has the text `about`.

    Yields the operation's name, once it has happened. If it raises, the call fails with that.
    """
    begun: list[str] = []

    async def call(name: str, send: Any) -> Any:
        if not begun and about in str(send.keywords):
            begun.append(name)
            await happens()
        return await send()

    with intercepted(table, names or ("transact_write_items",), call):
        yield begun
