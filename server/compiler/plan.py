"""The plan of an operation: a tree of selections and fields.

    SelectionPlan ── of one object type ── FieldPlan ── where its value comes from ── SelectionPlan per possible type

A plan holds for one operation and one choice of the variables in its @skip and @include.

Completing a value is *pure* if it calls no resolver: it reads attributes, completes leaves, and leaves async fields to
be resolved later. Pure code may run twice, so it has no error handling: after any failure the async fields it left are
dropped, and graphql-core completes the value from the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphql import FieldNode, GraphQLField, GraphQLObjectType, GraphQLOutputType

if TYPE_CHECKING:
    from graphql.execution.collect_fields import FieldDetails

    from server.compiler.fields import FieldSource


@dataclass(frozen=True, eq=False, slots=True)
class FieldPlan:
    """One field of a selection: all nodes of the document that share a response key."""

    key: str
    """The response key: the alias or the name."""
    index: int
    """Its index in the selection."""
    parent: GraphQLObjectType
    details: list[FieldDetails]
    definition: GraphQLField
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
    def type(self) -> GraphQLOutputType:
        return self.definition.type

    @property
    def nodes(self) -> list[FieldNode]:
        return [detail.node for detail in self.details]


@dataclass(frozen=True, eq=False, slots=True)
class SelectionPlan:
    """What an operation selects of an object of one type."""

    type: GraphQLObjectType
    fields: Mapping[str, FieldPlan]
    """By response key, in the order of the answer."""

    @property
    def is_pure(self) -> bool:
        """Whether each field is either pure or resolved later."""
        return all(field.is_pure or field.is_async for field in self.fields.values())

    @property
    def contains_async(self) -> bool:
        return any(field.is_async or field.contains_async for field in self.fields.values())
