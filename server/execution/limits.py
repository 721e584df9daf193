"""What an operation may cost before it runs: bounded on its text, on its tree, and on the objects it asks for.

Order matters. Brackets are counted before the parser recurses; names are counted before validation, whose comparison
of equal response names is quadratic; depth and complexity need fragments without cycles, so they follow validation.

Complexity: every field counts 1; what is inside a field with page arguments counts once per object asked for
(`first` or `last`, 20 unless given), inside a list of ids once per id. The sum is a function of the variables, so it is
made once per document and computed per request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

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
Cost: TypeAlias = Callable[[Variables], int]

_STRINGS_AND_COMMENTS = re.compile(r'"""(?:[^"\\]|\\"""|\\|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|#[^\n\r]*')
_BRACKETS = re.compile(r"[{}()\[\]]")
_TOKENS = re.compile(r"\.\.\.|\w+|[^\s\w,]")
_PAGE_SIZE = 20


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one deployment. The defaults let GraphiQL's introspection and any screen of the examples pass."""

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


class TooMuch(GraphQLError):
    """The operation goes beyond a limit; the message says which and how far."""

    def __init__(self, what: str, found: int | str, most: int) -> None:
        super().__init__(
            f"This operation has {what}: {found}. At most {most} are accepted; ask for less, or in several requests.",
            extensions={"code": "BAD_USER_INPUT"},
        )


def check_nesting(text: str, limits: Limits) -> None:
    """Before parsing: the parser recurses with every bracket, and takes its time with every token."""
    bare = _STRINGS_AND_COMMENTS.sub("", text)
    # The parser counts tokens too, but the first 4,000 take it 30 ms; here they take 1.
    if (tokens := len(_TOKENS.findall(bare))) > limits.tokens:
        what = "tokens"
        raise TooMuch(what, tokens, limits.tokens)
    level = 0
    for bracket in _BRACKETS.finditer(bare):
        level += 1 if bracket[0] in "{([" else -1
        if level > limits.nesting:
            message = "brackets within brackets"
            raise TooMuch(message, f"more than {limits.nesting} levels", limits.nesting)


def check_names(document: DocumentNode, limits: Limits) -> None:
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
    counted = (
        ("aliases", aliases, limits.aliases),
        ("directives", directives, limits.directives),
        ("fragments", fragments, limits.fragments),
        ("fields", names.total(), limits.fields),
        ("fields of the same name", max(names.values(), default=0), limits.same_name),
    )
    for what, found, most in counted:
        if found > most:
            raise TooMuch(what, found, most)


def _selections(document: DocumentNode) -> Iterator[FieldNode | InlineFragmentNode | FragmentSpreadNode]:
    waiting = [definition.selection_set for definition in document.definitions if hasattr(definition, "selection_set")]
    while waiting:
        selection_set = waiting.pop()
        if selection_set is None:
            continue
        for node in selection_set.selections:
            yield node
            if isinstance(node, FieldNode | InlineFragmentNode):
                waiting.append(node.selection_set)


def check_depth(
    operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode], limits: Limits
) -> None:
    """After validation: how deep fields lie within fields. Introspection has a bound of its own."""
    known: dict[str, int] = {}

    def depth(selection_set: SelectionSetNode | None) -> int:
        return max((below(node) for node in selection_set.selections), default=0) if selection_set else 0

    def below(node: Any) -> int:
        if isinstance(node, FieldNode):
            return 1 + depth(node.selection_set)
        if isinstance(node, InlineFragmentNode):
            return depth(node.selection_set)
        name = node.name.value
        if name not in known:
            known[name] = depth(fragments[name].selection_set)
        return known[name]

    for node in operation.selection_set.selections:
        introspects = isinstance(node, FieldNode) and node.name.value.startswith("__")
        most = limits.introspection_depth if introspects else limits.depth
        if (found := below(node)) > most:
            message = "levels of fields"
            raise TooMuch(message, found, most)


def cost_of(operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]) -> Cost:
    """The operation's complexity as a function of its variables, written out: `2 + size(v.get("first")) * 9`.

    A fragment is reckoned once however often it is spread: a chain of them could stand for more fields than there is
    time to count.
    """
    known: dict[str, _Sum] = {}
    lines = ["def cost(v):"]

    def total(selection_set: SelectionSetNode | None) -> _Sum:
        return _Sum.of([each(node) for node in selection_set.selections] if selection_set else [])

    def each(node: Any) -> _Sum:
        if isinstance(node, FieldNode):
            return _times(node).times(total(node.selection_set)).plus(1)
        if isinstance(node, InlineFragmentNode):
            return total(node.selection_set)
        name = node.name.value
        if name not in known:
            found = total(fragments[name].selection_set)
            lines.append(f"    f{len(known)} = {found}")
            known[name] = _Sum(0, (f"f{len(known)}",)) if found.varying else found
        return known[name]

    lines.append(f"    return {total(operation.selection_set)}")
    names: dict[str, Any] = {"size": _size, "count": _count}
    exec("\n".join(lines), names)  # noqa: S102 - written above, of numbers and of variables' names in quotes
    cost: Cost = names["cost"]
    return cost


@dataclass(frozen=True, slots=True)
class _Sum:
    """A number, and expressions of Python to be added to it."""

    constant: int
    varying: tuple[str, ...] = ()

    @classmethod
    def of(cls, parts: list[_Sum]) -> _Sum:
        return cls(sum(part.constant for part in parts), tuple(one for part in parts for one in part.varying))

    def plus(self, number: int) -> _Sum:
        return _Sum(self.constant + number, self.varying)

    def times(self, other: _Sum) -> _Sum:
        if not self.varying and not other.varying:
            return _Sum(self.constant * other.constant)
        return _Sum(0, (f"({self}) * ({other})",))

    def __str__(self) -> str:
        return " + ".join([str(self.constant), *self.varying])


def _times(node: FieldNode) -> _Sum:
    """How many objects a field may answer with. Values that are no page size are refused by the field itself."""
    arguments = {argument.name.value: argument.value for argument in node.arguments or ()}
    if isinstance(ids := arguments.get("ids"), ListValueNode):
        return _Sum(max(1, len(ids.values)))
    if isinstance(ids, VariableNode):
        return _Sum(0, (f"count(v.get({ids.name.value!r}))",))
    sizes = [arguments[name] for name in ("first", "last") if name in arguments]
    if not sizes:
        return _Sum(_PAGE_SIZE if _is_page(node) else 1)
    if isinstance(sizes[0], IntValueNode):
        return _Sum(max(1, int(sizes[0].value)))
    if isinstance(sizes[0], VariableNode):
        return _Sum(0, (f"size(v.get({sizes[0].name.value!r}))",))
    return _Sum(_PAGE_SIZE)


def _count(value: Any) -> int:
    return max(1, len(value)) if isinstance(value, list) else 1


def _size(value: Any) -> int:
    return max(1, value) if isinstance(value, int) else _PAGE_SIZE


def _is_page(node: FieldNode) -> bool:
    names = (
        {inner.name.value for inner in node.selection_set.selections if isinstance(inner, FieldNode)}
        if node.selection_set
        else ()
    )
    return bool({"edges", "nodes", "pageInfo"} & set(names))
