"""Limits of an operation, checked before it runs: on its text, its syntax tree, and the objects that it asks for.

The order matters. Brackets are counted before parsing, because the parser recurses. Names are counted before
validation, which compares fields of the same name pair by pair. Depth and complexity need fragments without cycles, so
they follow validation.

Complexity: every field counts 1. The fields inside a field with page arguments count once for each object asked for
(`first` or `last`, 20 by default), those inside a field with a list of ids once for each id. `Cost` is built once for
each operation and evaluated with the variables of each request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
)

Variables: TypeAlias = Mapping[str, Any]

_STRINGS_AND_COMMENTS = re.compile(r'"""(?:[^"\\]|\\"""|\\|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|#[^\n\r]*')
_BRACKETS = re.compile(r"[{}()\[\]]")
_TOKENS = re.compile(r"\.\.\.|\w+|[^\s\w,]")
_PAGE_SIZE = 20


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a deployment. With the defaults GraphiQL's introspection and all examples pass."""

    nesting: int = 60
    tokens: int = 4_000
    fields: int = 600
    same_name: int = 60
    aliases: int = 64
    directives: int = 64
    fragments: int = 64
    depth: int = 16
    introspection_depth: int = 20
    complexity: int = 20_000


class LimitExceeded(GraphQLError):
    """The operation exceeds a limit; the message names it."""

    def __init__(self, counted: str, count: int | str, limit: int) -> None:
        super().__init__(
            f"This operation has {counted}: {count}. "
            f"At most {limit} are accepted; ask for less, or in several requests.",
            extensions={"code": "BAD_USER_INPUT"},
        )


def check_nesting(text: str, limits: Limits) -> None:
    """Before parsing: the parser recurses with every bracket, and takes time with every token."""
    bare = _STRINGS_AND_COMMENTS.sub("", text)
    # The parser counts tokens too, but takes 30 ms for the first 4,000; this takes 1 ms.
    if (tokens := len(_TOKENS.findall(bare))) > limits.tokens:
        raise LimitExceeded("tokens", tokens, limits.tokens)
    level = 0
    for bracket in _BRACKETS.finditer(bare):
        level += 1 if bracket[0] in "{([" else -1
        if level > limits.nesting:
            raise LimitExceeded("brackets within brackets", f"more than {limits.nesting} levels", limits.nesting)


def check_counts(document: DocumentNode, limits: Limits) -> None:
    """Before validation: counts that need no schema."""
    names: Counter[str] = Counter()
    aliases = directives = fragments = 0
    for node in _selections(document):
        directives += len(node.directives or ())
        if isinstance(node, FieldNode):
            aliases += node.alias is not None
            names[(node.alias or node.name).value] += 1
    for definition in document.definitions:
        fragments += isinstance(definition, FragmentDefinitionNode)
        directives += len(getattr(definition, "directives", None) or ())
    counts = (
        ("aliases", aliases, limits.aliases),
        ("directives", directives, limits.directives),
        ("fragments", fragments, limits.fragments),
        ("fields", names.total(), limits.fields),
        ("fields of the same name", max(names.values(), default=0), limits.same_name),
    )
    for counted, count, limit in counts:
        if count > limit:
            raise LimitExceeded(counted, count, limit)


def _selections(document: DocumentNode) -> Iterator[FieldNode | InlineFragmentNode | FragmentSpreadNode]:
    pending = [definition.selection_set for definition in document.definitions if hasattr(definition, "selection_set")]
    while pending:
        selection_set = pending.pop()
        if selection_set is None:
            continue
        for node in selection_set.selections:
            yield node
            if isinstance(node, FieldNode | InlineFragmentNode):
                pending.append(node.selection_set)


def check_depth(
    operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode], limits: Limits
) -> None:
    """After validation: how deep fields lie within fields. Introspection has a limit of its own."""
    fragment_depths: dict[str, int] = {}

    def depth(selection_set: SelectionSetNode | None) -> int:
        return max((depth_of(node) for node in selection_set.selections), default=0) if selection_set else 0

    def depth_of(node: Any) -> int:
        if isinstance(node, FieldNode):
            return 1 + depth(node.selection_set)
        if isinstance(node, InlineFragmentNode):
            return depth(node.selection_set)
        name = node.name.value
        if name not in fragment_depths:
            fragment_depths[name] = depth(fragments[name].selection_set)
        return fragment_depths[name]

    for node in operation.selection_set.selections:
        introspects = isinstance(node, FieldNode) and node.name.value.startswith("__")
        limit = limits.introspection_depth if introspects else limits.depth
        if (levels := depth_of(node)) > limit:
            raise LimitExceeded("levels of fields", levels, limit)


class _Size(NamedTuple):
    """How many objects a variable asks for: a page size, or the length of a list of ids."""

    variable: str
    default: int


class _Sum(NamedTuple):
    """A constant, and products of a factor and an earlier sum, which stands at an index."""

    constant: int
    products: list[tuple[int | _Size, int]]


class Cost:
    """The complexity of an operation as a function of its variables.

    A fragment is added up once however often it is spread: a chain of fragments can stand for more fields than there
    is time to count.
    """

    def __init__(self, operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]) -> None:
        self._fragments = fragments
        self._fragment_sums: dict[str, _Sum] = {}
        self._sums: list[_Sum] = []  # those that depend on variables, inner ones first, and the operation's own
        self._sums.append(self._sum(operation.selection_set))

    def __call__(self, variables: Variables) -> int:
        totals: list[int] = []
        for constant, products in self._sums:
            total = constant
            for factor, index in products:
                times = factor if isinstance(factor, int) else _objects(variables.get(factor.variable), factor.default)
                total += times * totals[index]
            totals.append(total)
        return totals[-1]

    def _sum(self, selection_set: SelectionSetNode) -> _Sum:
        constant, products = 0, []
        for node in selection_set.selections:
            factor: int | _Size = 1
            if isinstance(node, FieldNode):
                constant, factor = constant + 1, _factor(node)
            inner = self._inner(node)
            if isinstance(factor, int) and not inner.products:
                constant += factor * inner.constant
            else:
                self._sums.append(inner)
                products.append((factor, len(self._sums) - 1))
        return _Sum(constant, products)

    def _inner(self, node: Any) -> _Sum:
        """The sum of what is selected inside a node."""
        if not isinstance(node, FragmentSpreadNode):
            return self._sum(node.selection_set) if node.selection_set else _Sum(0, [])
        name = node.name.value
        if name not in self._fragment_sums:
            self._fragment_sums[name] = self._sum(self._fragments[name].selection_set)
        return self._fragment_sums[name]


def _factor(node: FieldNode) -> int | _Size:
    """How many objects a field may answer. A value that is no page size counts as the default; the field refuses it."""
    arguments = {argument.name.value: argument.value for argument in node.arguments or ()}
    if isinstance(ids := arguments.get("ids"), ListValueNode):
        return max(1, len(ids.values))
    if isinstance(ids, VariableNode):
        return _Size(ids.name.value, 1)
    sizes = [arguments[name] for name in ("first", "last") if name in arguments]
    if not sizes:
        return _PAGE_SIZE if _is_page(node) else 1
    if isinstance(sizes[0], VariableNode):
        return _Size(sizes[0].name.value, _PAGE_SIZE)
    return max(1, int(sizes[0].value)) if isinstance(sizes[0], IntValueNode) else _PAGE_SIZE


def _objects(value: Any, default: int) -> int:
    if isinstance(value, list):
        return max(1, len(value))
    return max(1, value) if isinstance(value, int) else default


def _is_page(node: FieldNode) -> bool:
    selections = node.selection_set.selections if node.selection_set else ()
    names = {inner.name.value for inner in selections if isinstance(inner, FieldNode)}
    return not names.isdisjoint(("edges", "nodes", "pageInfo"))
