"""What guarded and pure code share: names of fields, expressions that read them, and statements for leaves."""

from __future__ import annotations

import keyword
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from graphql import GraphQLSchema, is_non_null_type

from server.compiler.code_writer import CodeWriter
from server.compiler.fields import Attribute, RecordFunction
from server.compiler.leaves import ORDINARY_CLASSES, enum_names, is_ordinary, leaf_completer, unchanged_test
from server.compiler.plan import FieldPlan


class CodeContext:
    """The generated code of one plan while it is being written."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self.schema = schema
        self.writer = CodeWriter()
        self.field_names: dict[FieldPlan, str] = {}
        """The names by which the code refers to fields, to be bound before it runs."""
        self.async_fields: list[FieldPlan] = []
        """The fields that the code leaves to the runtime."""
        self._completers: dict[str, Callable[[Any], Any]] = {}
        self._enums: dict[str, tuple[type, dict[Any, str]] | None] = {}

    def field_name(self, field: FieldPlan) -> str:
        if field not in self.field_names:
            self.field_names[field] = self.writer.new_name(f"field_{field.name}_")
        return self.field_names[field]

    def resolve_later(self, field: FieldPlan, record: str, answer: str, path: str) -> None:
        """Write a statement that leaves an async field to the runtime."""
        if field not in self.async_fields:
            self.async_fields.append(field)
        self.writer.line(f"execution.pending.append(({self.field_name(field)}, {record}, {answer}, {path}))")

    def read(self, field: FieldPlan, record: str) -> str:
        """An expression for a value that a record holds."""
        source = field.source
        if isinstance(source, RecordFunction):
            return f"{self.writer.constant('function_', source.function)}({record})"
        assert isinstance(source, Attribute)  # noqa: S101 - callers see to the other sources
        if source.name.isidentifier() and not keyword.iskeyword(source.name):
            return f"{record}.{source.name}"
        return f"getattr({record}, {source.name!r})"

    def is_not_ordinary(self, variable: str) -> str:
        """An expression that is true of an exception or an awaitable."""
        self.writer.namespace |= {"ORDINARY_CLASSES": ORDINARY_CLASSES, "is_ordinary": is_ordinary}
        return f"type({variable}) not in ORDINARY_CLASSES and not is_ordinary({variable})"

    def complete_leaf(self, type_: Any, variable: str, if_null: str) -> None:
        """Write statements that complete a leaf; `if_null` is the one for null where the type forbids it."""
        writer, leaf, required = self.writer, nullable(type_), is_non_null_type(type_)
        header = "" if required else f"if {variable} is not None:"
        if test := unchanged_test(leaf, variable):
            header = f"if not ({test}):" if required else f"if {variable} is not None and not ({test}):"
        elif enum := self._enum(leaf):
            python_enum, names = writer.constant("enum_", enum[0]), writer.constant("names_", enum[1])
            writer.line(f"if type({variable}) is {python_enum}: {variable} = {names}[{variable}]")
            header = "else:" if required else f"elif {variable} is not None:"
        with writer.block(header) if header else nullcontext():
            writer.line(f"{variable} = {self._completer(leaf)}({variable})")
            if required:
                writer.line(f"if {variable} is None: {if_null}")

    def _completer(self, leaf: Any) -> str:
        if leaf.name not in self._completers:
            self._completers[leaf.name] = leaf_completer(leaf)
        return self.writer.constant(f"complete_{leaf.name}_", self._completers[leaf.name])

    def _enum(self, leaf: Any) -> tuple[type, dict[Any, str]] | None:
        if leaf.name not in self._enums:
            self._enums[leaf.name] = enum_names(leaf)
        return self._enums[leaf.name]


def nullable(type_: Any) -> Any:
    """The type without its exclamation mark."""
    return type_.of_type if is_non_null_type(type_) else type_
