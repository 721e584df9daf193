"""Conditions on an item, as values that can be combined: `absent() | where(version=3)`.

A condition writes itself into an expression. Names and values become placeholders, so no attribute name can clash with
a reserved word of DynamoDB, and no value is ever part of an expression's text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datastore.dynamo.attributes import Attribute, Codec


@dataclass(slots=True)
class Expression:
    """The placeholders of one request, for names and values of an entity's fields.

    `path` leads to the record that has the fields, if that is stored in a field itself.
    """

    fields: Mapping[str, Codec]
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Attribute] = field(default_factory=dict)
    path: str = ""

    def name(self, attribute: str) -> str:
        placeholder = f"#{attribute}"
        self.names[placeholder] = attribute
        return self.path + placeholder

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
    """`spell` returns the condition's text in an expression; an empty text is no condition.

    Conditions are compared by identity, so that none is written out only to be compared.
    """

    spell: Callable[[Expression], str]

    def __and__(self, other: Condition) -> Condition:
        return other if self is ALWAYS else _joined(" AND ", self, other)

    def __or__(self, other: Condition) -> Condition:
        return _joined(" OR ", self, other)

    def __invert__(self) -> Condition:
        return Condition(lambda into: f"NOT ({self.spell(into)})")


ALWAYS = Condition(lambda _: "")


def _joined(word: str, *conditions: Condition) -> Condition:
    def spell(into: Expression) -> str:
        texts = [text for condition in conditions if (text := condition.spell(into))]
        return word.join(f"({text})" for text in texts) if len(texts) > 1 else "".join(texts)

    return Condition(spell)


def permitted(check: Callable[[], None]) -> Condition:
    """No condition on the item: `check` may raise, at each attempt to write it."""

    def spell(_: Expression) -> str:
        check()
        return ""

    return Condition(spell)


def absent(name: str = "pk") -> Condition:
    """The item does not exist, or has no such attribute."""
    return Condition(lambda into: f"attribute_not_exists({into.field(name)})")


def present(name: str = "pk") -> Condition:
    """The item exists, or has such an attribute."""
    return Condition(lambda into: f"attribute_exists({into.field(name)})")


def where(**equal: Any) -> Condition:
    """Attributes have these values; None means absent."""
    return _joined(" AND ", *(_equal(name, value) for name, value in equal.items()))


def _equal(name: str, value: Any) -> Condition:
    if value is None:
        return absent(name)
    return Condition(lambda into: f"{into.field(name)} = {into.value(name, value)}")


def inside(name: str, fields: Mapping[str, Codec], condition: Condition) -> Condition:
    """A condition on the fields of a record that is stored in a field; what it does not name may be anything."""
    return Condition(lambda into: condition.spell(Expression(fields, into.names, into.values, f"{into.field(name)}.")))


def less(name: str, value: Any) -> Condition:
    """The attribute exists and is less than the value."""
    return Condition(lambda into: f"{into.field(name)} < {into.value(name, value)}")


def more(name: str, value: Any) -> Condition:
    """The attribute exists and is greater than the value."""
    return Condition(lambda into: f"{into.field(name)} > {into.value(name, value)}")


def outside(name: str, low: Any, high: Any) -> Condition:
    """The attribute exists and is less than the one value or greater than the other."""
    return less(name, low) | more(name, high)


def among(name: str, *values: Any) -> Condition:
    """The attribute has one of these values (at most 100)."""
    return Condition(lambda into: f"{into.field(name)} IN ({', '.join(into.value(name, value) for value in values)})")
