"""Planning: from an operation to its plan.

Fields are collected by graphql-core, so fragments, aliases, merging, @skip and @include are decided there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLField,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    get_named_type,
    is_abstract_type,
    is_leaf_type,
)
from graphql.execution import VariableValues
from graphql.execution.collect_fields import FieldDetails, FragmentDetails, collect_fields, collect_subfields

from server.compiler.fields import (
    Attribute,
    DirectResolver,
    RecordFunction,
    TypeName,
    field_source,
    record_classes,
    type_names_by_class,
)
from server.compiler.plan import FieldPlan, SelectionPlan

MAX_FIELDS = 500
"""Fields of one plan, counted in each type they may belong to: compiling takes 0.09 ms for each."""


class NotCompilable(Exception):
    """graphql-core executes the operation instead; the reason is a constant, for the metrics."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def plan_operation(
    schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode, variables: VariableValues
) -> SelectionPlan:
    """The plan of an operation, from its root."""
    root = schema.get_root_type(operation.operation)
    if root is None:
        raise NotCompilable("no root type")
    if operation.directives:
        raise NotCompilable("directive of an operation")
    return _Planner(schema, document, operation, variables).root(root)


class _Planner:
    def __init__(
        self,
        schema: GraphQLSchema,
        document: DocumentNode,
        operation: OperationDefinitionNode,
        variables: VariableValues,
    ) -> None:
        self._schema = schema
        self._fragments = _fragments(document)
        self._operation = operation
        self._variables = variables
        self._field_count = 0
        # Paths through nested interfaces multiply with each level, so the same nodes on a type are planned once.
        self._selections: dict[tuple[str, tuple[int, ...]], SelectionPlan] = {}

    def root(self, type_: GraphQLObjectType) -> SelectionPlan:
        collected = collect_fields(self._schema, self._fragments, self._variables, type_, self._operation)
        return self._selection(type_, collected.grouped_field_set)

    def _selection(self, type_: GraphQLObjectType, collected: Mapping[str, list[FieldDetails]]) -> SelectionPlan:
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
        self, parent: GraphQLObjectType, key: str, index: int, details: list[FieldDetails], definition: GraphQLField
    ) -> FieldPlan:
        source = field_source(parent, details[0].node.name.value, definition, self._schema)
        selections = self._selections_of(get_named_type(definition.type), details)
        completes_purely = self._completes_purely(get_named_type(definition.type), selections)
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
        if is_leaf_type(type_):
            return {}
        possible_types = self._schema.get_possible_types(type_) if is_abstract_type(type_) else [type_]
        return {possible.name: self._subselection(possible, details) for possible in possible_types}

    def _subselection(self, type_: GraphQLObjectType, details: list[FieldDetails]) -> SelectionPlan:
        key = (type_.name, tuple(id(detail.node) for detail in details))
        selection = self._selections.get(key)
        if selection is None:
            collected = collect_subfields(
                self._schema, self._fragments, self._variables, self._operation, type_, details
            )
            selection = self._selections[key] = self._selection(type_, collected.grouped_field_set)
        return selection

    def _completes_purely(self, type_: Any, selections: Mapping[str, SelectionPlan]) -> bool:
        if is_leaf_type(type_):
            return True
        if not all(selection.is_pure for selection in selections.values()):
            return False
        if is_abstract_type(type_):
            return bool(type_names_by_class(self._schema, type_))
        return type_.is_type_of is None or record_classes(type_) is not None


def _fragments(document: DocumentNode) -> dict[str, FragmentDetails]:
    """The fragments of a document, as graphql-core's collection of fields takes them."""
    fragments = {}
    for definition in document.definitions:
        if isinstance(definition, FragmentDefinitionNode):
            if definition.variable_definitions:
                raise NotCompilable("fragment variables")
            fragments[definition.name.value] = FragmentDetails(definition)
    return fragments
