"""The runtime of compiled plans: executes generated code and awaits what it leaves.

Laws
- Generated code never awaits. For an async field it leaves null in the answer and an entry in `pending`. The runtime
  awaits all entries at once, stores their values in the answer, and goes on with the entries that this has left.
- One call of a batched resolver answers all entries of its field that are pending at that time.
- A single call needs no task. Several calls are tasks; a coroutine begins and ends in the same one.
- Errors are graphql-core's: its executor locates and collects them. While generated code runs, null propagates by
  raising. After an await, the nearest nullable position is set to null, and what is awaited below it is cancelled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphql import ExecutionResult, GraphQLError, is_non_null_type, located_error

from server.compiler.compiled import CompiledField, CompiledPlan
from server.compiler.core import Core
from server.compiler.leaves import UnexpectedAwaitable
from server.compiler.null_propagation import nullable_ancestor, set_null
from server.compiler.paths import ResponsePath, core_path
from server.compiler.pending import Call, Pending, PendingField, PendingValue, Slot, drop_within, path_of, take_calls
from server.compiler.plan import SelectionPlan
from server.compiler.tasks import TaskTree


@dataclass(eq=False, slots=True)
class Execution:
    """One execution of a compiled plan."""

    plan: CompiledPlan
    variables: dict[str, Any]
    """Coerced."""
    ctx: Any
    core: Core
    pending: list[Pending] = dataclasses.field(default_factory=list)
    _arguments: dict[CompiledField, dict[str, Any]] = dataclasses.field(default_factory=dict)
    _root: SelectionPlan | None = None
    _answer: Any = None
    _tasks: TaskTree | None = None

    async def run(self, root_value: Any) -> ExecutionResult:
        """The result of the operation."""
        answer: dict[str, Any] = {}
        for fields, selection in self.plan.roots:
            self._root = selection
            try:
                self._answer = fields(self, root_value, None)
                if self.pending:
                    await self._await(take_calls(self.pending))
            except GraphQLError as error:
                self.core.executor.collected_errors.add(error, None)
                drop_within(self.pending, None)
                self._answer = None
            if self._answer is None:
                return ExecutionResult(None, self.core.errors)
            answer = {**answer, **self._answer} if answer else self._answer
        return ExecutionResult(answer, self.core.errors or None)

    # ── called by generated code ──

    def arguments(self, field: CompiledField) -> dict[str, Any]:
        """The keyword arguments of a resolver, read once for all its records if no resolver can change them."""
        arguments = self._arguments.get(field)
        if arguments is None and field.arguments is not None:
            arguments = field.arguments.read(self.variables, self.core, self.ctx)
            if field.arguments.is_reusable:
                self._arguments[field] = arguments
        return arguments or {}

    def null_error(self, field: CompiledField) -> TypeError:
        return TypeError(f"Cannot return null for non-nullable field {field.plan.parent}.{field.plan.name}.")

    def field_error(self, field: CompiledField, answer: Any, path: ResponsePath, error: Exception) -> None:
        """Collect the error of a field that may be null, or raise it."""
        plan = field.plan
        self._handle_error(Slot(field, plan.type, answer, plan.key, (path, plan.key, plan.parent.name)), error)

    def item_error(
        self, field: CompiledField, type_: Any, items: list[Any], index: int, path: ResponsePath, error: Exception
    ) -> None:
        """Collect the error of a list item that may be null, or raise it."""
        self._handle_error(Slot(field, type_, items, index, (path, index, None)), error)

    def assign(self, field: CompiledField, answer: Any, path: ResponsePath, value: Any) -> None:
        """Complete the value of an async field and store it in the answer."""
        plan = field.plan
        self._store(Slot(field, plan.type, answer, plan.key, (path, plan.key, plan.parent.name)), value)

    def _handle_error(self, slot: Slot, error: Exception) -> None:
        if isinstance(error, UnexpectedAwaitable):
            self.pending.append(PendingValue(slot, error))
            return
        try:
            self.core.handle_error(slot.field, slot.type, slot.path, error)
        finally:
            drop_within(self.pending, slot.path)

    # ── awaiting ──

    async def _await(self, calls: list[Call]) -> None:
        """Make these calls, then those for what their values leave pending, and so on."""
        while calls:
            if len(calls) > 1:
                await self._await_at_once(calls)
                return
            call = calls[0]
            if isinstance(call, PendingValue):
                await self._await_value(call)
            else:
                await self._await_fields(call)
            calls = take_calls(self.pending)

    async def _await_at_once(self, calls: list[Call]) -> None:
        if self._tasks is None:
            self._tasks = TaskTree()
        try:
            await self._tasks.run([(path_of(call), self._await([call])) for call in calls])
        finally:
            for call in calls:
                if isinstance(call, PendingValue):
                    call.close()

    async def _await_fields(self, entries: list[PendingField]) -> None:
        """Call the resolver of these entries and store its values in the answer."""
        field, record = entries[0][0], entries[0][1]
        resolution = field.resolution
        assert resolution is not None  # noqa: S101 - async fields have one
        values: Sequence[Any]
        try:
            arguments = self.arguments(field) if field.arguments is not None else {}
            if field.is_batched:
                values = await resolution.resolver(self.ctx, [entry[1] for entry in entries], **arguments)
                if len(values) != len(entries):
                    name = resolution.resolver.__name__
                    raise TypeError(f"{name} gave {len(values)} answers for {len(entries)} records.")  # noqa: TRY301
            elif resolution.of_record:
                values = [await resolution.resolver(self.ctx, record, **arguments)]
            else:
                values = [await resolution.resolver(self.ctx, **arguments)]
        except Exception as error:  # noqa: BLE001 - it becomes the error of each entry
            values = [error] * len(entries)
        if field.assign is not None:
            field.assign(self, entries, values)
            return
        for (_, _, answer, path), value in zip(entries, values, strict=True):
            self.assign(field, answer, path, value)

    async def _await_value(self, pending: PendingValue) -> None:
        try:
            value = await pending.found.awaitable
        except Exception as error:  # noqa: BLE001 - it becomes the error of this position
            value = error
        self._store(pending.slot, value, is_completed=pending.found.is_completed)

    def _store(self, slot: Slot, value: Any, *, is_completed: bool = False) -> None:
        """Store a value that was awaited in the answer."""
        if isinstance(value, Exception):
            self._propagate_null(slot, value)
            return
        try:
            slot.holder[slot.key] = value if is_completed else self._complete(slot, value)
        except UnexpectedAwaitable as found:
            self.pending.append(PendingValue(slot, found))
        except Exception as error:  # noqa: BLE001 - it becomes the error of this position
            self._propagate_null(slot, error)

    def _complete(self, slot: Slot, value: Any) -> Any:
        field = slot.field
        try:
            if field.complete is not None and slot.type is field.plan.type:
                return field.complete(self, value, slot.path)
            return self.core.complete(field, slot.type, value, slot.path)
        except UnexpectedAwaitable as found:
            if found.awaitable is not value:
                raise
        return self.core.complete_value(field, slot.type, value, slot.path)  # as graphql-core, which awaits once

    def _propagate_null(self, slot: Slot, error: Exception) -> None:
        """Collect an error that came after an await, and set the nearest nullable position to null."""
        assert self._root is not None  # noqa: S101 - an execution that awaits has begun
        located = located_error(error, slot.field.plan.nodes, core_path(slot.path).as_list())
        path = nullable_ancestor(self._root, slot.path) if is_non_null_type(slot.type) else slot.path
        drop_within(self.pending, path)
        if path is not slot.path and self._tasks is not None:
            self._tasks.cancel_below(path)
        if path is None:
            was_present, self._answer = self._answer is not None, None
        else:
            was_present = set_null(self._answer, path)
        if was_present:
            self.core.executor.collected_errors.add(located, core_path(path) if path else None)
