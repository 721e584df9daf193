"""Gates: each accepts or refuses the predictions of one shard of members, and counts their picks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from datastore.dynamo.attributes import Attribute, Item
from datastore.dynamo.conditions import Condition
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key


class GateState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Gate:
    """Accepts or refuses the predictions of one shard of members.

    `card` is the event's version when its card last lost a match or a team: predictions for an older card are refused.
    `picked` counts the accepted picks of each team, under the names that `pick_counter` gives.
    """

    event: str
    number: int
    state: GateState
    lock_at: datetime
    card: int = 0
    predictions: int = 0
    picked: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PickCounts:
    """The predictions that an event's gates accepted, and their picks of each team."""

    predictions: int = 0
    picked: Mapping[str, int] = field(default_factory=dict)

    def count(self, match: str, team: int) -> int:
        return self.picked.get(pick_counter(match, team), 0)


_COUNTER_PREFIX = "picked_"


class _GateEntity(Entity[Gate]):
    """Stores every count of `Gate.picked` as an attribute of its own: DynamoDB can only add to top-level attributes."""

    def item(self, record: Gate) -> dict[str, Attribute]:
        item = super().item(replace(record, picked={}))
        item.pop("picked", None)
        return {**item, **{name: {"N": str(number)} for name, number in record.picked.items()}}

    @cached_property
    def read(self) -> Callable[[Item], Gate]:
        read = super().read

        def with_picks(item: Item) -> Gate:
            picked = {name: int(stored["N"]) for name, stored in item.items() if name.startswith(_COUNTER_PREFIX)}
            return replace(read(item), picked=picked)

        return with_picks

    def stored_name(self, name: str) -> str:
        return name if name.startswith(_COUNTER_PREFIX) else super().stored_name(name)


GATE = _GateEntity(Gate, Key("EVENT#{event}", "GATE#{number:02d}"))


def pick_counter(match: str, team: int) -> str:
    """The attribute of a gate that counts the picks of one team."""
    return f"{_COUNTER_PREFIX}{match}_{team}"


def none_picked(match: str, teams: Sequence[int]) -> Condition:
    """None of these teams is picked in any accepted prediction."""

    def spell(into: Any) -> str:
        if not teams:
            return ""
        zero = into.attribute({"N": "0"})
        # Kept short: forty teams must fit into the 4 kB of an expression.
        return f"NOT ({' OR '.join(f'{into.name(pick_counter(match, team))} > {zero}' for team in teams)})"

    return Condition(spell)
