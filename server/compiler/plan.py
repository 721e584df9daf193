"""The plan of an operation: a tree of selections and fields.

    SelectionPlan ── of one object type ── FieldPlan ── where its value comes from ── SelectionPlan per possible type

A plan holds for one operation and one choice of the variables in its @skip and @include.

Completing a value is *pure* if it calls no resolver: it reads attributes, completes leaves, and leaves async fields to
be resolved later. Pure code may run twice, so it has no error handling: after any failure the async fields it left are
dropped, and graphql-core completes the value from the start.

Where the outcome is the same, a field's value does not come through Strawberry and graphql-core:

| field source     | the value is                         | recognised by                                           |
|------------------|--------------------------------------|---------------------------------------------------------|
| `TypeName`       | the name of the object's type        | `__typename`                                            |
| `Attribute`      | an attribute of the record           | a Strawberry field without a resolver                   |
| `DirectResolver` | the answer of a resolver             | `resolution` of Strawberry's resolver: `Resolution`     |
| `RecordFunction` | a function of the record             | the same attribute: `ResolutionByType`                  |
| `SchemaResolver` | what graphql-core's own call answers | everything else                                         |

Anything that Strawberry puts between a field and its resolver (extensions, permissions, exception handlers, a default
resolver other than `getattr`) makes it a `SchemaResolver`.

A record's object type is read off the attribute `kinds` of `is_type_of`: the classes whose instances are of that type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import graphql
from graphql.execution import Executor, VariableValues
from graphql.execution.collect_fields import FieldDetails, FragmentDetails, collect_fields, collect_subfields
from graphql.utilities import type_from_ast
from strawberry.relay import GlobalID
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.arguments import StrawberryArgument, convert_arguments
from strawberry.types.base import StrawberryList, StrawberryMaybe, StrawberryOptional
from strawberry.types.field import StrawberryField

# ── plan ──


@dataclass(frozen=True, eq=False, slots=True)
class FieldPlan:
    """One field of a selection: all nodes of the document that share a response key."""

    key: str
    """The response key: the alias or the name."""
    index: int
    """Its index in the selection."""
    parent: graphql.GraphQLObjectType
    details: list[FieldDetails]
    definition: graphql.GraphQLField
    source: FieldSource
    selections: Mapping[str, SelectionPlan]
    """By the name of the object type; empty for leaves."""
    is_async: bool
    """Whether a direct resolver has to be awaited for its value."""
    completes_purely: bool
    """Whether completing its value is pure."""
    contains_async: bool
    """Whether pure code that completes its value leaves async fields."""
    is_pure: bool
    """Whether reading its value is pure too."""

    @property
    def name(self) -> str:
        return self.details[0].node.name.value

    @property
    def type(self) -> graphql.GraphQLOutputType:
        return self.definition.type

    @property
    def nodes(self) -> list[graphql.FieldNode]:
        return [detail.node for detail in self.details]


@dataclass(frozen=True, eq=False, slots=True)
class SelectionPlan:
    """What an operation selects of an object of one type."""

    type: graphql.GraphQLObjectType
    fields: Mapping[str, FieldPlan]
    """By response key, in the order of the answer."""

    @property
    def is_pure(self) -> bool:
        """Whether each field is either pure or resolved later."""
        return all(field.is_pure or field.is_async for field in self.fields.values())

    @property
    def contains_async(self) -> bool:
        return any(field.is_async or field.contains_async for field in self.fields.values())


# ── fields ──


class Parameters(Protocol):
    """The parameters of a resolver."""

    def parse(self, given: Mapping[str, Any], ctx: Any, /) -> dict[str, Any]:
        """The resolver's keyword arguments, from coerced values under their Python names."""


class Resolution(Protocol):
    """A resolver that may be called without Strawberry: `resolver(ctx, record, /, **arguments)`."""

    @property
    def resolver(self) -> Callable[..., Any]: ...

    @property
    def of_record(self) -> bool:
        """Whether the resolver takes the record."""

    @property
    def is_async(self) -> bool: ...

    @property
    def is_batched(self) -> bool:
        """Whether the resolver takes a list of records instead of one, and answers with a list of values."""

    @property
    def parameters(self) -> Parameters: ...


@runtime_checkable
class ResolutionByType(Protocol):
    """A field of an interface whose value the record and its object type decide."""

    def of_type(self, name: str) -> Callable[[Any], Any]:
        """The function of the record for the object type of this name."""


@dataclass(frozen=True, slots=True)
class TypeName:
    """The name of the object's type."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of the record."""

    name: str


@dataclass(frozen=True, slots=True)
class RecordFunction:
    """A function of the record alone."""

    function: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class DirectResolver:
    """A resolver that is called without Strawberry."""

    resolution: Resolution
    field: StrawberryField


@dataclass(frozen=True, slots=True)
class SchemaResolver:
    """The schema's own resolver, called as graphql-core calls it."""


FieldSource: TypeAlias = TypeName | Attribute | RecordFunction | DirectResolver | SchemaResolver


def field_source(
    parent: graphql.GraphQLObjectType, name: str, definition: graphql.GraphQLField, schema: graphql.GraphQLSchema
) -> FieldSource:
    """Where the value of this field comes from."""
    if name == "__typename":
        return TypeName()
    field = definition.extensions.get("strawberry-definition")
    if not isinstance(field, StrawberryField) or not _is_unwrapped(field, schema):
        return SchemaResolver()
    if field.base_resolver is None:
        return Attribute(field.python_name) if field.default_resolver is getattr else SchemaResolver()
    wrapped = field.base_resolver.wrapped_func
    resolution: Resolution | ResolutionByType | None = getattr(wrapped, "resolution", None)
    if resolution is None or parent is schema.get_root_type(graphql.OperationType.SUBSCRIPTION):
        return SchemaResolver()
    if isinstance(resolution, ResolutionByType):
        return RecordFunction(resolution.of_type(parent.name))
    return DirectResolver(resolution, field)


def _is_unwrapped(field: StrawberryField, schema: graphql.GraphQLSchema) -> bool:
    """Whether Strawberry puts nothing between the field and its resolver."""
    strawberry_schema = getattr(schema, "_strawberry_schema", None)
    return (
        not field.extensions
        and not field.is_subscription
        and type(field).get_result is StrawberryField.get_result
        and not getattr(strawberry_schema, "exception_handlers", ())
    )


def record_classes(type_: graphql.GraphQLObjectType) -> tuple[type, ...] | None:
    """The classes whose instances are of this type, if the type's own check looks at nothing else."""
    classes: tuple[type, ...] | None = getattr(type_.is_type_of, "kinds", None)
    return classes


def type_names_by_class(schema: graphql.GraphQLSchema, type_: graphql.GraphQLAbstractType) -> dict[type, str]:
    """The object type of each class of records; empty unless the class alone decides."""
    definition = type_.extensions.get("strawberry-definition")
    if definition is None or getattr(definition, "resolve_type", None) is not None:
        return {}
    classes_by_name: dict[str, tuple[type, ...]] = {}
    for possible in schema.get_possible_types(type_):
        classes = record_classes(possible)
        if not classes:
            return {}
        classes_by_name[possible.name] = classes
    return {
        class_: next(name for name, classes in classes_by_name.items() if issubclass(class_, classes))
        for class_ in chain.from_iterable(classes_by_name.values())
        # Instances of a Strawberry class go by other rules, which Strawberry's own type resolver knows.
        if not hasattr(class_, "__strawberry_definition__")
    }


# ── planning ──
# Planning: from an operation to its plan.
#
# Fields are collected by graphql-core, so fragments, aliases, merging, @skip and @include are decided there.

MAX_FIELDS = 500
"""Fields of one plan, counted in each type they may belong to: compiling takes 0.09 ms for each."""


class NotCompilable(Exception):
    """graphql-core executes the operation instead; the reason is a constant, for the metrics."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Planner:
    """Makes the plan of an operation, or NotCompilable."""

    def __init__(
        self,
        schema: graphql.GraphQLSchema,
        document: graphql.DocumentNode,
        operation: graphql.OperationDefinitionNode,
        variables: VariableValues,
    ) -> None:
        root = schema.get_root_type(operation.operation)
        if root is None:
            raise NotCompilable("no root type")
        if operation.directives:
            raise NotCompilable("directive of an operation")
        self._root = root
        self._schema = schema
        self._fragments = _fragments(document)
        self._operation = operation
        self._variables = variables
        self._field_count = 0
        # Paths through nested interfaces multiply with each level, so the same nodes on a type are planned once.
        self._selections: dict[tuple[str, tuple[int, ...]], SelectionPlan] = {}

    def plan(self) -> SelectionPlan:
        collected = collect_fields(self._schema, self._fragments, self._variables, self._root, self._operation)
        return self._selection(self._root, collected.grouped_field_set)

    def _selection(
        self, type_: graphql.GraphQLObjectType, collected: Mapping[str, list[FieldDetails]]
    ) -> SelectionPlan:
        fields: dict[str, FieldPlan] = {}
        for key, details in collected.items():
            name = details[0].node.name.value
            definition = self._schema.get_field(type_, name)
            self._count(name)
            if definition is not None:
                fields[key] = self._field(type_, key, len(fields), details, definition)
        return SelectionPlan(type_, fields)

    def _count(self, name: str) -> None:
        self._field_count += 1
        if self._field_count > MAX_FIELDS:
            raise NotCompilable("too large")
        if name in ("__schema", "__type"):
            raise NotCompilable("introspection")

    def _field(
        self,
        parent: graphql.GraphQLObjectType,
        key: str,
        index: int,
        details: list[FieldDetails],
        definition: graphql.GraphQLField,
    ) -> FieldPlan:
        source = field_source(parent, details[0].node.name.value, definition, self._schema)
        selections = self._selections_of(graphql.get_named_type(definition.type), details)
        completes_purely = self._completes_purely(graphql.get_named_type(definition.type), selections)
        return FieldPlan(
            key,
            index,
            parent,
            details,
            definition,
            source,
            selections,
            is_async=isinstance(source, DirectResolver) and source.resolution.is_async,
            completes_purely=completes_purely,
            contains_async=completes_purely and any(selection.contains_async for selection in selections.values()),
            is_pure=completes_purely and isinstance(source, TypeName | Attribute | RecordFunction),
        )

    def _selections_of(self, type_: Any, details: list[FieldDetails]) -> dict[str, SelectionPlan]:
        """What is selected of each object type that a field may answer with."""
        if graphql.is_leaf_type(type_):
            return {}
        possible_types = self._schema.get_possible_types(type_) if graphql.is_abstract_type(type_) else [type_]
        return {possible.name: self._subselection(possible, details) for possible in possible_types}

    def _subselection(self, type_: graphql.GraphQLObjectType, details: list[FieldDetails]) -> SelectionPlan:
        key = (type_.name, tuple(id(detail.node) for detail in details))
        selection = self._selections.get(key)
        if selection is None:
            collected = collect_subfields(
                self._schema, self._fragments, self._variables, self._operation, type_, details
            )
            selection = self._selections[key] = self._selection(type_, collected.grouped_field_set)
        return selection

    def _completes_purely(self, type_: Any, selections: Mapping[str, SelectionPlan]) -> bool:
        if graphql.is_leaf_type(type_):
            return True
        if not all(selection.is_pure for selection in selections.values()):
            return False
        if graphql.is_abstract_type(type_):
            return bool(type_names_by_class(self._schema, type_))
        return type_.is_type_of is None or record_classes(type_) is not None


def _fragments(document: graphql.DocumentNode) -> dict[str, FragmentDetails]:
    """The fragments of a document, as graphql-core's collection of fields takes them."""
    fragments = {}
    for definition in document.definitions:
        if isinstance(definition, graphql.FragmentDefinitionNode):
            if definition.variable_definitions:
                raise NotCompilable("fragment variables")
            fragments[definition.name.value] = FragmentDetails(definition)
    return fragments


# ── variables ──
# Variables: coerced by graphql-core, or without it where every value is of the right type already.
#
# A value that is exactly of the Python type of a built-in scalar, or a list of such values, needs no coercing. If that
# holds for all variables of an operation, graphql-core is not called; else it coerces them all and reports the errors.

_MAX_ERRORS = 50
_INTS = range(-(2**31), 2**31)
_PYTHON_TYPES: Mapping[Any, type] = {
    graphql.GraphQLString: str,
    graphql.GraphQLID: str,
    graphql.GraphQLInt: int,
    graphql.GraphQLBoolean: bool,
}


class _SimpleVariable(NamedTuple):
    """A variable of a built-in scalar, or of a list of them."""

    name: str
    python_type: type
    is_list: bool
    is_required: bool
    default: Any


class VariableReader:
    """Reads the variables of one operation."""

    def __init__(self, schema: graphql.GraphQLSchema, operation: graphql.OperationDefinitionNode) -> None:
        self._schema = schema
        self._definitions = operation.variable_definitions or ()
        simple = [_simple_variable(schema, definition) for definition in self._definitions]
        self._simple = [variable for variable in simple if variable is not None]
        self._are_all_simple = len(self._simple) == len(self._definitions)

    def read(self, given: Mapping[str, Any], *, suggestions: bool) -> dict[str, Any] | list[graphql.GraphQLError]:
        """The coerced values, or the errors in them."""
        if not self._are_all_simple:
            return self._coerced_by_core(given, suggestions=suggestions)
        values: dict[str, Any] = {}
        for name, python_type, is_list, is_required, default in self._simple:
            value = given.get(name, default)
            if value is None or value is graphql.Undefined:
                is_coerced = not is_required
            else:
                items = value if is_list else [value]
                is_coerced = type(items) is list and all(
                    type(item) is python_type and (python_type is not int or item in _INTS) for item in items
                )
            if not is_coerced:
                return self._coerced_by_core(given, suggestions=suggestions)
            if value is not graphql.Undefined:
                values[name] = value
        return values

    def coerce(self, given: Mapping[str, Any], *, suggestions: bool) -> VariableValues | list[graphql.GraphQLError]:
        """The values as graphql-core coerces them."""
        return graphql.get_variable_values(
            self._schema, self._definitions, dict(given), max_errors=_MAX_ERRORS, hide_suggestions=not suggestions
        )

    def _coerced_by_core(
        self, given: Mapping[str, Any], *, suggestions: bool
    ) -> dict[str, Any] | list[graphql.GraphQLError]:
        values = self.coerce(given, suggestions=suggestions)
        return values.coerced if isinstance(values, VariableValues) else values


def _simple_variable(
    schema: graphql.GraphQLSchema, definition: graphql.VariableDefinitionNode
) -> _SimpleVariable | None:
    type_ = type_from_ast(schema, definition.type)
    nullable_type: Any = type_.of_type if graphql.is_non_null_type(type_) else type_
    is_list = graphql.is_list_type(nullable_type)
    # A list of nullable items is not simple: graphql-core looks at each of them.
    python_type = _PYTHON_TYPES.get(getattr(nullable_type.of_type, "of_type", None) if is_list else nullable_type)
    if python_type is None:
        return None
    name, default = definition.variable.name.value, graphql.Undefined
    if definition.default_value is not None:
        values = graphql.get_variable_values(schema, [definition], {})
        default = values.coerced.get(name, default) if isinstance(values, VariableValues) else default
    return _SimpleVariable(name, python_type, is_list, graphql.is_non_null_type(type_), default)


# ── arguments ──
# Arguments: from the document and the variables to a resolver's keyword arguments.
#
# A leaf, or a list of leaves, needs no coercing if it is a variable, or was coerced when the operation was compiled. If
# that holds for all arguments of a field, graphql-core is not called; else it coerces them all and reports the errors.


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
            if is_required and (value is None or value is graphql.Undefined):
                return self._parse(self._coerced_by_core(core), ctx)
            if is_list and value is not None and value is not graphql.Undefined:
                value = list(value)
            if value is not graphql.Undefined:
                values[name] = value
        return self._parse(values, ctx)

    def _coerced_by_core(self, core: LazyExecutor) -> dict[str, Any]:
        """The values as graphql-core coerces and Strawberry converts them."""
        node = self._field.details[0].node
        return convert_arguments(
            graphql.get_argument_values(self._field.definition, node, core.executor.variable_values),
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
    variable = given[0].value.name.value if given and isinstance(given[0].value, graphql.VariableNode) else None
    if variable is None and given and _has_variable(given[0].value):
        return None
    alone = graphql.FieldNode(name=node.name, arguments=() if variable else given)
    try:
        values = graphql.get_argument_values(graphql.GraphQLField(field.type, {name: definition}), alone)
    except graphql.GraphQLError:
        if variable is None:
            return None
        values = {}  # required, so the variable has to be present
    return _CoercedArgument(
        python_name,
        variable,
        values.get(name, graphql.Undefined),
        graphql.is_list_type(graphql.get_nullable_type(definition.type)),
        graphql.is_non_null_type(definition.type),
    )


def _has_variable(node: graphql.Node | None) -> bool:
    if isinstance(node, graphql.VariableNode):
        return True
    inside = (*getattr(node, "values", ()), *getattr(node, "fields", ()), getattr(node, "value", None))
    return any(_has_variable(inner) for inner in inside if isinstance(inner, graphql.Node))


def _is_unconverted(argument: StrawberryArgument, definition: graphql.GraphQLArgument) -> bool:
    """Whether Strawberry hands on what graphql-core coerces: a leaf, or a list of leaves, which it copies."""
    type_ = argument.type
    if isinstance(type_, StrawberryMaybe):
        return False
    if isinstance(type_, StrawberryOptional):
        type_ = type_.of_type
    inner = graphql.get_nullable_type(definition.type)
    if isinstance(type_, StrawberryList) and graphql.is_list_type(inner):
        type_ = type_.of_type.of_type if isinstance(type_.of_type, StrawberryOptional) else type_.of_type
        inner = graphql.get_nullable_type(inner.of_type)
    return graphql.is_leaf_type(inner) and type_ is not GlobalID
