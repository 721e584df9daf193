"""What an execution still waits for: async fields, and values that turned out to be awaitable."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from server.compiler.leaves import UnexpectedAwaitable
from server.compiler.paths import ResponsePath, is_within

if TYPE_CHECKING:
    from server.compiler.compiled import CompiledField

PendingField: TypeAlias = "tuple[CompiledField, Any, Any, ResponsePath]"
"""An async field, the record, the answer's object that the value belongs in, and that object's path."""


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """The position of one value in the answer: of a field, or of an item of a list."""

    field: CompiledField
    type: Any
    """The type of this position: the field's own, or that of an item."""
    holder: Any
    """The object or list that the value belongs in."""
    key: str | int
    path: ResponsePath


@dataclass(frozen=True, slots=True, eq=False)
class PendingValue:
    """A value that has to be awaited, and its position."""

    slot: Slot
    found: UnexpectedAwaitable

    def close(self) -> None:
        """Close a coroutine that nobody began to await."""
        awaitable = self.found.awaitable
        if inspect.iscoroutine(awaitable) and inspect.getcoroutinestate(awaitable) == inspect.CORO_CREATED:
            awaitable.close()


Pending: TypeAlias = "PendingField | PendingValue"
Call: TypeAlias = "list[PendingField] | PendingValue"
"""What is awaited at once: a value, an async field, or all entries of a batched field."""


def take_calls(entries: list[Pending]) -> list[Call]:
    """Remove all entries, and return the calls that answer them."""
    calls: list[Call] = []
    batches: dict[CompiledField, list[PendingField]] = {}
    for entry in entries:
        if isinstance(entry, PendingValue):
            calls.append(entry)
        elif (batch := batches.get(entry[0])) is not None:
            batch.append(entry)
        else:
            batch = [entry]
            calls.append(batch)
            if entry[0].is_batched:
                batches[entry[0]] = batch
    entries.clear()
    return calls


def path_of(call: Call) -> ResponsePath:
    """The path at or below which all values of a call lie."""
    if isinstance(call, PendingValue):
        return call.slot.path
    if len(call) > 1:
        return None
    field, _, _, path = call[0]
    return (path, field.plan.key, field.plan.parent.name)


def drop_within(entries: list[Pending], path: ResponsePath) -> None:
    """Drop the entries below a path: they are the last, since entries follow the order of the answer."""
    while entries:
        entry = entries[-1]
        if not is_within(entry.slot.path if isinstance(entry, PendingValue) else entry[3], path):
            return
        entries.pop()
        if isinstance(entry, PendingValue):
            entry.close()
