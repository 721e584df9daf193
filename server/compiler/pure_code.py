"""Pure code: functions that complete whole values without calling a resolver, and without error handling.

    pure_<field>(execution, value, path)        the completed value
    assign_<field>(execution, entries, values)  the values of an async field, each completed and stored

They raise `Bailout`, or any other exception, at a value that they do not know. The caller then drops the async fields
that they left, and graphql-core completes the value (see plan.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from graphql import is_abstract_type, is_leaf_type, is_list_type, is_non_null_type

from server.compiler.code_context import CodeContext, nullable
from server.compiler.fields import TypeName, record_classes, type_names_by_class
from server.compiler.plan import FieldPlan, SelectionPlan
from server.compiler.structs import SLOT, answer_struct

_MAX_NESTING = 6
"""Blocks within blocks in one function; Python itself allows 20."""


class Bailout(Exception):
    """Pure code met a value that it does not know."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A value in the generated code: its variable, an expression for its path, and the nesting still allowed."""

    variable: str
    path: str
    nesting: int

    def nested(self) -> _Value:
        return replace(self, nesting=self.nesting - 1)


class PureCode:
    """Writes pure code."""

    def __init__(self, context: CodeContext) -> None:
        self._context = context
        self._writer = context.writer
        self._functions: dict[tuple[FieldPlan, str], str] = {}
        self._writer.namespace["Bailout"] = Bailout

    def function(self, field: FieldPlan, type_: Any) -> str:
        """The function that completes values of this type, the field's own or one inside of it."""
        key = (field, str(type_))
        if key not in self._functions:
            name = self._functions[key] = self._writer.new_name(f"pure_{field.name}_")
            with self._writer.function(f"{name}(execution, value, path)"):
                self._complete_present(field, type_, _Value("value", "path", _MAX_NESTING))
                self._writer.line("return value")
        return self._functions[key]

    def assignment(self, field: FieldPlan) -> str:
        """The function that takes the values of an async field."""
        writer = self._writer
        name = writer.new_name(f"assign_{field.name}_")
        with writer.function(f"{name}(execution, entries, values)"):
            self.count_pending(field)
            with writer.block("for (_, _, answer, path), result in zip(entries, values):"):
                with writer.block("try:"):
                    self._assign_value(field)
                with writer.block("except Exception:"):
                    self.drop_pending(field)
                    writer.line(f"execution.assign({self._context.field_name(field)}, answer, path, result)")
                self.count_pending(field)
        return name

    def count_pending(self, field: FieldPlan) -> None:
        if field.contains_async:
            self._writer.line("pending_count = len(execution.pending)")

    def drop_pending(self, field: FieldPlan) -> None:
        """Write the statement that drops the async fields left since `count_pending`."""
        if field.contains_async:
            self._writer.line("del execution.pending[pending_count:]")

    def _assign_value(self, field: FieldPlan) -> None:
        writer = self._writer
        writer.line("value = result")
        path = self._path(field, f"(path, {field.key!r}, {field.parent.name!r})")
        self._complete(field, field.type, _Value("value", path, _MAX_NESTING - 1))
        writer.line(f"if type(answer) is dict: answer[{field.key!r}] = value")
        writer.line(f"else: answer.{SLOT}{field.index} = value")

    def _complete(self, field: FieldPlan, type_: Any, value: _Value) -> None:
        """Write statements that complete a value, which may be null where the type allows it."""
        inner, variable = nullable(type_), value.variable
        if is_leaf_type(inner):
            self._context.complete_leaf(type_, variable, "raise Bailout")
        elif value.nesting <= 0:
            call = f"{variable} = {self.function(field, inner)}(execution, {variable}, {value.path})"
            self._writer.line(call if is_non_null_type(type_) else f"if {variable} is not None: {call}")
        elif is_non_null_type(type_):
            self._complete_present(field, inner, value)
        else:
            with self._writer.block(f"if {variable} is not None:"):
                self._complete_present(field, inner, value.nested())

    def _complete_present(self, field: FieldPlan, type_: Any, value: _Value) -> None:
        """Write statements that complete a value of an object type or a list, and bail out at null."""
        if is_list_type(type_):
            self._complete_list(field, type_, value)
        elif is_abstract_type(type_):
            self._complete_abstract(field, type_, value)
        else:
            self._check_class(type_, value.variable)
            self._complete_object(field.selections[type_.name], value)

    def _complete_list(self, field: FieldPlan, type_: Any, value: _Value) -> None:
        writer, variable = self._writer, value.variable
        writer.line(f"if type({variable}) is not list and type({variable}) is not tuple: raise Bailout")
        items, item, index = writer.new_name("items_"), writer.new_name("item_"), writer.new_name("index_")
        writer.line(f"{items} = []")
        header = f"for {item} in {variable}:"
        with writer.block(f"for {index}, {item} in enumerate({variable}):" if field.contains_async else header):
            path = self._path(field, f"({value.path}, {index}, None)")
            self._complete(field, type_.of_type, _Value(item, path, value.nesting - 1))
            writer.line(f"{items}.append({item})")
        writer.line(f"{variable} = {items}")

    def _complete_abstract(self, field: FieldPlan, type_: Any, value: _Value) -> None:
        writer = self._writer
        type_name = writer.new_name("type_name_")
        type_names = writer.constant("type_names_", type_names_by_class(self._context.schema, type_))
        writer.line(f"{type_name} = {type_names}.get(type({value.variable}))")
        for index, selection in enumerate(field.selections.values()):
            with writer.block(f"{'elif' if index else 'if'} {type_name} == {selection.type.name!r}:"):
                self._complete_object(selection, value.nested())
        writer.line("else: raise Bailout")

    def _check_class(self, type_: Any, variable: str) -> None:
        """Write the statement that bails out at a record of another type."""
        classes = record_classes(type_)
        if classes is None:
            unusual = self._context.is_not_ordinary(variable)
            self._writer.line(f"if {variable} is None or {unusual}: raise Bailout")
            return
        usual, all_ = self._writer.constant("class_", classes[-1]), self._writer.constant("classes_", classes)
        self._writer.line(f"if type({variable}) is not {usual} and not isinstance({variable}, {all_}): raise Bailout")

    def _complete_object(self, selection: SelectionPlan, value: _Value) -> None:
        """Write statements that make the answer's object of a record."""
        writer, record = self._writer, value.variable
        values = [self._field_value(field, value) for field in selection.fields.values()]
        struct = writer.constant("struct_", answer_struct(*selection.fields))
        async_fields = [field for field in selection.fields.values() if field.is_async]
        answer = writer.new_name("answer_") if async_fields else record
        writer.line(f"{answer} = {struct}({', '.join(values)})")
        for field in async_fields:
            self._context.resolve_later(field, record, answer, value.path)
        if async_fields:
            writer.line(f"{record} = {answer}")

    def _field_value(self, field: FieldPlan, record: _Value) -> str:
        """Write statements that complete a field, and return the expression for its value."""
        if isinstance(field.source, TypeName):
            return repr(field.parent.name)
        if field.is_async:
            return "None"
        variable = self._writer.new_name(f"{field.name}_")
        self._writer.line(f"{variable} = {self._context.read(field, record.variable)}")
        path = self._path(field, f"({record.path}, {field.key!r}, {field.parent.name!r})")
        self._complete(field, field.type, _Value(variable, path, record.nesting))
        return variable

    def _path(self, field: FieldPlan, path: str) -> str:
        """A variable for a path, which is made only where an async field needs it."""
        if not field.contains_async:
            return "None"
        variable = self._writer.new_name("path_")
        self._writer.line(f"{variable} = {path}")
        return variable
