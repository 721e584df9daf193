"""Code generation: from a plan to Python functions, specialised for each object type and position in the document.

Generated code never awaits. `guarded_code` writes functions with error handling at every field, `pure_code` functions
without any; an async field is left to the runtime, which calls a function generated for its values.
"""

from __future__ import annotations

import weakref
from typing import Any

from graphql import GraphQLSchema

from server.compiler.arguments import ArgumentReader
from server.compiler.code_context import CodeContext
from server.compiler.compiled import CompiledField, CompiledPlan
from server.compiler.fields import DirectResolver
from server.compiler.guarded_code import GuardedCode
from server.compiler.plan import FieldPlan, SelectionPlan
from server.compiler.pure_code import PureCode


def compile_plan(schema: GraphQLSchema, selections: list[SelectionPlan]) -> CompiledPlan:
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
    plan = CompiledPlan([(namespace[name], selection) for name, selection in roots], context.writer.source)
    # The functions and their namespace refer to each other: a dropped plan would wait for the garbage collector.
    weakref.finalize(plan, namespace.clear).atexit = False
    return plan


def _compiled_field(schema: Any, field: FieldPlan, complete: Any, assign: Any) -> CompiledField:
    if not isinstance(field.source, DirectResolver):
        return CompiledField(field, None, is_batched=False, arguments=None, complete=complete, assign=assign)
    resolution, arguments = field.source.resolution, None
    if field.definition.args:
        arguments = ArgumentReader(field, field.source, schema._strawberry_schema.schema_converter)  # noqa: SLF001
    return CompiledField(field, resolution, resolution.is_batched, arguments, complete, assign)
