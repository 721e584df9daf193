"""How a field's value is had: what may be done instead of calling the schema's resolver, because it is the same.

| kind      | what                                                   | recognised by                                   |
|-----------|--------------------------------------------------------|-------------------------------------------------|
| TYPENAME  | the name of the object's type                          | `__typename`                                    |
| ATTRIBUTE | an attribute of the record                             | a Strawberry field, no resolver, no extensions  |
| OF_TYPE   | a function of the record, made for the object's type   | `of_type` of the resolver (ids of nodes)        |
| RESOLVER  | a resolver of ours: context, record, arguments         | `resolution` of the resolver (schema/fields.py) |
| ANYTHING  | the schema's resolver, with graphql-core's information | everything else                                 |

Whatever Strawberry may put between a field and its resolver (extensions, permissions, handlers of exceptions, a default
resolver of the application's own) makes it ANYTHING.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphql import GraphQLField, GraphQLObjectType, GraphQLSchema, OperationType
from strawberry.types.field import StrawberryField

if TYPE_CHECKING:
    from schema.fields import Resolution

TYPENAME, ATTRIBUTE, OF_TYPE, RESOLVER, ANYTHING = "typename", "attribute", "of_type", "resolver", "anything"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a field's value comes from."""

    kind: str
    attribute: str = ""
    function: Callable[[Any], Any] | None = None
    resolution: Resolution | None = None
    field: StrawberryField | None = None


def source_of(parent: GraphQLObjectType, name: str, definition: GraphQLField, schema: GraphQLSchema) -> Source:
    """Where the value of this field comes from."""
    if name == "__typename":
        return Source(TYPENAME)
    field = definition.extensions.get("strawberry-definition")
    if not isinstance(field, StrawberryField) or not _is_bare(field, schema):
        return Source(ANYTHING)
    if field.base_resolver is None:
        return Source(ATTRIBUTE, attribute=field.python_name) if field.default_resolver is getattr else Source(ANYTHING)
    function = field.base_resolver.wrapped_func
    if hasattr(function, "of_type"):
        return Source(OF_TYPE, function=function.of_type(parent.name))
    if hasattr(function, "resolution") and parent is not schema.get_root_type(OperationType.SUBSCRIPTION):
        return Source(RESOLVER, resolution=function.resolution, field=field)
    return Source(ANYTHING)


def _is_bare(field: StrawberryField, schema: GraphQLSchema) -> bool:
    strawberry = getattr(schema, "_strawberry_schema", None)
    return (
        not field.extensions
        and not field.is_subscription
        and type(field).get_result is StrawberryField.get_result
        and not getattr(strawberry, "exception_handlers", ())
    )


def kinds_of(type_: GraphQLObjectType) -> tuple[type, ...] | None:
    """The classes whose instances are of this type, where that is all the type's own check looks at."""
    kinds: tuple[type, ...] | None = getattr(getattr(type_.is_type_of, "__func__", None), "kinds", None)
    return kinds
