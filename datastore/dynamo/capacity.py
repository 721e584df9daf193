"""What a call cost: consumed capacity and engine calls, added to what the request has spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datastore.dynamo.budgets import current

if TYPE_CHECKING:
    from collections.abc import Mapping

_READS = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"})


def record(operation: str, answer: Mapping[str, Any]) -> None:
    spent = current().spent
    if spent is None:
        return
    spent.calls += 1
    consumed = answer.get("ConsumedCapacity")
    if not consumed:
        return
    units = sum(part.get("CapacityUnits", 0.0) for part in (consumed if isinstance(consumed, list) else [consumed]))
    if operation in _READS:
        spent.read_units += units
    else:
        spent.write_units += units
