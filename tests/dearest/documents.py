"""Documents about one field of the schema, in any size: aliases, pages, lists of ids, fields beneath it, and nesting.

A field is reached on the shortest path from `Query`, and, if its type is a node, by `nodes(ids:)`.
"""

import json
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
    get_nullable_type,
    is_leaf_type,
    is_list_type,
    is_required_argument,
)

from tests.dearest.values import Ids, Kind, Values, resolution_of

_PAGES = ("first",)
_POSITIONS = ("after", "last", "before")
_BY_ID = frozenset({"node", "nodes", "viewer"})
"""The fields that name an object, and the one that answers null to visitors."""
_DETOUR = 5
"""A list's worth in single steps."""
_names = count(time.time_ns())


@dataclass(frozen=True, slots=True)
class Document:
    """A document with its variables. Each has a name of its own, so that the service has not seen it before."""

    text: str
    variables: Mapping[str, Any]

    @property
    def size(self) -> int:
        """What it takes to send."""
        return len(json.dumps({"query": self.text, "variables": self.variables}))

    @property
    def key(self) -> tuple[int, int, tuple[Any, ...]]:
        """What tells a larger document from a smaller one."""
        sizes = tuple(len(value) if isinstance(value, list) else value for value in self.variables.values())
        return len(self.text.partition("{")[2]), self.text.count("{"), sizes


class Step(NamedTuple):
    """A field of a type, and the type of the objects that go on; `on` if the field's own type is an interface."""

    parent: str
    name: str
    on: str | None = None


class Sizes(NamedTuple):
    """How large a document is. Each number grows on its own."""

    roots: int = 1
    """Aliases of the first field on the path."""
    aliases: int = 1
    """Aliases of the field itself."""
    lists: int = 1
    """Different lists that the aliases name."""
    entries: int = 1
    """Entries of each list."""
    beneath: int = 1
    """Fields selected beneath the field."""
    cycles: int = 0
    """How often the path leads back to the field, from beneath it."""
    outer: int = 1
    """The size of pages on the path."""
    page: int = 1
    """The size of the field's own page."""
    inner: int = 1
    """The size of pages beneath the field."""


LARGEST = Sizes(roots=40, aliases=40, lists=40, entries=2_000, beneath=60, cycles=6, outer=100, page=100, inner=100)


class Schema:
    """What the documents need to know of a schema."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self.graphql = schema
        assert schema.query_type is not None
        self.query = schema.query_type
        self.largest_lists: dict[Step, int] = {}
        """How many entries the lists of a field may have, where it was tried."""

    def definition(self, parent: str, name: str) -> GraphQLField:
        found = self.graphql.get_type(parent)
        assert isinstance(found, GraphQLObjectType | GraphQLInterfaceType)
        definition: GraphQLField = found.fields[name]
        return definition

    def steps(self, parent: str) -> Iterator[tuple[Step, str]]:
        """The fields of a type that answer objects, and the types of these objects."""
        kind = self.graphql.get_type(parent)
        for name, definition in kind.fields.items() if isinstance(kind, GraphQLObjectType) else ():
            answered = get_named_type(definition.type)
            if isinstance(answered, GraphQLObjectType):
                yield Step(parent, name), answered.name
            elif isinstance(answered, GraphQLInterfaceType):
                for one in self.graphql.get_possible_types(answered):
                    yield Step(parent, name, one.name), one.name

    def path(self, start: str, end: str, *, without: frozenset[str] = frozenset()) -> tuple[Step, ...] | None:
        """The way from one type to another that leads to the most objects, not by these fields of the first.

        A list or a page is worth a detour: what it leads to is read for each of its objects.
        """
        numbers = count()  # so that no two ways are compared
        pending: list[tuple[int, int, str, tuple[Step, ...]]] = [(0, next(numbers), start, ())]
        seen: set[str] = set()
        while pending:
            length, _, at, path = heappop(pending)
            if at == end and path:
                return path
            if at in seen:
                continue
            seen.add(at)
            for step, reached in self.steps(at):
                if path or step.name not in without:
                    weight = 1 if self.is_many(step) else _DETOUR if path else 2 * _DETOUR
                    heappush(pending, (length + weight, next(numbers), reached, (*path, step)))
        return None

    def is_many(self, step: Step) -> bool:
        """Whether a field answers a list or a page."""
        definition = self.definition(step.parent, step.name)
        return is_list_type(get_nullable_type(definition.type)) or "first" in definition.args

    def takes_list(self, step: Step) -> bool:
        """Whether an argument of a field is a list."""
        arguments = self.definition(step.parent, step.name).args.values()
        return any(is_list_type(get_nullable_type(argument.type)) for argument in arguments)

    def fields(self) -> Iterator[tuple[str, str]]:
        """Every field that queries reach, with its type: those of all objects that a query may answer."""
        pending, seen = [self.query.name], set[str]()
        while pending:
            parent = pending.pop()
            if parent in seen:
                continue
            seen.add(parent)
            pending += [reached for _, reached in self.steps(parent)]
            kind = self.graphql.get_type(parent)
            assert isinstance(kind, GraphQLObjectType)
            yield from ((parent, name) for name in kind.fields)


@dataclass
class Template:
    """Documents about a field, which name objects of one kind."""

    schema: Schema
    path: tuple[Step, ...]
    """How the field's parent is reached."""
    target: Step
    ids: Ids
    kind: Kind
    node_type: str
    optional: bool = False
    """Whether the field's optional arguments are given too."""
    back: tuple[Step, ...] = ()
    """How the parent is reached again from beneath the field."""

    @property
    def name(self) -> str:
        way = ".".join([*(step.name for step in self.path), f"{self.target.parent}.{self.target.name}"])
        more = ", all arguments" if self.optional else ""
        return f"{way} ({self.kind.value}{f' {self.node_type}' if self.node_type else ''}{more})"

    @property
    def shape(self) -> Hashable:
        """What decides how large the documents are in each size."""
        return self.path, self.target, self.node_type, self.optional, self.back

    def document(self, sizes: Sizes, *, draft: bool = False) -> Document:
        """A document that no one has sent before; ids that were invented are others in each. A draft has no ids."""
        return _Writing(self, sizes, draft).document()


@dataclass
class _Writing:
    """One document while it is written."""

    template: Template
    sizes: Sizes
    draft: bool
    variables: dict[str, Any] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.template
        on = next((step.on for step in given.path if step.on), None)
        self._named = Values(given.ids, given.kind, given.node_type)
        self._existing = Values(given.ids, Kind.EXISTING, on or given.node_type)
        self._lists = count()
        self._aliases = count()

    def document(self) -> Document:
        roots, aliases = self.sizes.roots, self.sizes.aliases
        if not self.template.path:
            roots, aliases = 1, max(roots, aliases)
        body = " ".join(self._chain(self.template.path, aliases, alias=roots > 1) for _ in range(roots))
        declared = ", ".join(f"${name}: {type_}" for name, type_ in self.declared.items())
        return Document(f"query D{next(_names)}{f'({declared})' if declared else ''} {{ {body} }}", self.variables)

    def _chain(self, path: tuple[Step, ...], aliases: int, *, alias: bool = False) -> str:
        if not path:
            return self._targets(aliases)
        step, *rest = path
        inside = self._chain(tuple(rest), aliases)
        return self._field(step, inside, "outer", alias=alias)

    def _targets(self, aliases: int) -> str:
        inside = self._beneath()
        for _ in range(self.sizes.cycles):
            way = self._field(self.template.target, inside, "page", optional=self.template.optional)
            for step in reversed(self.template.back):
                way = self._field(step, way, "inner")
            inside = way
        target, optional = self.template.target, self.template.optional
        return " ".join(
            self._field(target, inside, "page", alias=aliases > 1, optional=optional) for _ in range(aliases)
        )

    def _field(self, step: Step, inside: str, size: str, *, alias: bool = False, optional: bool = False) -> str:
        definition = self.template.schema.definition(step.parent, step.name)
        arguments = self._arguments(step, definition, size, optional=optional)
        inside = f"... on {step.on} {{ {inside} }}" if step.on and inside else inside
        named = f"a{next(self._aliases)}: " if alias else ""
        return f"{named}{step.name}{arguments}{f' {{ {inside} }}' if inside else ''}"

    def _arguments(self, step: Step, definition: GraphQLField, size: str, *, optional: bool) -> str:
        values = self._named if size == "page" else self._existing
        given = []
        for name, argument in definition.args.items():
            if name in _PAGES:
                given.append(f"{name}: {self._variable(size, 'Int', getattr(self.sizes, size))}")
            elif name in _POSITIONS or not (optional or is_required_argument(argument)):
                continue
            elif is_list_type(get_nullable_type(argument.type)):
                given.append(f"{name}: {self._list(step, definition, name, values)}")
            else:
                given.append(f"{name}: {self._literal(definition, name, values)}")
        return f"({', '.join(given)})" if given else ""

    def _literal(self, definition: GraphQLField, name: str, values: Values) -> str:
        if self.draft:
            return '"x"'
        value = values.of(definition, name)
        return value if isinstance(get_named_type(definition.args[name].type), GraphQLEnumType) else json.dumps(value)

    def _list(self, step: Step, definition: GraphQLField, name: str, values: Values) -> str:
        number = next(self._lists) % self.sizes.lists
        label = f"l{number}{name}"
        if label not in self.variables:
            most = self.template.schema.largest_lists.get(Step(step.parent, step.name), LARGEST.entries)
            numbers = range(min(self.sizes.entries, most))
            entries = [f"{label}.{n}" if self.draft else values.of(definition, name) for n in numbers]
            self._variable(label, str(definition.args[name].type), entries)
        return f"${label}"

    def _variable(self, name: str, type_: str, value: Any) -> str:
        self.variables[name], self.declared[name] = value, type_
        return f"${name}"

    def _beneath(self) -> str:
        """As many fields beneath the field as the size says, those that answer objects first."""
        schema, target = self.template.schema, self.template.target
        answered = get_named_type(schema.definition(target.parent, target.name).type)
        return self._some_of(answered, self.sizes.beneath)

    def _some_of(self, kind: Any, number: int) -> str:
        if number == 1 or is_leaf_type(kind) or isinstance(kind, GraphQLUnionType):
            return self._thin(kind)
        if isinstance(kind, GraphQLInterfaceType):
            if not self.template.node_type:
                return self._thin(kind)
            one = self.template.schema.graphql.get_type(self.template.node_type)
            return f"... on {self.template.node_type} {{ {self._some_of(one, number)} }}"
        if "nodes" in kind.fields:
            total = " totalCount" if "totalCount" in kind.fields else ""
            return f"nodes {{ {self._some_of(get_named_type(kind.fields['nodes'].type), number)} }}{total}"
        ordered = sorted(kind.fields.items(), key=lambda item: is_leaf_type(get_named_type(item[1].type)))
        return " ".join(self._selected(kind.name, name, definition) for name, definition in ordered[:number])

    def _selected(self, parent: str, name: str, definition: GraphQLField) -> str:
        return self._field(Step(parent, name), self._thin(get_named_type(definition.type)), "inner")

    def _thin(self, kind: Any) -> str:
        """The least that can be selected of a type."""
        if is_leaf_type(kind):
            return ""
        if isinstance(kind, GraphQLUnionType):
            return "__typename"
        if "nodes" in kind.fields:
            return f"nodes {{ {self._thin(get_named_type(kind.fields['nodes'].type))} }}"
        attributes = (name for name, one in kind.fields.items() if is_leaf_type(get_named_type(one.type)))
        return next((name for name in attributes if resolution_of(kind.fields[name]) is None), "__typename")


def templates(schema: Schema, ids: Ids, node_types: Sequence[str]) -> Iterator[Template]:
    """For every field that queries reach and that may read anything: documents of each kind of objects it can name."""
    for parent, name in schema.fields():
        resolution = resolution_of(schema.definition(parent, name))
        if resolution is not None and resolution.is_async:
            for path in _paths(schema, parent):
                yield from _of_field(schema, path, Step(parent, name), ids, node_types)


def _paths(schema: Schema, parent: str) -> list[tuple[Step, ...]]:
    """By `nodes`, and by what leads to most objects without it."""
    query = schema.query.name
    if parent == query:
        return [()]
    ways = (schema.path(query, parent, without=_BY_ID), schema.path(query, parent, without=frozenset({"node"})))
    return list(dict.fromkeys(path for path in ways if path))


def _of_field(
    schema: Schema, path: tuple[Step, ...], target: Step, ids: Ids, node_types: Sequence[str]
) -> Iterator[Template]:
    definition = schema.definition(target.parent, target.name)
    answered = get_named_type(definition.type)
    named = [name for name in definition.args if name not in (*_PAGES, *_POSITIONS)]
    takes_any = isinstance(answered, GraphQLInterfaceType)
    has_options = any(not is_required_argument(definition.args[name]) for name in named)
    back = None if takes_any or is_leaf_type(answered) else schema.path(answered.name, target.parent)
    for node_type in node_types if takes_any else ("",):
        for kind in (Kind.EXISTING, Kind.INVENTED) if named else (Kind.EXISTING,):
            for optional in (False, True) if has_options else (False,):
                yield Template(schema, path, target, ids, kind, node_type, optional, back or ())
    if schema.takes_list(target):
        for kind in (Kind.MIXED, Kind.ALTERED):
            yield Template(schema, path, target, ids, kind, "", has_options, back or ())
