"""From an operation to a tree of what to do.

    Selection ── of one object type ── Step ── a field and how its value is had ── Selection of each type it may answer

The tree is made with graphql-core's own collection of fields, so fragments, aliases, merging, @skip and @include are
decided there and only there. It holds for one operation and one choice of the variables in @skip and @include.

A selection is *plain* when nothing in it asks a resolver there and then: attributes of records and leaves, and fields
that are only noted to be waited for later. What is plain may be done twice, so plain code has no error handling at all:
whatever goes wrong, what it noted is forgotten and graphql-core does it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    GraphQLAbstractType,
    GraphQLField,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    get_named_type,
    is_abstract_type,
    is_leaf_type,
)
from graphql.execution import VariableValues
from graphql.execution.collect_fields import FieldDetails, FragmentDetails, collect_fields, collect_subfields

from server.compiler.fields import ATTRIBUTE, OF_TYPE, TYPENAME, Source, kinds_of, source_of

MOST_STEPS = 1_000


class Unplanned(Exception):
    """The operation is left to graphql-core; the reason is a constant of the program, for the metrics."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(eq=False, slots=True)
class Step:
    """One field of a selection: all nodes that asked for it under one response name."""

    key: str
    parent: GraphQLObjectType
    details: list[FieldDetails]
    definition: GraphQLField
    source: Source
    selections: Mapping[str, Selection]
    """By the name of the object type; empty for leaves."""
    place: int = 0
    """The how-manieth of its selection it is."""
    plain: bool = False
    plain_inside: bool = False
    """Whether the value, once had, is completed by plain code."""
    notes: bool = False
    """Whether that code notes fields to be waited for."""
    complete: Callable[..., Any] | None = field(default=None, repr=False)
    """Set when the source text has become functions: completes a value that was waited for."""
    settle: Callable[..., Any] | None = field(default=None, repr=False)
    """Puts values that were waited for in their places, where that takes plain code only."""

    @property
    def is_waited_for(self) -> bool:
        resolution = self.source.resolution
        return resolution is not None and resolution.is_async

    @property
    def name(self) -> str:
        return self.details[0].node.name.value

    @property
    def type(self) -> GraphQLOutputType:
        return self.definition.type

    @property
    def nodes(self) -> list[FieldNode]:
        return [detail.node for detail in self.details]


@dataclass(eq=False, slots=True)
class Selection:
    """What is wanted of an object of one type."""

    type: GraphQLObjectType
    steps: dict[str, Step] = field(default_factory=dict)
    plain: bool = False
    notes: bool = False


def fragments_of(document: Any) -> dict[str, FragmentDetails]:
    """The fragments of a document as graphql-core's collection takes them."""
    found = {}
    for definition in document.definitions:
        if isinstance(definition, FragmentDefinitionNode):
            if definition.variable_definitions:
                reason = "fragment variables"
                raise Unplanned(reason)
            found[definition.name.value] = FragmentDetails(definition)
    return found


def planned(
    schema: GraphQLSchema, document: Any, operation: OperationDefinitionNode, variables: VariableValues
) -> Selection:
    """The tree of an operation, or Unplanned."""
    root = schema.get_root_type(operation.operation)
    if root is None:
        reason = "no root type"
        raise Unplanned(reason)
    if operation.directives:
        reason = "directive of an operation"
        raise Unplanned(reason)
    return _Planner(schema, fragments_of(document), operation, variables).root(root)


class _Planner:
    def __init__(
        self,
        schema: GraphQLSchema,
        fragments: dict[str, FragmentDetails],
        operation: OperationDefinitionNode,
        variables: VariableValues,
    ) -> None:
        self._schema = schema
        self._fragments = fragments
        self._operation = operation
        self._variables = variables
        self._steps = 0
        # An interface within an interface within an interface has as many paths as types to that power, but each
        # type wants the same of the same nodes wherever it stands.
        self._known: dict[tuple[str, tuple[int, ...]], Selection] = {}

    def root(self, type_: GraphQLObjectType) -> Selection:
        collected = collect_fields(self._schema, self._fragments, self._variables, type_, self._operation)
        return self._selection(type_, collected.grouped_field_set)

    def _selection(self, type_: GraphQLObjectType, fields: Mapping[str, list[FieldDetails]]) -> Selection:
        selection = Selection(type_)
        for key, details in fields.items():
            step = self._step(type_, key, details)
            if step is not None:
                step.place = len(selection.steps)
                selection.steps[key] = step
        selection.plain = all(step.plain or step.is_waited_for for step in selection.steps.values())
        selection.notes = any(step.is_waited_for or step.notes for step in selection.steps.values())
        return selection

    def _step(self, parent: GraphQLObjectType, key: str, details: list[FieldDetails]) -> Step | None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            reason = "too large"
            raise Unplanned(reason)
        name = details[0].node.name.value
        definition = self._schema.get_field(parent, name)
        if definition is None:
            return None
        if name in ("__schema", "__type"):
            reason = "introspection"
            raise Unplanned(reason)
        inner = get_named_type(definition.type)
        source = source_of(parent, name, definition, self._schema)
        step = Step(
            key, parent, details, definition, source, {} if is_leaf_type(inner) else self._inside(inner, details)
        )
        step.plain_inside = _completes_plainly(self._schema, inner, step)
        step.notes = step.plain_inside and any(one.notes for one in step.selections.values())
        step.plain = step.plain_inside and source.kind in (TYPENAME, ATTRIBUTE, OF_TYPE)
        return step

    def _inside(self, type_: Any, details: list[FieldDetails]) -> dict[str, Selection]:
        possible = self._schema.get_possible_types(type_) if is_abstract_type(type_) else [type_]
        return {one.name: self._of(one, details) for one in possible}

    def _of(self, type_: GraphQLObjectType, details: list[FieldDetails]) -> Selection:
        place = (type_.name, tuple(id(detail.node) for detail in details))
        known = self._known.get(place)
        if known is None:
            collected = collect_subfields(
                self._schema, self._fragments, self._variables, self._operation, type_, details
            )
            known = self._known[place] = self._selection(type_, collected.grouped_field_set)
        return known


def _completes_plainly(schema: GraphQLSchema, inner: Any, step: Step) -> bool:
    if is_leaf_type(inner):
        return True
    if not all(selection.plain for selection in step.selections.values()):
        return False
    if is_abstract_type(inner):
        return bool(dispatch(schema, inner))
    return inner.is_type_of is None or kinds_of(inner) is not None


def dispatch(schema: GraphQLSchema, type_: GraphQLAbstractType) -> dict[type, str]:
    """The object type of each kind of record, where the schema decides by the record's class alone; else nothing."""
    found: dict[type, str] = {}
    definition = type_.extensions.get("strawberry-definition")
    if definition is None or getattr(definition, "resolve_type", None) is not None:
        return found
    possible = schema.get_possible_types(type_)
    every = [kinds_of(one) for one in possible]
    if not all(every):
        return {}
    for kinds in every:
        for kind in kinds or ():
            # Instances of a Strawberry class go by other rules, which its own resolver of types knows.
            if hasattr(kind, "__strawberry_definition__") or kind in found:
                continue
            first = next(one for one, its in zip(possible, every, strict=True) if issubclass(kind, its or ()))
            found[kind] = first.name
    return found


def is_serial(operation: OperationDefinitionNode) -> bool:
    return operation.operation is OperationType.MUTATION
