"""Gates: each accepts or refuses the predictions of one shard of members, and counts their picks.

A gate has a `version` of the event: it refuses predictions that were decided from an older one. It only rises, so
raising the gates one by one may be interrupted, repeated and done by several processes at once. Every gate has a
partition key of its own, so an event takes as many submissions as its gates together.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from datastore.dynamo import ConditionFailed, Table, gather_or_cancel
from datastore.dynamo.attributes import Attribute, Item
from datastore.dynamo.entity import Entity, Key, shard_of
from datastore.dynamo.writes import Condition, Expression, Update, absent, less

GATES = 48
"""A gate takes one transaction of some 10 ms at a time. At 2,000 submissions a second it is busy less than half of the
time, and uses 83 of its key's 1,000 write units. All gates and a match fit into one transaction with their event."""
_FIRST_VERSION = 1

_COUNTER = "m"
"""What the names of the attributes that count picks begin with."""


def gate_number(user: str) -> int:
    """The gate that accepts a member's predictions; never changes."""
    return shard_of(user, GATES)


@dataclass(frozen=True, slots=True)
class Gate:
    """Accepts or refuses the predictions of one shard of members.

    `version` cannot be the event's own: a transaction that checked the event would conflict with all other submissions.
    `picked` counts the accepted picks of each team, under the names that `pick_counter` gives.
    """

    event: str
    number: int
    version: int
    predictions: int = 0
    picked: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PickCounts:
    """The predictions that an event's gates accepted, and their picks of each team."""

    predictions: int = 0
    picked: Mapping[str, int] = field(default_factory=dict)

    def count(self, match: int, team: int) -> int:
        return self.picked.get(pick_counter(match, team), 0)


class GateEntity(Entity[Gate]):
    """Stores every count of `Gate.picked` as an attribute of its own: DynamoDB can only add to top-level attributes."""

    def item(self, record: Gate) -> dict[str, Attribute]:
        item = super().item(replace(record, picked={}))
        item.pop("picked", None)
        return {**item, **{name: {"N": str(number)} for name, number in record.picked.items()}}

    @cached_property
    def read(self) -> Callable[[Item], Gate]:
        read = super().read

        def with_picks(item: Item) -> Gate:
            picked = {name: int(stored["N"]) for name, stored in item.items() if name.startswith(_COUNTER)}
            return replace(read(item), picked=picked)

        return with_picks

    def has(self, name: str) -> bool:
        return name.startswith(_COUNTER) or super().has(name)


GATE = GateEntity(Gate, Key("EVENT#{event}#GATE#{number:02d}", "GATE"))


def pick_counter(match: int, team: int) -> str:
    """The attribute of a gate that counts the picks of one team, by the match's number.

    It is short, so that a gate for 100 teams still fits into the 1 KB of one write unit.
    """
    return f"{_COUNTER}{match}_{team}"


def none_picked(match: int, teams: Sequence[int]) -> Condition:
    """The condition that no prediction accepted by the gate picks one of these teams."""

    def render(expression: Expression) -> str:
        zero = expression.attribute({"N": "0"})
        # Kept short: forty teams must fit into the 4 kB of an expression.
        return f"NOT ({' OR '.join(f'{expression.name(pick_counter(match, team))} > {zero}' for team in teams)})"

    return Condition(render)


def raised_gates(event: str, version: int, when: Condition) -> Iterator[Update]:
    """The writes after which every gate refuses predictions from before a version."""
    for number in range(GATES):
        yield GATE.update(GATE.at(event=event, number=number), values={"version": version}, when=when)


async def place_gates(table: Table, event: str) -> None:
    """All gates of an event that is about to be created; those of an event that exists stay as they are.

    They cannot be placed with the event: with forty matches and ten webhooks a transaction would have 101 writes.
    Nobody has decided anything from an earlier version, so they need not know which one the event begins with.
    """
    gates = [GATE.put(Gate(event, number, _FIRST_VERSION), when=absent()) for number in range(GATES)]
    with suppress(ConditionFailed):
        await table.transact(*gates)


async def raise_gates(table: Table, event: str, version: int) -> None:
    """The same, one by one; gates that were raised further stay as they are."""
    await gather_or_cancel(map(table.try_write, raised_gates(event, version, less("version", version))))


async def read_gates(table: Table, event: str) -> Sequence[Gate]:
    """All gates of an event; none if it does not exist."""
    return await table.find_many([GATE.at(event=event, number=number) for number in range(GATES)], consistent=True)


async def read_pick_counts(table: Table, event: str) -> PickCounts:
    """The sums over all gates; final once the event is locked."""
    gates = await read_gates(table, event)
    picked: Counter[str] = Counter()
    for gate in gates:
        picked.update(gate.picked)
    return PickCounts(sum(gate.predictions for gate in gates), picked)
