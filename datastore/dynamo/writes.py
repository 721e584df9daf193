"""Writes as values: each has its changes and a condition, and encodes itself.

The same write is sent alone (`PutItem`, `UpdateItem`, `DeleteItem`) or in a transaction (`TransactWriteItems`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from datastore.dynamo.attributes import Attribute, Codec
from datastore.dynamo.conditions import Condition, Expression


def _with_condition(expression: Expression, when: Condition) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    if text := when.render(expression):
        parameters = {"ConditionExpression": text, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    if expression.names:
        parameters["ExpressionAttributeNames"] = expression.names
    if expression.values:
        parameters["ExpressionAttributeValues"] = expression.values
    return parameters


@dataclass(frozen=True, slots=True)
class Put:
    """Writes the whole item."""

    operation: ClassVar[str] = "Put"
    fields: Mapping[str, Codec]
    item: Mapping[str, Attribute]
    when: Condition

    def parameters(self) -> dict[str, Any]:
        return {"Item": self.item, **_with_condition(Expression(self.fields), self.when)}


@dataclass(frozen=True, slots=True)
class Update:
    """Changes some of the attributes; creates the item if there is none and the condition allows it."""

    operation: ClassVar[str] = "Update"
    fields: Mapping[str, Codec]
    key: Mapping[str, Attribute]
    assigned: Mapping[str, Attribute]
    added: Mapping[str, Attribute]
    removed: tuple[str, ...]
    when: Condition

    def parameters(self) -> dict[str, Any]:
        into = Expression(self.fields)
        clauses = {
            "SET": [f"{into.name(name)} = {into.attribute(value)}" for name, value in self.assigned.items()],
            "ADD": [f"{into.name(name)} {into.attribute(value)}" for name, value in self.added.items()],
            "REMOVE": [into.name(name) for name in self.removed],
        }
        text = " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses.items() if parts)
        changes = {"UpdateExpression": text} if text else {}
        return {"Key": self.key, **changes, **_with_condition(into, self.when)}


@dataclass(frozen=True, slots=True)
class _OfKey:
    operation: ClassVar[str]
    fields: Mapping[str, Codec]
    key: Mapping[str, Attribute]
    when: Condition

    def parameters(self) -> dict[str, Any]:
        return {"Key": self.key, **_with_condition(Expression(self.fields), self.when)}


class Delete(_OfKey):
    """Deletes the item, if it exists."""

    __slots__ = ()
    operation = "Delete"


class Check(_OfKey):
    """Writes nothing; its transaction fails unless the condition holds."""

    __slots__ = ()
    operation = "ConditionCheck"


Write: TypeAlias = Put | Update | Delete | Check
