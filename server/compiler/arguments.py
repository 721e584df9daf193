"""Arguments: from the document and the variables to a resolver's keyword arguments.

An argument that is a variable, or was coerced when the operation was compiled, needs no coercing. If that holds for all
arguments of a field, graphql-core is not called; else it coerces them all, and words the errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from graphql import (
    FieldNode,
    GraphQLArgument,
    GraphQLError,
    GraphQLField,
    Node,
    Undefined,
    VariableNode,
    get_argument_values,
    get_nullable_type,
    is_leaf_type,
    is_non_null_type,
)
from strawberry.relay import GlobalID
from strawberry.types.arguments import StrawberryArgument, convert_arguments
from strawberry.types.base import StrawberryMaybe, StrawberryOptional

if TYPE_CHECKING:
    from strawberry.schema.schema_converter import GraphQLCoreConverter

    from server.compiler.core import Core
    from server.compiler.fields import DirectResolver
    from server.compiler.plan import FieldPlan


class _CoercedArgument(NamedTuple):
    """An argument whose value is known but for a variable, which is coerced already."""

    name: str
    variable: str | None
    value: Any
    """The value without the variable, or Undefined."""
    is_required: bool


class ArgumentReader:
    """Reads the arguments of one field whose resolver is called directly."""

    def __init__(self, field: FieldPlan, source: DirectResolver, converter: GraphQLCoreConverter) -> None:
        self._definition = field.definition
        self._node = field.details[0].node
        self._strawberry_arguments = source.field.arguments
        self._converter = converter
        self._read_arguments = source.resolution.read_arguments
        python_names = _python_names(field, source, converter)
        self.is_reusable = python_names is not None
        """Whether no value can be changed by a resolver, so that one reading serves many records."""
        self._coerced = _coerced_arguments(field, python_names or {})

    def read(self, variables: Mapping[str, Any], core: Core, ctx: Any) -> dict[str, Any]:
        """The resolver's keyword arguments; raises the error of the field."""
        values = self._values(variables)
        if values is None:
            values = self._convert(get_argument_values(self._definition, self._node, core.executor.variable_values))
        elif not self.is_reusable:
            values = self._convert(values)
        return self._read_arguments(values, ctx)

    def _values(self, variables: Mapping[str, Any]) -> dict[str, Any] | None:
        """The values by name, or None if graphql-core has to coerce them."""
        if self._coerced is None:
            return None
        values = {}
        for name, variable, constant, is_required in self._coerced:
            value = constant if variable is None else variables.get(variable, constant)
            if value is None and is_required:
                return None
            if value is not Undefined:
                values[name] = value
            elif is_required:
                return None
        return values

    def _convert(self, values: dict[str, Any]) -> dict[str, Any]:
        """Strawberry's conversion, to inputs and to Python names."""
        return convert_arguments(
            values,
            self._strawberry_arguments,
            scalar_registry=self._converter.scalar_registry,
            config=self._converter.config,
        )


def _coerced_arguments(field: FieldPlan, python_names: Mapping[str, str]) -> list[_CoercedArgument] | None:
    """Each argument, under its Python name if there is one; None if graphql-core has to coerce them in each request."""
    given = {argument.name.value: argument for argument in field.details[0].node.arguments or ()}
    arguments = []
    for name, definition in field.definition.args.items():
        node = given.get(name)
        variable = node.value.name.value if node and isinstance(node.value, VariableNode) else None
        if variable is None and _has_variable(node):
            return None
        try:
            value = _constant(field, name, definition, without_argument=variable is not None)
        except GraphQLError:
            if variable is None:
                return None
            value = Undefined  # required, so the variable has to be there
        arguments.append(
            _CoercedArgument(python_names.get(name, name), variable, value, is_non_null_type(definition.type))
        )
    return arguments


def _constant(field: FieldPlan, name: str, definition: GraphQLArgument, *, without_argument: bool) -> Any:
    """The value of an argument in the document, or its default."""
    node = field.details[0].node
    arguments = () if without_argument else tuple(node for node in node.arguments or () if node.name.value == name)
    alone = FieldNode(name=node.name, arguments=arguments)
    return get_argument_values(GraphQLField(field.type, {name: definition}), alone).get(name, Undefined)


def _has_variable(node: Node | None) -> bool:
    if isinstance(node, VariableNode):
        return True
    inside = (*getattr(node, "values", ()), *getattr(node, "fields", ()), getattr(node, "value", None))
    return any(_has_variable(inner) for inner in inside if isinstance(inner, Node))


def _python_names(field: FieldPlan, source: DirectResolver, converter: GraphQLCoreConverter) -> dict[str, str] | None:
    """The Python name of each argument, if Strawberry would convert no value: it leaves leaves as they are."""
    names = {}
    for argument in source.field.arguments:
        name = converter.config.name_converter.from_argument(argument)
        if not _is_plain_leaf(argument, field.definition.args[name]):
            return None
        names[name] = argument.python_name
    return names


def _is_plain_leaf(argument: StrawberryArgument, definition: GraphQLArgument) -> bool:
    type_ = argument.type
    if isinstance(type_, StrawberryMaybe) or not is_leaf_type(get_nullable_type(definition.type)):
        return False
    return (type_.of_type if isinstance(type_, StrawberryOptional) else type_) is not GlobalID
