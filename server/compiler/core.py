"""graphql-core, for what compiled code leaves to it: unknown values, the schema's own resolvers, and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphql import GraphQLError, get_argument_values
from graphql.execution import Executor
from graphql.pyutils import Path, is_awaitable

from server.compiler.leaves import UnexpectedAwaitable
from server.compiler.paths import ResponsePath, core_path

if TYPE_CHECKING:
    from server.compiler.compiled import CompiledField
    from server.compiler.plan import FieldPlan


@dataclass(eq=False, slots=True)
class Core:
    """The graphql-core executor of one execution, built when it is first needed."""

    build_executor: Callable[[], Executor[Any]]
    errors: list[GraphQLError] | None = None
    """The errors that the executor has collected; None until it is built."""
    _executor: Executor[Any] | None = None

    @property
    def executor(self) -> Executor[Any]:
        if self._executor is None:
            self._executor = self.build_executor()
            self.errors = self._executor.collected_errors.errors
        return self._executor

    def resolve(self, field: CompiledField, record: Any, path: ResponsePath) -> Any:
        """The answer of the schema's own resolver."""
        plan, executor = field.plan, self.executor
        definition = plan.definition
        info = self._info(plan, (path, plan.key, plan.parent.name))
        arguments = {}
        if definition.args:
            arguments = get_argument_values(definition, plan.nodes[0], executor.variable_values)
        value = (definition.resolve or executor.field_resolver)(record, info, **arguments)
        if is_awaitable(value):
            raise UnexpectedAwaitable(value)
        return value

    def complete(self, field: CompiledField, type_: Any, value: Any, path: ResponsePath) -> Any:
        """A resolver's answer, completed."""
        if isinstance(value, Exception):
            raise value
        if is_awaitable(value):
            raise UnexpectedAwaitable(value)
        return self.complete_value(field, type_, value, path)

    def complete_value(self, field: CompiledField, type_: Any, value: Any, path: ResponsePath) -> Any:
        """A value, completed; even if it could be awaited."""
        plan = field.plan
        completed = self.executor.complete_value(
            type_, plan.details, self._info(plan, path), core_path(path), value, None
        )
        if is_awaitable(completed):
            raise UnexpectedAwaitable(completed, is_completed=True)
        return completed

    def is_of_type(self, field: CompiledField, type_: Any, value: Any, path: ResponsePath) -> bool:
        """Whether the object type's own check accepts the value; if not, graphql-core words the error."""
        if isinstance(value, Exception) or is_awaitable(value):
            return False
        return _truth(type_.is_type_of(value, self._info(field.plan, path)))

    def function_of_type(
        self, field: CompiledField, type_: Any, functions: Mapping[str, Any], value: Any, path: ResponsePath
    ) -> Any:
        """The function, of those by type name, for the type of this value; None leaves the value to graphql-core."""
        if isinstance(value, Exception) or is_awaitable(value):
            return None
        info = self._info(field.plan, path)
        name: Any = (type_.resolve_type or self.executor.type_resolver)(value, info, type_)
        if is_awaitable(name):
            completed = _complete_object(self.executor, field.plan, type_, value, core_path(path), name)
            raise UnexpectedAwaitable(completed, is_completed=True)
        function = functions.get(name) if isinstance(name, str) else None
        if function is not None:
            object_type: Any = self.executor.schema.get_type(name)
            if object_type.is_type_of is not None and not _truth(object_type.is_type_of(value, info)):
                return None
        return function

    def handle_error(self, field: CompiledField, type_: Any, path: ResponsePath, error: Exception) -> None:
        """Collect the error of a nullable position, or raise it, located."""
        self.executor.handle_field_error(error, type_, field.plan.details, core_path(path))

    def _info(self, plan: FieldPlan, path: ResponsePath) -> Any:
        return self.executor.build_resolve_info(plan.definition, plan.nodes, plan.parent, core_path(path))


async def _complete_object(
    executor: Executor[Any], plan: FieldPlan, type_: Any, value: Any, path: Path, type_name: Any
) -> Any:
    """A value of an interface or union whose type has to be awaited."""
    info = executor.build_resolve_info(plan.definition, plan.nodes, plan.parent, path)
    object_type = executor.ensure_valid_runtime_type(await type_name, type_, plan.details, info, value)
    completed: Any = executor.complete_object_value(object_type, plan.details, info, path, value, None)
    return await completed if is_awaitable(completed) else completed


def _truth(answer: Any) -> bool:
    """A type check's answer. One that must be awaited counts as no, so graphql-core asks again."""
    if is_awaitable(answer):
        if asyncio.iscoroutine(answer):
            answer.close()
        return False
    return bool(answer)
