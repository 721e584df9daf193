"""The objects that an operation names in lists, such as `nodes(ids:)`, to have them read.

Each entry is read by itself, so their number is limited in the whole operation: in all fields and fragments together,
from literals, variables and defaults, whether or not `@skip` leaves the field out. What one list names again is read
once and counts once, in the same field or in another one with another alias.

`schema.arguments.names_objects` says which lists do. `Cost` finds them while it walks through the operation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from graphql import FieldNode, GraphQLField, ListValueNode, Undefined, ValueNode, VariableNode
from graphql.utilities import value_from_ast_untyped

from schema.framework.arguments import names_objects


class NamedObjects:
    """The entries of an operation's lists."""

    def __init__(self, defaults: Mapping[str, Any]) -> None:
        self._defaults = defaults
        """Of the variables."""
        self._literals: defaultdict[str, set[str]] = defaultdict(set)
        """The entries in the document, by their lists."""
        self._variables: dict[tuple[str, str], Any] = {}
        """The default of each variable that is a list or an entry of one."""

    @property
    def lists(self) -> tuple[str, ...]:
        """The operation's lists as people write them: `nodes(ids:)`."""
        return tuple(dict.fromkeys([*self._literals, *(place for place, _ in self._variables)]))

    def add(self, node: FieldNode, definition: GraphQLField) -> None:
        """Add the lists of a field."""
        for name, argument in definition.args.items():
            if names_objects(argument):
                place = f"{node.name.value}({name}:)"
                given = next((each.value for each in node.arguments or () if each.name.value == name), None)
                self._add(place, given, argument.default_value)

    def _add(self, place: str, given: ValueNode | None, default: Any) -> None:
        values = given.values if isinstance(given, ListValueNode) else () if given is None else (given,)
        for value in values:
            if isinstance(value, VariableNode):
                name = value.name.value
                own_default = self._defaults.get(name)
                self._variables[place, name] = default if own_default is None else own_default
            else:
                self._literals[place].update(_ids(_entries(value_from_ast_untyped(value))))
        if given is None:
            self._literals[place].update(_ids(_entries(default)))

    def count(self, variables: Mapping[str, Any], most: int) -> int:
        """How many objects are named; repeated ones are looked for only if there are more than `most` entries."""
        given = [(place, _entries(variables.get(name, default))) for (place, name), default in self._variables.items()]
        entries = sum(map(len, self._literals.values())) + sum(len(values) for _, values in given)
        if entries <= most:
            return entries
        distinct = {place: set(values) for place, values in self._literals.items()}
        for place, values in given:
            distinct.setdefault(place, set()).update(_ids(values))
        return sum(map(len, distinct.values()))


def _entries(value: Any) -> list[Any]:
    """The entries of a value that is a list, or is taken as one; in a variable it may still be anything."""
    if value is None or value is Undefined:
        return []
    return value if isinstance(value, list) else [value]


def _ids(values: list[Any]) -> set[str]:
    """The ids as a field receives them: 1 and "1" are the same. Other values are refused before a field does."""
    return {str(value) for value in values if isinstance(value, str | int | float)}
