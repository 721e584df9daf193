"""Variables: coerced as graphql-core does, and without it where every value is plainly right.

A variable of a built-in scalar whose value is exactly of its Python type needs no coercing. If that holds for all
variables of an operation, graphql-core is not called; else it coerces them all, and words the errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from graphql import (
    GraphQLBoolean,
    GraphQLError,
    GraphQLID,
    GraphQLInt,
    GraphQLSchema,
    GraphQLString,
    OperationDefinitionNode,
    Undefined,
    VariableDefinitionNode,
    get_variable_values,
    is_non_null_type,
)
from graphql.execution import VariableValues
from graphql.utilities import type_from_ast

_MAX_ERRORS = 50
_MAX_INT = 2**31 - 1
_MIN_INT = -(2**31)
_PYTHON_TYPES: Mapping[Any, type] = {GraphQLString: str, GraphQLID: str, GraphQLInt: int, GraphQLBoolean: bool}


class _SimpleVariable(NamedTuple):
    """A variable of a built-in scalar."""

    name: str
    python_type: type
    is_required: bool
    default: Any


class VariableReader:
    """Reads the variables of one operation."""

    def __init__(self, schema: GraphQLSchema, operation: OperationDefinitionNode) -> None:
        self._schema = schema
        self._definitions = operation.variable_definitions or ()
        simple = [_simple_variable(schema, definition) for definition in self._definitions]
        self._simple: list[_SimpleVariable] | None = None if None in simple else simple  # type: ignore[assignment]

    def read(self, given: Mapping[str, Any], *, suggestions: bool) -> dict[str, Any] | list[GraphQLError]:
        """The coerced values, or the errors in them."""
        coerced = self._read_simple(given)
        if coerced is not None:
            return coerced
        values = self.coerce(given, suggestions=suggestions)
        return values.coerced if isinstance(values, VariableValues) else values

    def coerce(self, given: Mapping[str, Any], *, suggestions: bool) -> VariableValues | list[GraphQLError]:
        """The values as graphql-core coerces them."""
        return get_variable_values(
            self._schema, self._definitions, dict(given), max_errors=_MAX_ERRORS, hide_suggestions=not suggestions
        )

    def _read_simple(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        if self._simple is None:
            return None
        values: dict[str, Any] = {}
        for name, python_type, is_required, default in self._simple:
            value = given.get(name, default)
            if type(value) is not python_type:
                if is_required or (value is not None and value is not Undefined):
                    return None
            elif type(value) is int and not _MIN_INT <= value <= _MAX_INT:
                return None
            if value is not Undefined:
                values[name] = value
        return values


def _simple_variable(schema: GraphQLSchema, definition: VariableDefinitionNode) -> _SimpleVariable | None:
    name = definition.variable.name.value
    type_: Any = type_from_ast(schema, definition.type)
    is_required = is_non_null_type(type_)
    python_type = _PYTHON_TYPES.get(type_.of_type if is_required else type_)
    if python_type is None:
        return None
    default = Undefined
    if definition.default_value is not None:
        values = get_variable_values(schema, [definition], {})
        default = values.coerced.get(name, Undefined) if isinstance(values, VariableValues) else Undefined
    return _SimpleVariable(name, python_type, is_required, default)
