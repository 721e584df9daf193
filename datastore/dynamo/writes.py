"""Writes as values: each has its changes and a condition, and encodes itself.

The same write is sent alone (`PutItem`, `UpdateItem`, `DeleteItem`) or in a transaction (`TransactWriteItems`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from datastore.dynamo.attributes import Attribute, Codec

# ── conditions ──


@dataclass(slots=True)
class Expression:
    """The placeholders of one request, for names and values of an entity's fields."""

    fields: Mapping[str, Codec]
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Attribute] = field(default_factory=dict)

    def name(self, attribute: str) -> str:
        placeholder = f"#{attribute}"
        self.names[placeholder] = attribute
        return placeholder

    def field(self, name: str) -> str:
        """The name of a field, or `pk`, which every item has."""
        if name != "pk" and name not in self.fields:
            raise KeyError(name)
        return self.name(name)

    def attribute(self, attribute: Attribute) -> str:
        placeholder = f":{len(self.values)}"
        self.values[placeholder] = attribute
        return placeholder

    def value(self, name: str, value: Any) -> str:
        """A value of a field."""
        return self.attribute(self.fields[name].encode(value))


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """`render` returns the condition's text in an expression; an empty text is no condition.

    Conditions are compared by identity, so that none is written out only to be compared.
    """

    render: Callable[[Expression], str]

    def __and__(self, other: Condition) -> Condition:
        return other if self is ALWAYS else _joined(" AND ", self, other)

    def __or__(self, other: Condition) -> Condition:
        return _joined(" OR ", self, other)


ALWAYS = Condition(lambda _: "")


def _joined(word: str, *conditions: Condition) -> Condition:
    def render(expression: Expression) -> str:
        texts = [text for condition in conditions if (text := condition.render(expression))]
        return word.join(f"({text})" for text in texts) if len(texts) > 1 else "".join(texts)

    return Condition(render)


def absent(name: str = "pk") -> Condition:
    """The item does not exist, or has no such attribute."""
    return Condition(lambda expression: f"attribute_not_exists({expression.field(name)})")


def present(name: str = "pk") -> Condition:
    """The item exists, or has such an attribute."""
    return Condition(lambda expression: f"attribute_exists({expression.field(name)})")


def where(**equal: Any) -> Condition:
    """Attributes have these values; None means absent."""
    return _joined(" AND ", *(_equal(name, value) for name, value in equal.items()))


def _equal(name: str, value: Any) -> Condition:
    if value is None:
        return absent(name)
    return Condition(lambda expression: f"{expression.field(name)} = {expression.value(name, value)}")


def less(name: str, value: Any) -> Condition:
    """The attribute exists and is less than the value."""
    return Condition(lambda expression: f"{expression.field(name)} < {expression.value(name, value)}")


def more(name: str, value: Any) -> Condition:
    """The attribute exists and is greater than the value."""
    return Condition(lambda expression: f"{expression.field(name)} > {expression.value(name, value)}")


def among(name: str, *values: Any) -> Condition:
    """The attribute has one of these values (at most 100)."""

    def render(expression: Expression) -> str:
        return f"{expression.field(name)} IN ({', '.join(expression.value(name, value) for value in values)})"

    return Condition(render)


# ── writes ──


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
