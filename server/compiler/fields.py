"""Where a field's value comes from, and which record belongs to which object type.

Where the outcome is the same, the compiler goes around Strawberry and graphql-core:

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
from typing import Any, Protocol, TypeAlias, runtime_checkable

from graphql import GraphQLAbstractType, GraphQLField, GraphQLObjectType, GraphQLSchema, OperationType
from strawberry.types.field import StrawberryField


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


def field_source(parent: GraphQLObjectType, name: str, definition: GraphQLField, schema: GraphQLSchema) -> FieldSource:
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
    if resolution is None or parent is schema.get_root_type(OperationType.SUBSCRIPTION):
        return SchemaResolver()
    if isinstance(resolution, ResolutionByType):
        return RecordFunction(resolution.of_type(parent.name))
    return DirectResolver(resolution, field)


def _is_unwrapped(field: StrawberryField, schema: GraphQLSchema) -> bool:
    """Whether Strawberry puts nothing between the field and its resolver."""
    strawberry_schema = getattr(schema, "_strawberry_schema", None)
    return (
        not field.extensions
        and not field.is_subscription
        and type(field).get_result is StrawberryField.get_result
        and not getattr(strawberry_schema, "exception_handlers", ())
    )


def record_classes(type_: GraphQLObjectType) -> tuple[type, ...] | None:
    """The classes whose instances are of this type, if the type's own check looks at nothing else."""
    classes: tuple[type, ...] | None = getattr(type_.is_type_of, "kinds", None)
    return classes


def type_names_by_class(schema: GraphQLSchema, type_: GraphQLAbstractType) -> dict[type, str]:
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
