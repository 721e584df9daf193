"""The calls of a table's client, seen or changed on their way to the engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

from datastore.dynamo import Table

WRITES = ("put_item", "update_item", "delete_item", "transact_write_items", "batch_write_item")

Send: TypeAlias = Callable[[], Awaitable[Any]]


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
