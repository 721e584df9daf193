"""Writes as values: each says where it writes, what, and on which condition, and encodes itself.

The same write goes alone (`PutItem`, `UpdateItem`, `DeleteItem`) or with others (`TransactWriteItems`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from datastore.dynamo.conditions import Condition, Expression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datastore.dynamo.attributes import Attribute
    from datastore.dynamo.entity import ItemKey


def _with_condition(into: Expression, when: Condition) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    if text := when.spell(into):
        parameters = {"ConditionExpression": text, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    if into.names:
        parameters["ExpressionAttributeNames"] = into.names
    if into.values:
        parameters["ExpressionAttributeValues"] = into.values
    return parameters


@dataclass(frozen=True, slots=True)
class Put:
    """The whole item."""

    operation: ClassVar[str] = "Put"
    key: ItemKey[Any]
    item: Mapping[str, Attribute]
    when: Condition

    def parameters(self) -> dict[str, Any]:
        return {"Item": self.item, **_with_condition(Expression(self.key.entity.fields), self.when)}


@dataclass(frozen=True, slots=True)
class Update:
    """Some of the attributes; creates the item if there is none and no condition forbids it."""

    operation: ClassVar[str] = "Update"
    key: ItemKey[Any]
    assigned: Mapping[str, Attribute]
    added: Mapping[str, Attribute]
    removed: tuple[str, ...]
    when: Condition

    def parameters(self) -> dict[str, Any]:
        into = Expression(self.key.entity.fields)
        clauses = {
            "SET": [f"{into.name(name)} = {into.attribute(value)}" for name, value in self.assigned.items()],
            "ADD": [f"{into.name(name)} {into.attribute(value)}" for name, value in self.added.items()],
            "REMOVE": [into.name(name) for name in self.removed],
        }
        text = " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses.items() if parts)
        changes = {"UpdateExpression": text} if text else {}
        return {"Key": self.key.attributes, **changes, **_with_condition(into, self.when)}


@dataclass(frozen=True, slots=True)
class Delete:
    """The item; absent is success unless a condition says otherwise."""

    operation: ClassVar[str] = "Delete"
    key: ItemKey[Any]
    when: Condition

    def parameters(self) -> dict[str, Any]:
        return {"Key": self.key.attributes, **_with_condition(Expression(self.key.entity.fields), self.when)}


@dataclass(frozen=True, slots=True)
class Check:
    """Nothing is written; the condition must hold for the transaction it is part of."""

    operation: ClassVar[str] = "ConditionCheck"
    key: ItemKey[Any]
    when: Condition

    def parameters(self) -> dict[str, Any]:
        return {"Key": self.key.attributes, **_with_condition(Expression(self.key.entity.fields), self.when)}


Write: TypeAlias = Put | Update | Delete | Check
