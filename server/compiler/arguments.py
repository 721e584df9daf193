"""Variables and arguments: graphql-core's own coercion, and a short way where the outcome is known beforehand.

The short way is taken for what needs no looking at: a variable of a built-in scalar that holds a value of just that
Python type, an argument that is a variable or was coerced when the operation was compiled. Anything else (lists,
inputs, enums, a wrong value, nothing where something is needed) goes through graphql-core, which also words the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from graphql import (
    FieldNode,
    GraphQLBoolean,
    GraphQLError,
    GraphQLField,
    GraphQLID,
    GraphQLInt,
    GraphQLSchema,
    GraphQLString,
    Node,
    OperationDefinitionNode,
    Undefined,
    VariableNode,
    get_argument_values,
    get_nullable_type,
    get_variable_values,
    is_leaf_type,
    is_non_null_type,
)
from graphql.execution import VariableValues
from graphql.utilities import type_from_ast
from strawberry.relay import GlobalID
from strawberry.types.arguments import convert_arguments
from strawberry.types.base import StrawberryMaybe, StrawberryOptional

if TYPE_CHECKING:
    from strawberry.schema.schema_converter import GraphQLCoreConverter

    from server.compiler.plan import Step

Coerced: TypeAlias = dict[str, Any]
_INT = 2**31


def _is_int(value: Any) -> bool:
    return type(value) is int and -_INT <= value < _INT


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_bool(value: Any) -> bool:
    return type(value) is bool


_EVIDENT: Mapping[Any, Callable[[Any], bool]] = {
    GraphQLString: _is_text,
    GraphQLID: _is_text,
    GraphQLInt: _is_int,
    GraphQLBoolean: _is_bool,
}


class Variables:
    """The variables of one operation."""

    def __init__(self, schema: GraphQLSchema, operation: OperationDefinitionNode) -> None:
        self._schema = schema
        self._definitions = operation.variable_definitions or ()
        self._short: list[tuple[str, Callable[[Any], bool], bool, Any]] | None = []
        for definition in self._definitions:
            name = definition.variable.name.value
            type_: Any = type_from_ast(schema, definition.type)
            needed = is_non_null_type(type_)
            evident = _EVIDENT.get(type_.of_type if needed else type_)
            if evident is None:
                self._short = None
                return
            default = Undefined
            if definition.default_value is not None:
                values = get_variable_values(schema, [definition], {})
                default = values.coerced.get(name, Undefined) if isinstance(values, VariableValues) else Undefined
            self._short.append((name, evident, needed, default))

    def coerced(self, given: Mapping[str, Any], *, suggestions: bool) -> Coerced | list[GraphQLError]:
        """The values, or what is wrong with them."""
        short = self._at_once(given)
        if short is not None:
            return short
        values = self.carefully(given, suggestions=suggestions)
        return values.coerced if isinstance(values, VariableValues) else values

    def carefully(self, given: Mapping[str, Any], *, suggestions: bool) -> VariableValues | list[GraphQLError]:
        return get_variable_values(
            self._schema, self._definitions, dict(given), max_errors=50, hide_suggestions=not suggestions
        )

    def _at_once(self, given: Mapping[str, Any]) -> Coerced | None:
        if self._short is None:
            return None
        found: Coerced = {}
        for name, evident, needed, default in self._short:
            value = given.get(name, Undefined)
            if value is Undefined:
                if default is not Undefined:
                    found[name] = default
                elif needed:
                    return None
            elif evident(value) or (value is None and not needed):
                found[name] = value
            else:
                return None
        return found


class Arguments:
    """The arguments of one field of ours, from the document and the variables to the resolver's parameters."""

    def __init__(self, step: Step, converter: GraphQLCoreConverter) -> None:
        assert step.source.resolution is not None and step.source.field is not None  # noqa: S101, PT018 - RESOLVER
        self._definition = step.definition
        self._node: FieldNode = step.details[0].node
        self._field = step.source.field
        self._parameters = step.source.resolution.parameters
        self._short = _short(step)
        self._converter = converter
        self._renamed = _renamed(step, converter)
        self.lasting = self._renamed is not None
        """Nothing a resolver could change is among them: they may be read once and given to many records."""

    def read(self, coerced: Coerced, careful: Callable[[], VariableValues], ctx: Any) -> dict[str, Any]:
        """The resolver's keyword arguments, or the error that the field answers with."""
        given = self._at_once(coerced)
        if given is None:
            given = get_argument_values(self._definition, self._node, careful())
        return self._parameters.read(self._converted(given), ctx.services.seal)

    def _at_once(self, coerced: Coerced) -> dict[str, Any] | None:
        if self._short is None:
            return None
        given = {}
        for name, variable, value, needed in self._short:
            if variable is not None and variable in coerced:
                value = coerced[variable]  # noqa: PLW2901 - the variable goes before the default
            if value is not Undefined:
                if value is None and needed:
                    return None
                given[name] = value
            elif needed:
                return None
        return given

    def _converted(self, given: Mapping[str, Any]) -> dict[str, Any]:
        if self._renamed is not None:
            return {self._renamed[name]: value for name, value in given.items()}
        return convert_arguments(
            dict(given),
            self._field.arguments,
            scalar_registry=self._converter.scalar_registry,
            config=self._converter.config,
        )


def _short(step: Step) -> list[tuple[str, str | None, Any, bool]] | None:
    """Of each argument: its name, its variable, its value without that variable, and whether null is refused."""
    node = step.details[0].node
    given = {argument.name.value: argument for argument in node.arguments or ()}
    short = []
    for name, definition in step.definition.args.items():
        argument = given.get(name)
        variable = argument.value.name.value if argument and isinstance(argument.value, VariableNode) else None
        if argument and not variable and _has_variable(argument):
            return None
        alone = FieldNode(name=node.name, arguments=(argument,) if argument and not variable else ())
        try:
            values = get_argument_values(GraphQLField(step.type, {name: definition}), alone)
        except GraphQLError:
            if variable is None:
                return None
            values = {}
        short.append((name, variable, values.get(name, Undefined), is_non_null_type(definition.type)))
    return short


def _has_variable(node: Node | None) -> bool:
    if isinstance(node, VariableNode):
        return True
    inside = (*getattr(node, "values", ()), *getattr(node, "fields", ()), getattr(node, "value", None))
    return any(_has_variable(one) for one in inside if isinstance(one, Node))


def _renamed(step: Step, converter: GraphQLCoreConverter) -> dict[str, str] | None:
    """The Python name of each argument, if none needs converting: only leaves do not."""
    assert step.source.field is not None  # noqa: S101 - RESOLVER
    names = {}
    for argument in step.source.field.arguments:
        name = converter.config.name_converter.from_argument(argument)
        type_ = argument.type
        if isinstance(type_, StrawberryMaybe) or not is_leaf_type(get_nullable_type(step.definition.args[name].type)):
            return None
        if isinstance(type_, StrawberryOptional):
            type_ = type_.of_type
        if type_ is GlobalID:
            return None
        names[name] = argument.python_name
    return names
