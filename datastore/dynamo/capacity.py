"""What a request cost: consumed capacity and engine calls, added up per request and reported per operation."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_READS = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"})


@dataclass(slots=True)
class Spent:
    """Units and calls of one request. Mutable: every call of the request adds to it."""

    read_units: float = 0.0
    write_units: float = 0.0
    calls: int = 0

    def add(self, operation: str, answer: Mapping[str, Any]) -> None:
        self.calls += 1
        consumed = answer.get("ConsumedCapacity")
        if not consumed:
            return
        units = sum(part.get("CapacityUnits", 0.0) for part in (consumed if isinstance(consumed, list) else [consumed]))
        if operation in _READS:
            self.read_units += units
        else:
            self.write_units += units


_meter: ContextVar[Spent | None] = ContextVar("ringside_spent", default=None)


class metered:  # noqa: N801 - a word of the language here, as `open` is
    """Counts what everything within costs; an outer meter counts it too."""

    __slots__ = ("_spent", "_token")

    def __enter__(self) -> Spent:
        self._spent = Spent()
        self._token = _meter.set(self._spent)
        return self._spent

    def __exit__(self, *_: object) -> None:
        _meter.reset(self._token)
        outer, spent = _meter.get(), self._spent
        if outer is not None:
            outer.read_units += spent.read_units
            outer.write_units += spent.write_units
            outer.calls += spent.calls


def record(operation: str, answer: Mapping[str, Any]) -> None:
    spent = _meter.get()
    if spent is not None:
        spent.add(operation, answer)
