"""Adds each call and its consumed capacity to the request's meter, and takes it from its allowance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datastore.dynamo.budgets import current

if TYPE_CHECKING:
    from collections.abc import Mapping


def record_read(answer: Mapping[str, Any]) -> None:
    _, spent, _, charged = current()
    if spent is not None:
        units = _units(answer)
        spent.calls += 1
        spent.read_units += units
        if charged is not None:
            charged.read_units -= units


def record_write(answer: Mapping[str, Any]) -> None:
    spent = current().spent
    if spent is not None:
        spent.calls += 1
        spent.write_units += _units(answer)


def _units(answer: Mapping[str, Any]) -> float:
    consumed = answer.get("ConsumedCapacity") or ()
    parts = consumed if isinstance(consumed, list) else [consumed]
    return float(sum(part.get("CapacityUnits", 0.0) for part in parts if part))
