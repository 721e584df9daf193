"""Variables: coerced by graphql-core, or without it where every value is of the right type already.

A value that is exactly of the Python type of a built-in scalar, or a list of such values, needs no coercing. If that
holds for all variables of an operation, graphql-core is not called; else it coerces them all and reports the errors.
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
    is_list_type,
    is_non_null_type,
)
from graphql.execution import VariableValues
from graphql.utilities import type_from_ast

_MAX_ERRORS = 50
_INTS = range(-(2**31), 2**31)
_PYTHON_TYPES: Mapping[Any, type] = {GraphQLString: str, GraphQLID: str, GraphQLInt: int, GraphQLBoolean: bool}


class _SimpleVariable(NamedTuple):
    """A variable of a built-in scalar, or of a list of them."""

    name: str
    python_type: type
    is_list: bool
    is_required: bool
    default: Any


class VariableReader:
    """Reads the variables of one operation."""

    def __init__(self, schema: GraphQLSchema, operation: OperationDefinitionNode) -> None:
        self._schema = schema
        self._definitions = operation.variable_definitions or ()
        simple = [_simple_variable(schema, definition) for definition in self._definitions]
        self._simple = [variable for variable in simple if variable is not None]
        self._are_all_simple = len(self._simple) == len(self._definitions)

    def read(self, given: Mapping[str, Any], *, suggestions: bool) -> dict[str, Any] | list[GraphQLError]:
        """The coerced values, or the errors in them."""
        if not self._are_all_simple:
            return self._coerced_by_core(given, suggestions=suggestions)
        values: dict[str, Any] = {}
        for name, python_type, is_list, is_required, default in self._simple:
            value = given.get(name, default)
            if value is None or value is Undefined:
                is_coerced = not is_required
            else:
                items = value if is_list else [value]
                is_coerced = type(items) is list and all(
                    type(item) is python_type and (python_type is not int or item in _INTS) for item in items
                )
            if not is_coerced:
                return self._coerced_by_core(given, suggestions=suggestions)
            if value is not Undefined:
                values[name] = value
        return values

    def coerce(self, given: Mapping[str, Any], *, suggestions: bool) -> VariableValues | list[GraphQLError]:
        """The values as graphql-core coerces them."""
        return get_variable_values(
            self._schema, self._definitions, dict(given), max_errors=_MAX_ERRORS, hide_suggestions=not suggestions
        )

    def _coerced_by_core(self, given: Mapping[str, Any], *, suggestions: bool) -> dict[str, Any] | list[GraphQLError]:
        values = self.coerce(given, suggestions=suggestions)
        return values.coerced if isinstance(values, VariableValues) else values


def _simple_variable(schema: GraphQLSchema, definition: VariableDefinitionNode) -> _SimpleVariable | None:
    type_ = type_from_ast(schema, definition.type)
    nullable_type: Any = type_.of_type if is_non_null_type(type_) else type_
    is_list = is_list_type(nullable_type)
    # A list of nullable items is not simple: graphql-core looks at each of them.
    python_type = _PYTHON_TYPES.get(getattr(nullable_type.of_type, "of_type", None) if is_list else nullable_type)
    if python_type is None:
        return None
    name, default = definition.variable.name.value, Undefined
    if definition.default_value is not None:
        values = get_variable_values(schema, [definition], {})
        default = values.coerced.get(name, Undefined) if isinstance(values, VariableValues) else Undefined
    return _SimpleVariable(name, python_type, is_list, is_non_null_type(type_), default)
