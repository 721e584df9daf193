"""Guarded code: functions that complete values with graphql-core's error handling at every field and list item.

    fields_<Type>(execution, record, path)     the fields of an object
    complete_<field>(execution, value, path)   the value of a field
    items_<field>(execution, values, path)     the items of a list

A value that turns out to be something else (another class, no list, an awaitable) goes to graphql-core at its position:
`execution.core`. An exception goes to `execution.field_error` or `item_error`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphql import is_abstract_type, is_leaf_type, is_list_type, is_non_null_type

from server.compiler.code_context import CodeContext, nullable
from server.compiler.fields import DirectResolver, SchemaResolver, TypeName, record_classes, type_names_by_class
from server.compiler.plan import FieldPlan, SelectionPlan
from server.compiler.pure_code import PureCode


@dataclass(frozen=True, slots=True)
class _Value:
    """A value in the generated code: the variable `value`, of this field, at this path."""

    field: FieldPlan
    field_name: str
    path: str

    def core(self, method: str, *arguments: str) -> str:
        """A call of graphql-core."""
        return f"execution.core.{method}({', '.join([self.field_name, *arguments, 'value', self.path])})"


class GuardedCode:
    """Writes guarded code, and calls pure code where a value can be completed by it."""

    def __init__(self, context: CodeContext, pure: PureCode) -> None:
        self._context = context
        self._writer = context.writer
        self._pure = pure
        self._selections: dict[SelectionPlan, str] = {}
        self.completions: dict[FieldPlan, str] = {}
        """The functions that complete the values of fields."""
        self.function_tables: dict[str, dict[Any, str]] = {}
        """Dictionaries of functions that the code refers to, to be bound before it runs."""

    def fields(self, selection: SelectionPlan) -> str:
        """The function for the fields of an object."""
        if selection in self._selections:
            return self._selections[selection]
        name = self._selections[selection] = self._writer.new_name(f"fields_{selection.type.name}_")
        with self._writer.function(f"{name}(execution, record, path)"):
            self._writer.line("answer = {}")
            for field in selection.fields.values():
                self._field(field)
            self._writer.line("return answer")
        return name

    def completion(self, field: FieldPlan) -> str:
        """The function that completes the value of a field."""
        if field in self.completions:
            return self.completions[field]
        name = self.completions[field] = self._writer.new_name(f"complete_{field.name}_")
        with self._writer.function(f"{name}(execution, value, path)"):
            self._complete(_Value(field, self._context.field_name(field), "path"), field.type)
            self._writer.line("return value")
        return name

    def _field(self, field: FieldPlan) -> None:
        writer = self._writer
        if isinstance(field.source, TypeName):
            writer.line(f"answer[{field.key!r}] = {field.parent.name!r}")
            return
        if field.is_async:
            writer.line(f"answer[{field.key!r}] = None")
            self._context.resolve_later(field, "record", "answer", "path")
            return
        name = self._context.field_name(field)
        with writer.block("try:"):
            writer.line(f"value = {self._read(field, name)}")
            if is_leaf_type(nullable(field.type)):
                self._context.complete_leaf(field.type, "value", f"raise execution.null_error({name})")
            else:
                path = f"(path, {field.key!r}, {field.parent.name!r})"
                writer.line(f"value = {self.completion(field)}(execution, value, {path})")
        with writer.block("except Exception as error:"):
            writer.line(f"value = execution.field_error({name}, answer, path, error)")
        writer.line(f"answer[{field.key!r}] = value")

    def _read(self, field: FieldPlan, name: str) -> str:
        """An expression for a field's value."""
        if isinstance(field.source, SchemaResolver):
            return f"execution.core.resolve({name}, record, path)"
        if not isinstance(field.source, DirectResolver):
            return self._context.read(field, "record")
        resolution = field.source.resolution
        resolver = self._writer.constant(_resolver_prefix(resolution.resolver), resolution.resolver)
        record = ", record" if resolution.of_record else ""
        arguments = f", **execution.arguments({name})" if field.definition.args else ""
        return f"{resolver}(execution.ctx{record}{arguments})"

    def _complete(self, value: _Value, type_: Any) -> None:
        """Write statements that complete a value."""
        inner, null_error = nullable(type_), f"raise execution.null_error({value.field_name})"
        if is_leaf_type(inner):
            self._context.complete_leaf(type_, "value", null_error)
            return
        by_core = f"value = {value.core('complete', self._writer.constant('type_', inner))}"
        with self._writer.block("if value is not None:"):
            if value.field.completes_purely:
                self._complete_purely(value, inner, by_core)
            elif is_list_type(inner):
                self._complete_list(value, inner, by_core)
            elif is_abstract_type(inner):
                self._complete_abstract(value, inner, by_core)
            else:
                self._complete_object(value, inner, by_core)
        if is_non_null_type(type_):
            self._writer.line(f"if value is None: {null_error}")

    def _complete_purely(self, value: _Value, type_: Any, by_core: str) -> None:
        function = self._pure.function(value.field, type_)
        self._pure.count_pending(value.field)
        with self._writer.block("try:"):
            self._writer.line(f"value = {function}(execution, value, {value.path})")
        with self._writer.block("except Exception:"):
            self._pure.drop_pending(value.field)
            self._writer.line(by_core)

    def _complete_list(self, value: _Value, type_: Any, by_core: str) -> None:
        items = self._items(value.field, type_)
        with self._writer.block("if type(value) is list or type(value) is tuple:"):
            self._writer.line(f"value = {items}(execution, value, {value.path})")
        self._otherwise(by_core)

    def _complete_abstract(self, value: _Value, type_: Any, by_core: str) -> None:
        writer = self._writer
        functions = {name: self.fields(selection) for name, selection in value.field.selections.items()}
        by_class, by_name = writer.new_name("by_class_"), writer.new_name("by_name_")
        type_names = type_names_by_class(self._context.schema, type_)
        self.function_tables[by_class] = {class_: functions[name] for class_, name in type_names.items()}
        self.function_tables[by_name] = functions
        by_check = value.core("function_of_type", writer.constant("type_", type_), by_name)
        writer.line(f"fields = {by_class}.get(type(value)) or {by_check}")
        with writer.block("if fields is not None:"):
            writer.line(f"value = fields(execution, value, {value.path})")
        self._otherwise(by_core)

    def _complete_object(self, value: _Value, type_: Any, by_core: str) -> None:
        fields = self.fields(value.field.selections[type_.name])
        with self._writer.block(f"if {self._type_check(value, type_)}:"):
            self._writer.line(f"value = {fields}(execution, value, {value.path})")
        self._otherwise(by_core)

    def _type_check(self, value: _Value, type_: Any) -> str:
        """An expression that is true of a record of this object type."""
        classes = record_classes(type_)
        if classes is not None:
            return f"isinstance(value, {self._writer.constant('classes_', classes)})"
        if type_.is_type_of is None:
            return f"not ({self._context.is_not_ordinary('value')})"
        return value.core("is_of_type", self._writer.constant("type_", type_))

    def _otherwise(self, statement: str) -> None:
        with self._writer.block("else:"):
            self._writer.line(statement)

    def _items(self, field: FieldPlan, type_: Any) -> str:
        """The function for the items of a list."""
        writer, item_type = self._writer, type_.of_type
        name, field_name = writer.new_name(f"items_{field.name}_"), self._context.field_name(field)
        item_error = f"item_error({field_name}, {writer.constant('type_', item_type)}, items, index, path, error)"
        with writer.function(f"{name}(execution, values, path)"):
            writer.line("items = []")
            with writer.block("for index, value in enumerate(values):"):
                with writer.block("try:"):
                    self._complete(_Value(field, field_name, "(path, index, None)"), item_type)
                with writer.block("except Exception as error:"):
                    writer.line(f"value = execution.{item_error}")
                writer.line("items.append(value)")
            writer.line("return items")
        return name


def _resolver_prefix(resolver: Any) -> str:
    name = getattr(resolver, "__name__", "")
    return f"{name if name.isidentifier() and name.isascii() else 'resolver'}_"
