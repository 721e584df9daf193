"""GraphQL types of records and enums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

import strawberry
from strawberry.types import Info

from resolvers.values.node_ids import node_id
from schema.framework.fields import ResolutionByType, described, with_resolution

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IsInstance:
    """The check whether a value is of an object type. An executor may read the classes and check them itself."""

    kinds: tuple[type, ...]

    def __call__(self, value: object, _: object) -> bool:
        return isinstance(value, self.kinds)


def record_type(record: type, description: str, *, name: str | None = None) -> Callable[[type[T]], type[T]]:
    """An object type whose values are records of this class."""

    def decorate(cls: type[T]) -> type[T]:
        cls.is_type_of = IsInstance((cls, record))  # type: ignore[attr-defined]
        return strawberry.type(cls, name=name, description=description)

    return decorate


def object_type(name: str, description: str, /, **fields: tuple[Any, Any]) -> Any:
    """An object type without a record: of each field the type, and its description or the field itself."""
    members = {field: described(of) if isinstance(of, str) else of for field, (_, of) in fields.items()}
    annotations = {field: annotation for field, (annotation, _) in fields.items()}
    return strawberry.type(type(name, (), {**members, "__annotations__": annotations}), description=description)


def enum(members: type[Enum], description: str, *, name: str | None = None, **values: str) -> None:
    """Show an enum of the resolvers or the datastore in the schema. `values` describe its members."""
    strawberry.enum(members, name=name, description=description)
    definition = members.__strawberry_definition__  # type: ignore[attr-defined]
    for value in definition.values:
        value.description = values[value.name]


# ── nodes ──


def _resolve_id(root: Any, info: Info) -> strawberry.ID:
    object_type = info._raw_info.parent_type.name  # noqa: SLF001 - Info does not show the object type
    return strawberry.ID(node_id(object_type, root.node_key))


def _ids_of(object_type: str) -> Callable[[Any], str]:
    return lambda record: node_id(object_type, record.node_key)


@strawberry.interface(description="An object with an id, by which `node` finds it.")
class Node:
    id: strawberry.ID = strawberry.field(
        description="Opaque and permanent. Use it exactly as returned.",
        resolver=with_resolution(_resolve_id, ResolutionByType(_ids_of)),
    )
