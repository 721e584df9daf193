"""Limits of an operation, checked before it runs: on its text and its syntax tree; `cost` counts what it asks for.

The order matters. Line ends are counted first, which is cheapest. Brackets are counted before parsing, because the
parser recurses. Names are counted before validation, which compares fields of the same name pair by pair. Depth and
complexity need fragments without cycles, so they follow validation. The values of the variables are counted before they
are coerced.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)

from schema.framework.arguments import MOST_NAMED
from server.execution.document_source import count_line_ends

MAX_DIGITS = 20
"""Int has 10 digits at most, and an ID that is written as a number rarely more. Python refuses to read above 4,300."""
MAX_NAME = 200
"""Also of a number with its decimals. An operation's name is written to the log, to traces and to metrics."""
MAX_LINE_ENDS = 20_000
"""Ten for each token. Finding the lines of errors takes 3 ms for so many."""
MOST_VALUES = 6_000
"""In the variables. The largest input is 500 words of eight fields, some 4,500 values."""
MAX_JSON_PARTS = 20_000
"""Strings, brackets and commas of a request's JSON. Each value in the variables has three at most: one for its key, one
for itself, a comma. The rest is for `extensions`."""
_JSON_PARTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[{\[,]', re.DOTALL)
_TOKENS = re.compile(
    rf'''
      (?P<ignored> (?: [ \t\r\n,]++ | \#[^\r\n]*+ )++ )
    | (?P<opened> [{{(\[] )
    | (?P<closed> [}})\]] )
    | (?P<long_number> -?\d{{{MAX_DIGITS + 1}}} )
    | (?P<long_name> (?: -?\d++(?:\.\d++)?[eE][+-] | -?\d++\. )? \w{{{MAX_NAME + 1}}} )
    | -?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?
    | """ [^"]*+ (?: ""?+ [^"]++ | (?<=\\)""" [^"]*+ )*+ (?:""")?
    | " [^"\\\n]*+ (?: \\. [^"\\\n]*+ )*+ "?
    | \.\.\. | \w+ | [\s\S]
    ''',
    re.VERBOSE,
)
"""A token begins at each character, so none is looked at twice; a string that never ends, which the parser refuses, is
one too. Other threads wait for the end of a match, some 10 ms at most for a megabyte."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a deployment. With the defaults GraphiQL's introspection and all examples pass."""

    nesting: int = 60
    tokens: int = 2_000
    fields: int = 400
    same_name: int = 40
    aliases: int = 40
    directives: int = 40
    operations: int = 30
    fragments: int = 32
    depth: int = 16
    introspection_depth: int = 20
    complexity: int = 10_000
    named: int = MOST_NAMED
    values: int = MOST_VALUES


class LimitExceeded(GraphQLError):
    """The operation exceeds a limit; the message names it."""

    def __init__(self, counted: str, count: int | str, limit: int) -> None:
        super().__init__(
            f"Too many {counted}: {count}. At most {limit} are accepted; ask for less, or send several requests.",
            extensions={"code": "BAD_USER_INPUT"},
        )


def check_json(json: bytes | bytearray) -> None:
    """Before a request's JSON is parsed, on the event loop: making the objects of a megabyte takes 60 ms, this 2 ms."""
    is_long = len(json) > MAX_JSON_PARTS  # the others cannot have as many
    if is_long and next(islice(_JSON_PARTS.finditer(json), MAX_JSON_PARTS, None), None):
        count = f"more than {MAX_JSON_PARTS}"
        raise LimitExceeded("strings, brackets and commas in the JSON", count, MAX_JSON_PARTS)


def check_text(text: str, limits: Limits) -> None:
    """Before parsing: the parser recurses with every bracket, and validation reads every number.

    The parser counts tokens too, but takes 15 ms for the first 2,000; this takes 1 ms, and then stops.
    """
    if (line_ends := count_line_ends(text)) > MAX_LINE_ENDS:
        raise LimitExceeded("line ends", line_ends, MAX_LINE_ENDS)
    tokens = level = 0
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "ignored":
            continue
        tokens += 1
        level += (kind == "opened") - (kind == "closed")
        if tokens > limits.tokens:
            raise LimitExceeded("tokens", f"more than {limits.tokens}", limits.tokens)
        if level > limits.nesting:
            raise LimitExceeded("nested brackets", f"more than {limits.nesting} levels", limits.nesting)
        if kind == "long_name":
            raise LimitExceeded("characters in a name", f"more than {MAX_NAME}", MAX_NAME)
        if kind == "long_number":
            raise LimitExceeded("digits in a number", f"more than {MAX_DIGITS}", MAX_DIGITS)


def count_values(value: Any, most: int) -> int:
    """How many values a JSON value has, itself and all objects and lists in it included; stops beyond `most`.

    Counted before variables are coerced, which takes some 10 µs a value on the event loop.
    """
    count, pending = 0, [value]
    while pending and count <= most:
        inner = pending.pop()
        if isinstance(inner, dict):
            pending.extend(inner.values())
        elif isinstance(inner, list):
            pending.extend(inner)
        count += 1
    return count


def check_counts(document: DocumentNode, limits: Limits) -> None:
    """Before validation: counts that need no schema."""
    names: Counter[str] = Counter()
    aliases = directives = operations = fragments = 0
    for node in _selections(document):
        directives += len(node.directives or ())
        if isinstance(node, FieldNode):
            aliases += node.alias is not None
            names[(node.alias or node.name).value] += 1
    for definition in document.definitions:
        operations += isinstance(definition, OperationDefinitionNode)
        fragments += isinstance(definition, FragmentDefinitionNode)
        directives += len(getattr(definition, "directives", None) or ())
    counts = (
        ("aliases", aliases, limits.aliases),
        ("directives", directives, limits.directives),
        ("operations", operations, limits.operations),
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
