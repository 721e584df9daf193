"""GraphQL types of records and enums."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any, TypeVar

import strawberry
from graphql import GraphQLError, StringValueNode, ValueNode
from strawberry.types import Info
from strawberry.types.scalar import scalar

from datastore.dynamo import iso
from resolvers.values.node_ids import node_id
from schema.framework.fields import ResolutionByType, described, with_resolution

# ── scalars ──

T = TypeVar("T")

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


# The parsers raise GraphQLError alone: any other exception would be answered as a fault of this program.


def _parse_moment(value: Any) -> datetime:
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        try:
            parsed = datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):  # the 13th month; a moment of the year 0 or 10,000 in UTC
            pass
        else:
            return parsed.replace(microsecond=parsed.microsecond // 1000 * 1000)
    raise GraphQLError("A DateTime is a moment as RFC 3339 writes it, with its zone: 2026-11-20T20:00:00Z.")


def _parse_day(value: Any) -> date:
    if isinstance(value, str) and _DAY.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise GraphQLError("A Date is a day of the calendar, written as yyyy-mm-dd.")


def _literals(parse: Callable[[Any], T]) -> Callable[[ValueNode, Mapping[str, Any] | None], T]:
    """The parser of a scalar's literals. Its errors name their place in the document."""

    def parse_literal(node: ValueNode, _: Mapping[str, Any] | None = None) -> T:
        try:
            return parse(node.value if isinstance(node, StringValueNode) else None)
        except GraphQLError as error:
            raise GraphQLError(error.message, node) from None

    return parse_literal


SCALARS: dict[object, Any] = {
    datetime: scalar(
        name="DateTime",
        description="A time in RFC 3339 format, in UTC, to the millisecond: 2026-11-20T20:00:00.000Z.",
        serialize=iso,
        parse_value=_parse_moment,
        parse_literal=_literals(_parse_moment),
        specified_by_url="https://www.rfc-editor.org/rfc/rfc3339",
    ),
    date: scalar(
        name="Date",
        description="A calendar day: yyyy-mm-dd.",
        serialize=date.isoformat,
        parse_value=_parse_day,
        parse_literal=_literals(_parse_day),
    ),
}


# ── types ──


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
