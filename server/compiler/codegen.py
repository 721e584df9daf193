"""Code generation: from a plan to Python functions, specialised for each object type and position in the document.

Generated code never awaits. `GuardedCode` writes functions with error handling at every field, `PureCode` functions
without any; an async field is left to the runtime, which calls a function generated for its values.
"""

from __future__ import annotations

import keyword
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from graphql import GraphQLSchema, is_abstract_type, is_leaf_type, is_list_type, is_non_null_type

from server.compiler import core
from server.compiler.plan import (
    ArgumentReader,
    Attribute,
    DirectResolver,
    FieldPlan,
    RecordFunction,
    SchemaResolver,
    SelectionPlan,
    TypeName,
    record_classes,
    type_names_by_class,
)

# ── writing code ──

_INDENT = "    "


class CodeWriter:
    """Functions in the order in which they were finished, and the namespace that they are executed in."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self._finished: list[str] = []
        self._lines: list[str] = []
        self._level = 0
        self._constants: dict[tuple[str, int], str] = {}
        self._counts: dict[str, int] = {}

    def line(self, line: str) -> None:
        self._lines.append(_INDENT * self._level + line)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """A line that ends with a colon, and the lines indented below it."""
        self.line(header)
        self._level += 1
        yield
        self._level -= 1

    @contextmanager
    def function(self, signature: str) -> Iterator[None]:
        """A function of the module; it may be begun while another one is being written."""
        outer_lines, outer_level = self._lines, self._level
        self._lines, self._level = [], 0
        with self.block(f"def {signature}:"):
            yield
        self._finished += [*self._lines, "", ""]
        self._lines, self._level = outer_lines, outer_level

    def new_name(self, prefix: str) -> str:
        """A name that is not taken: the prefix, which ends with an underscore, and a number."""
        number = self._counts[prefix] = self._counts.get(prefix, 0) + 1
        return f"{prefix}{number}"

    def constant(self, prefix: str, value: Any) -> str:
        """A name bound to an object; the same for the same object."""
        key = (prefix, id(value))
        if key not in self._constants:
            self._constants[key] = name = self.new_name(prefix)
            self.namespace[name] = value
        return self._constants[key]

    @property
    def source(self) -> str:
        return "\n".join(self._finished).rstrip() + "\n"

    def execute(self) -> dict[str, Any]:
        """The namespace, with the functions defined in it."""
        exec(compile(self.source, "<operation>", "exec"), self.namespace)  # noqa: S102 - our own source: names alone
        return self.namespace


# ── code context ──
# What guarded and pure code share: names of fields, expressions that read them, and statements for leaves.


class CodeContext:
    """The generated code of one plan while it is being written."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self.schema = schema
        self.writer = CodeWriter()
        self.field_names: dict[FieldPlan, str] = {}
        """The names by which the code refers to fields, to be bound before it runs."""
        self.async_fields: list[FieldPlan] = []
        """The fields that the code leaves to the runtime."""

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
        self.writer.namespace |= {"ORDINARY_CLASSES": core.ORDINARY_CLASSES, "is_ordinary": core.is_ordinary}
        return f"type({variable}) not in ORDINARY_CLASSES and not is_ordinary({variable})"

    def complete_leaf(self, type_: Any, variable: str, if_null: str) -> None:
        """Write statements that complete a leaf; `if_null` is the one for null where the type forbids it."""
        writer, leaf, required = self.writer, nullable(type_), is_non_null_type(type_)
        header = "" if required else f"if {variable} is not None:"
        if test := core.unchanged_test(leaf, variable):
            header = f"if not ({test}):" if required else f"if {variable} is not None and not ({test}):"
        elif enum := core.enum_names(leaf):
            python_enum, names = writer.constant("enum_", enum[0]), writer.constant("names_", enum[1])
            writer.line(f"if type({variable}) is {python_enum}: {variable} = {names}[{variable}]")
            header = "else:" if required else f"elif {variable} is not None:"
        with writer.block(header) if header else nullcontext():
            completer = writer.constant(f"complete_{leaf.name}_", core.leaf_completer(leaf))
            writer.line(f"{variable} = {completer}({variable})")
            if required:
                writer.line(f"if {variable} is None: {if_null}")


def nullable(type_: Any) -> Any:
    """The type without its exclamation mark."""
    return type_.of_type if is_non_null_type(type_) else type_


# ── pure code ──
# Pure code: functions that complete whole values without calling a resolver, and without error handling.
#
#     pure_<field>(execution, value, path)        the completed value
#     assign_<field>(execution, entries, values)  the values of an async field, each completed and stored
#
# They raise `Bailout`, or any other exception, at a value that they do not know. The caller then drops the async fields
# that they left, and graphql-core completes the value (see plan.py).

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
        writer.line(f"else: answer.{core.SLOT}{field.index} = value")

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
        struct = writer.constant("struct_", core.answer_struct(*selection.fields))
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


# ── guarded code ──
# Guarded code: functions that complete values with graphql-core's error handling at every field and list item.
#
#     fields_<Type>(execution, record, path)     the fields of an object
#     complete_<field>(execution, value, path)   the value of a field
#     items_<field>(execution, values, path)     the items of a list
#
# A value that turns out to be something else (another class, no list, an awaitable) goes to graphql-core at its
# position: `execution.core`. An exception goes to `execution.field_error` or `item_error`.


@dataclass(frozen=True, slots=True)
class _GuardedValue:
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
            self._complete(_GuardedValue(field, self._context.field_name(field), "path"), field.type)
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

    def _complete(self, value: _GuardedValue, type_: Any) -> None:
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

    def _complete_purely(self, value: _GuardedValue, type_: Any, by_core: str) -> None:
        function = self._pure.function(value.field, type_)
        self._pure.count_pending(value.field)
        with self._writer.block("try:"):
            self._writer.line(f"value = {function}(execution, value, {value.path})")
        with self._writer.block("except Exception:"):
            self._pure.drop_pending(value.field)
            self._writer.line(by_core)

    def _complete_list(self, value: _GuardedValue, type_: Any, by_core: str) -> None:
        items = self._items(value.field, type_)
        with self._writer.block("if type(value) is list or type(value) is tuple:"):
            self._writer.line(f"value = {items}(execution, value, {value.path})")
        self._otherwise(by_core)

    def _complete_abstract(self, value: _GuardedValue, type_: Any, by_core: str) -> None:
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

    def _complete_object(self, value: _GuardedValue, type_: Any, by_core: str) -> None:
        fields = self.fields(value.field.selections[type_.name])
        with self._writer.block(f"if {self._type_check(value, type_)}:"):
            self._writer.line(f"value = {fields}(execution, value, {value.path})")
        self._otherwise(by_core)

    def _type_check(self, value: _GuardedValue, type_: Any) -> str:
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
                    self._complete(_GuardedValue(field, field_name, "(path, index, None)"), item_type)
                with writer.block("except Exception as error:"):
                    writer.line(f"value = execution.{item_error}")
                writer.line("items.append(value)")
            writer.line("return items")
        return name


def _resolver_prefix(resolver: Any) -> str:
    name = getattr(resolver, "__name__", "")
    return f"{name if name.isidentifier() and name.isascii() else 'resolver'}_"


# ── codegen ──


def compile_plan(schema: GraphQLSchema, selections: list[SelectionPlan]) -> core.CompiledPlan:
    """Generate and execute the code of these selections of the root."""
    context = CodeContext(schema)
    pure = PureCode(context)
    guarded = GuardedCode(context, pure)
    roots = [(guarded.fields(selection), selection) for selection in selections]
    assignments: dict[FieldPlan, str] = {}
    for field in context.async_fields:  # grows while the code for the values of one may leave another
        if field.completes_purely:
            assignments[field] = pure.assignment(field)
        else:
            guarded.completion(field)
    namespace = context.writer.execute()
    for table, functions in guarded.function_tables.items():
        namespace[table] = {key: namespace[function] for key, function in functions.items()}
    for field, name in context.field_names.items():
        complete, assign = namespace.get(guarded.completions.get(field, "")), namespace.get(assignments.get(field, ""))
        namespace[name] = _compiled_field(schema, field, complete, assign)
    plan = core.CompiledPlan([(namespace[name], selection) for name, selection in roots], context.writer.source)
    # The functions and their namespace refer to each other: a dropped plan would wait for the garbage collector.
    weakref.finalize(plan, namespace.clear).atexit = False
    return plan


def _compiled_field(schema: Any, field: FieldPlan, complete: Any, assign: Any) -> core.CompiledField:
    if not isinstance(field.source, DirectResolver):
        return core.CompiledField(field, None, is_batched=False, arguments=None, complete=complete, assign=assign)
    resolution, arguments = field.source.resolution, None
    if field.definition.args:
        arguments = ArgumentReader(field, field.source, schema._strawberry_schema.schema_converter)  # noqa: SLF001
    return core.CompiledField(field, resolution, resolution.is_batched, arguments, complete, assign)
