"""Arguments: from the document and the variables to a resolver's keyword arguments.

A leaf, or a list of leaves, needs no coercing if it is a variable, or was coerced when the operation was compiled. If
that holds for all arguments of a field, graphql-core is not called; else it coerces them all and reports the errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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
    is_list_type,
    is_non_null_type,
)
from strawberry.relay import GlobalID
from strawberry.types.arguments import StrawberryArgument, convert_arguments
from strawberry.types.base import StrawberryList, StrawberryMaybe, StrawberryOptional

if TYPE_CHECKING:
    from graphql.execution import Executor
    from strawberry.schema.schema_converter import GraphQLCoreConverter

    from server.compiler.fields import DirectResolver
    from server.compiler.plan import FieldPlan


class _CoercedArgument(NamedTuple):
    """An argument that is known when the operation is compiled, or a variable."""

    python_name: str
    variable: str | None
    constant: Any
    """The value in the document, or where the variable is absent; Undefined if there is none."""
    is_list: bool
    is_required: bool


class LazyExecutor(Protocol):
    """Holds graphql-core's executor of one execution, which is built when it is first needed."""

    @property
    def executor(self) -> Executor[Any]: ...


class ArgumentReader:
    """Reads the arguments of one field whose resolver is called directly."""

    def __init__(self, field: FieldPlan, source: DirectResolver, converter: GraphQLCoreConverter) -> None:
        self._field = field
        self._strawberry_arguments = source.field.arguments
        self._converter = converter
        self._parse = source.resolution.parameters.parse
        self._coerced = _coerced_arguments(field, source, converter)
        self.is_reusable = self._coerced is not None and not any(argument.is_list for argument in self._coerced)
        """Whether no value can be changed by a resolver, so that one reading serves many records."""

    def read(self, variables: Mapping[str, Any], core: LazyExecutor, ctx: Any) -> dict[str, Any]:
        """The resolver's keyword arguments; raises the error of the field."""
        if self._coerced is None:
            return self._parse(self._coerced_by_core(core), ctx)
        values = {}
        for name, variable, constant, is_list, is_required in self._coerced:
            value = constant if variable is None else variables.get(variable, constant)
            if is_required and (value is None or value is Undefined):
                return self._parse(self._coerced_by_core(core), ctx)
            if is_list and value is not None and value is not Undefined:
                value = list(value)
            if value is not Undefined:
                values[name] = value
        return self._parse(values, ctx)

    def _coerced_by_core(self, core: LazyExecutor) -> dict[str, Any]:
        """The values as graphql-core coerces and Strawberry converts them."""
        node = self._field.details[0].node
        return convert_arguments(
            get_argument_values(self._field.definition, node, core.executor.variable_values),
            self._strawberry_arguments,
            scalar_registry=self._converter.scalar_registry,
            config=self._converter.config,
        )


def _coerced_arguments(
    field: FieldPlan, source: DirectResolver, converter: GraphQLCoreConverter
) -> list[_CoercedArgument] | None:
    """Each argument; None if graphql-core or Strawberry has to look at one in each request."""
    coerced = []
    for argument in source.field.arguments:
        name = converter.config.name_converter.from_argument(argument)
        if not _is_unconverted(argument, field.definition.args[name]):
            return None
        coerced_argument = _coerced_argument(field, name, argument.python_name)
        if coerced_argument is None:
            return None
        coerced.append(coerced_argument)
    return coerced


def _coerced_argument(field: FieldPlan, name: str, python_name: str) -> _CoercedArgument | None:
    node, definition = field.details[0].node, field.definition.args[name]
    given = tuple(argument for argument in node.arguments or () if argument.name.value == name)
    variable = given[0].value.name.value if given and isinstance(given[0].value, VariableNode) else None
    if variable is None and given and _has_variable(given[0].value):
        return None
    alone = FieldNode(name=node.name, arguments=() if variable else given)
    try:
        values = get_argument_values(GraphQLField(field.type, {name: definition}), alone)
    except GraphQLError:
        if variable is None:
            return None
        values = {}  # required, so the variable has to be present
    return _CoercedArgument(
        python_name,
        variable,
        values.get(name, Undefined),
        is_list_type(get_nullable_type(definition.type)),
        is_non_null_type(definition.type),
    )


def _has_variable(node: Node | None) -> bool:
    if isinstance(node, VariableNode):
        return True
    inside = (*getattr(node, "values", ()), *getattr(node, "fields", ()), getattr(node, "value", None))
    return any(_has_variable(inner) for inner in inside if isinstance(inner, Node))


def _is_unconverted(argument: StrawberryArgument, definition: GraphQLArgument) -> bool:
    """Whether Strawberry hands on what graphql-core coerces: a leaf, or a list of leaves, which it copies."""
    type_ = argument.type
    if isinstance(type_, StrawberryMaybe):
        return False
    if isinstance(type_, StrawberryOptional):
        type_ = type_.of_type
    inner = get_nullable_type(definition.type)
    if isinstance(type_, StrawberryList) and is_list_type(inner):
        type_ = type_.of_type.of_type if isinstance(type_.of_type, StrawberryOptional) else type_.of_type
        inner = get_nullable_type(inner.of_type)
    return is_leaf_type(inner) and type_ is not GlobalID
