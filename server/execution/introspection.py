"""Remembers the answers of operations that ask for nothing but the schema, which is the same as long as a process runs.

Executing one takes milliseconds, and graphql-core executes them all. What is remembered belongs to the operation, as
its compiled code does: it is kept and dropped with the document, counts in the cache's bytes, and was asked for by
somebody who may introspect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphql import FieldNode, OperationDefinitionNode, OperationType
from msgspec import Raw

from server.compiler import encode_json

_FIELDS = frozenset({"__schema", "__type", "__typename"})


class Introspection:
    """The data of the answer of one operation, once it is known, as JSON."""

    __slots__ = ("data", "on_remembered")

    def __init__(self) -> None:
        self.data: Raw | None = None
        self.on_remembered: Callable[[int], None] = lambda _: None
        """Called with the bytes that the data occupies."""

    @classmethod
    def of(cls, operation: OperationDefinitionNode) -> Introspection | None:
        """If no variable, and no field but the schema's own, decides what this operation's answer is."""
        selections = operation.selection_set.selections
        is_pure = all(isinstance(node, FieldNode) and node.name.value in _FIELDS for node in selections)
        is_query = operation.operation is OperationType.QUERY
        return cls() if is_query and is_pure and not operation.variable_definitions else None

    def remember(self, data: dict[str, Any]) -> None:
        """Keep the data of an answer without errors."""
        if self.data is None:
            self.data = Raw(encode_json(data))
            self.on_remembered(len(self.data))
