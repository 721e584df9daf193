"""Compiled operations: compiled when they are executed, and kept with the document they belong to.

Invariant: a compiled operation answers what graphql-core would. It has one plan for each choice of the variables in its
@skip and @include, MAX_PLANS of them at most, and nothing of any request. An operation that cannot be compiled is left
to graphql-core, each time for the same reason. Its owner may postpone compiling, and is told the size of each plan.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias, cast, overload

import graphql
import structlog
from graphql.execution import Executor, VariableValues

from server.compiler.codegen import compile_plan
from server.compiler.core import (
    CompiledField,
    CompiledPlan,
    Core,
    ResponsePath,
    UnexpectedAwaitable,
    ancestry,
    core_path,
    is_within,
)
from server.compiler.plan import FieldPlan, NotCompilable, Planner, SelectionPlan, VariableReader

MAX_PLANS = 2
_CHOICES = ("skip", "include")
_log = structlog.get_logger("ringside.compiler")


@dataclass(frozen=True, slots=True)
class Fallback:
    """The operation is left to graphql-core."""

    reason: str
    """A constant, for the metrics."""


class CompiledOperation:
    """One operation of a document with its plans."""

    def __init__(
        self, schema: graphql.GraphQLSchema, document: graphql.DocumentNode, definition: graphql.OperationDefinitionNode
    ) -> None:
        self._schema = schema
        self._document = document
        self._definition = definition
        self.is_postponed = False
        """Whether graphql-core executes it for now."""
        self.on_compiled: Callable[[int], None] = lambda _: None
        """Called with the bytes that a new plan occupies, by the thread that compiled it."""
        self.plans: dict[tuple[Any, ...], CompiledPlan] = {}
        """By the values of the variables in @skip and @include."""
        self._fallback: Fallback | None = None

    @cached_property
    def _variables(self) -> VariableReader:
        return VariableReader(self._schema, self._definition)

    @cached_property
    def _choice_variables(self) -> tuple[str, ...]:
        """The variables in @skip and @include of the operation and of the fragments that it reaches.

        Another operation of the document may have a variable of the same name, and of any type.
        """
        definitions = self._document.definitions
        fragments = {node.name.value: node for node in definitions if isinstance(node, graphql.FragmentDefinitionNode)}
        names: dict[str, None] = {}
        parents: list[Any] = [self._definition]
        while parents:
            selection_set = getattr(parents.pop(), "selection_set", None)
            for selection in selection_set.selections if selection_set else ():
                is_spread = isinstance(selection, graphql.FragmentSpreadNode)
                parents.append(fragments.pop(selection.name.value, None) if is_spread else selection)
                for directive in selection.directives or ():
                    names |= {
                        argument.value.name.value: None
                        for argument in directive.arguments or ()
                        if directive.name.value in _CHOICES and isinstance(argument.value, graphql.VariableNode)
                    }
        return tuple(names)

    @overload
    def prepare(
        self, variables: Mapping[str, Any], *, suggestions: bool
    ) -> PreparedOperation | graphql.ExecutionResult | Fallback: ...
    @overload
    def prepare(
        self, variables: Mapping[str, Any], *, suggestions: bool, may_compile: bool
    ) -> PreparedOperation | graphql.ExecutionResult | Fallback | None: ...
    def prepare(
        self, variables: Mapping[str, Any], *, suggestions: bool, may_compile: bool = True
    ) -> PreparedOperation | graphql.ExecutionResult | Fallback | None:
        """The operation with the variables of one request; a result holds the errors in them.

        None if it has to be compiled for them and may not. Compiling may happen in any thread, but in one at a time.
        """
        if self._fallback is not None:
            return self._fallback
        if self.is_postponed:
            return Fallback("first use")
        coerced = self._variables.read(variables, suggestions=suggestions)
        if isinstance(coerced, list):
            return graphql.ExecutionResult(None, coerced)
        choice = tuple([coerced.get(name) for name in self._choice_variables])
        if choice not in self.plans and not may_compile and len(self.plans) < MAX_PLANS:
            return None
        plan = self.plans.get(choice) or self._compile_choice(choice, variables)
        if isinstance(plan, Fallback):
            return plan
        return PreparedOperation(self, plan, variables, coerced, suggestions)

    def compile_ahead(self) -> None:
        """Compile before the first request, if no variable decides what is in the operation."""
        if not self._choice_variables:
            self._compile((), VariableValues({}, {}))

    def build_executor(
        self, ctx: Any, variables: Mapping[str, Any], *, suggestions: bool
    ) -> Executor[Any] | list[graphql.GraphQLError]:
        """graphql-core's executor of this operation, or the errors in the variables."""
        name = self._definition.name
        return Executor.build(
            self._schema,
            self._document,
            None,
            ctx,
            dict(variables),
            name.value if name else None,
            hide_suggestions=not suggestions,
        )

    def _compile_choice(self, choice: tuple[Any, ...], variables: Mapping[str, Any]) -> CompiledPlan | Fallback:
        if len(self.plans) >= MAX_PLANS:
            return Fallback("too many choices")
        values = self._variables.coerce(variables, suggestions=False)
        return Fallback("variables") if isinstance(values, list) else self._compile(choice, values)

    def _compile(self, choice: tuple[Any, ...], variables: VariableValues) -> CompiledPlan | Fallback:
        try:
            root = Planner(self._schema, self._document, self._definition, variables).plan()
            plan = compile_plan(self._schema, self._roots(root))
        except NotCompilable as refusal:
            self._fallback = Fallback(refusal.reason)
            return self._fallback
        except graphql.GraphQLError:
            return Fallback("directive")  # its arguments are wrong in this request; graphql-core says how
        except (SyntaxError, RecursionError, MemoryError) as error:
            _log.error("an operation could not be compiled", exc_info=error)
            self._fallback = Fallback("compiler")
            return self._fallback
        self.plans[choice] = plan
        self.on_compiled(plan.size)
        return plan

    def _roots(self, root: SelectionPlan) -> list[SelectionPlan]:
        """What is executed one after the other: the fields of a mutation, or the whole root."""
        if self._definition.operation is not graphql.OperationType.MUTATION:
            return [root]
        return [SelectionPlan(root.type, {key: field}) for key, field in root.fields.items()]


@dataclass(eq=False, slots=True)
class PreparedOperation:
    """A compiled operation with the variables of one request."""

    operation: CompiledOperation
    plan: CompiledPlan
    variables: Mapping[str, Any]
    """As the request gives them."""
    coerced: dict[str, Any]
    suggestions: bool

    def execute(self, ctx: Any) -> Coroutine[Any, Any, graphql.ExecutionResult]:
        """Execute a query or a mutation."""
        build = partial(self.operation.build_executor, ctx, self.variables, suggestions=self.suggestions)
        # The variables were coerced before, so there are no errors in them.
        return Execution(self.plan, self.coerced, ctx, Core(cast("Callable[[], Executor[Any]]", build))).run(None)

    def execute_event(self, executor: Executor[Any]) -> Coroutine[Any, Any, graphql.ExecutionResult]:
        """Execute a subscription for one of its events, for which graphql-core has built the executor."""
        execution = Execution(self.plan, self.coerced, executor.context_value, Core(lambda: executor))
        return execution.run(executor.root_value)


# ── pending values ──
# How generated code is run, and what it leaves awaited.
#
# Guarantees
# - Generated code never awaits. For an async field it leaves null in the answer and an entry in `pending`. The runtime
#   awaits all entries at once, stores their values in the answer, and goes on with the entries that this has left.
# - One call of a batched resolver answers all entries of its field that are pending at that time.
# - A single call needs no task. Several calls are tasks; a coroutine begins and ends in the same one.
# - Errors are graphql-core's: its executor locates and collects them. While generated code runs, null propagates by
#   raising. After an await, the nearest nullable position is set to null, and what is awaited below it is cancelled.

PendingField: TypeAlias = "tuple[CompiledField, Any, Any, ResponsePath]"
"""An async field, the record, the answer's object that the value belongs in, and that object's path."""


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """The position of one value in the answer: of a field, or of an item of a list."""

    field: CompiledField
    type: Any
    """The type of this position: the field's own, or that of an item."""
    holder: Any
    """The object or list that the value belongs in."""
    key: str | int
    path: ResponsePath


@dataclass(frozen=True, slots=True, eq=False)
class PendingValue:
    """A value that has to be awaited, and its position."""

    slot: Slot
    found: UnexpectedAwaitable

    def close(self) -> None:
        """Close a coroutine that nobody began to await."""
        awaitable = self.found.awaitable
        if inspect.iscoroutine(awaitable) and inspect.getcoroutinestate(awaitable) == inspect.CORO_CREATED:
            awaitable.close()


Pending: TypeAlias = "PendingField | PendingValue"
Call: TypeAlias = "list[PendingField] | PendingValue"
"""What is awaited at once: a value, an async field, or all entries of a batched field."""


def take_calls(entries: list[Pending]) -> list[Call]:
    """Remove all entries, and return the calls that answer them."""
    calls: list[Call] = []
    batches: dict[CompiledField, list[PendingField]] = {}
    for entry in entries:
        if isinstance(entry, PendingValue):
            calls.append(entry)
        elif (batch := batches.get(entry[0])) is not None:
            batch.append(entry)
        else:
            batch = [entry]
            calls.append(batch)
            if entry[0].is_batched:
                batches[entry[0]] = batch
    entries.clear()
    return calls


def path_of(call: Call) -> ResponsePath:
    """The path at or below which all values of a call lie."""
    if isinstance(call, PendingValue):
        return call.slot.path
    if len(call) > 1:
        return None
    field, _, _, path = call[0]
    return (path, field.plan.key, field.plan.parent.name)


def drop_within(entries: list[Pending], path: ResponsePath) -> None:
    """Drop the entries below a path: they are the last, since entries follow the order of the answer."""
    while entries:
        entry = entries[-1]
        if not is_within(entry.slot.path if isinstance(entry, PendingValue) else entry[3], path):
            return
        entries.pop()
        if isinstance(entry, PendingValue):
            entry.close()


# ── tasks ──
# The tasks of one execution, each with the path at or below which its values belong.

Task: TypeAlias = "asyncio.Task[None]"


class TaskTree:
    """Runs coroutines at once, and cancels those below a path that has become null.

    A coroutine begins and ends in one task, because a timeout inside belongs to the task that began it.
    """

    __slots__ = ("_by_ancestor", "_cancelled", "_paths")

    def __init__(self) -> None:
        self._paths: dict[Task, ResponsePath] = {}
        self._by_ancestor: dict[ResponsePath, list[Task]] | None = None
        self._cancelled: set[Task] = set()

    async def run(self, coroutines: Iterable[tuple[ResponsePath, Coroutine[Any, Any, None]]]) -> None:
        """Run all to their ends; raise what is not an error of a field."""
        tasks = [self._start(path, coroutine) for path, coroutine in coroutines]
        try:
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(outcome, BaseException) and not isinstance(outcome, asyncio.CancelledError):
                    raise outcome
            if any(task.cancelled() and task not in self._cancelled for task in tasks):
                raise asyncio.CancelledError
        finally:
            for task in tasks:
                self._paths.pop(task, None)
                self._cancelled.discard(task)

    def cancel_below(self, path: ResponsePath) -> None:
        """Cancel the tasks at or below a path, but for the one that asks."""
        current = asyncio.current_task()
        for task in self._tasks_below(path):
            if task is not current and not task.done():
                self._cancelled.add(task)
                task.cancel()

    def _start(self, path: ResponsePath, coroutine: Coroutine[Any, Any, None]) -> Task:
        task = asyncio.ensure_future(coroutine)
        self._paths[task] = path
        if self._by_ancestor is not None:
            _index(self._by_ancestor, task, path)
        return task

    def _tasks_below(self, path: ResponsePath) -> list[Task]:
        if path is None:
            return list(self._paths)
        if self._by_ancestor is None:  # made for the first error: the nulls of a long list then cost no search each
            self._by_ancestor = {}
            for task, task_path in self._paths.items():
                _index(self._by_ancestor, task, task_path)
        return self._by_ancestor.pop(path, [])


def _index(by_ancestor: dict[ResponsePath, list[Task]], task: Task, path: ResponsePath) -> None:
    for ancestor in ancestry(path):
        by_ancestor.setdefault(ancestor, []).append(task)


# ── null propagation ──
# Null propagation after an await: an error nulls the nearest nullable position.


def nullable_ancestor(root: SelectionPlan, path: ResponsePath) -> ResponsePath:
    """The nearest nullable position above this one; None is the answer itself."""
    selection, nearest = root, None
    field: FieldPlan | None = None
    type_: Any = None
    for ancestor in ancestry(path)[:-1]:
        _, key, type_name = ancestor
        if isinstance(key, str):
            if field is not None:
                selection = field.selections[type_name]
            field = selection.fields[key]
            type_ = field.type
        else:
            type_ = graphql.get_nullable_type(type_).of_type
        if not graphql.is_non_null_type(type_):
            nearest = ancestor
    return nearest


def set_null(answer: Any, path: ResponsePath) -> bool:
    """Set a position to null; False if an object or list above it has become null already."""
    *ancestors, (_, key, _) = ancestry(path)
    holder = answer
    for _, ancestor_key, _ in ancestors:
        if holder is None:
            return False
        holder = holder[ancestor_key]
    if holder is None:
        return False
    holder[key] = None
    return True


# ── running a plan ──


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

    async def run(self, root_value: Any) -> graphql.ExecutionResult:
        """The result of the operation."""
        answer: dict[str, Any] = {}
        for fields, selection in self.plan.roots:
            self._root = selection
            try:
                self._answer = fields(self, root_value, None)
                if self.pending:
                    await self._await(take_calls(self.pending))
            except graphql.GraphQLError as error:
                self.core.executor.collected_errors.add(error, None)
                drop_within(self.pending, None)
                self._answer = None
            if self._answer is None:
                return graphql.ExecutionResult(None, self.core.errors)
            answer = {**answer, **self._answer} if answer else self._answer
        return graphql.ExecutionResult(answer, self.core.errors or None)

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
            self.core.executor.handle_field_error(error, slot.type, slot.field.plan.details, core_path(slot.path))
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
        located = graphql.located_error(error, slot.field.plan.nodes, core_path(slot.path).as_list())
        path = nullable_ancestor(self._root, slot.path) if graphql.is_non_null_type(slot.type) else slot.path
        drop_within(self.pending, path)
        if path is not slot.path and self._tasks is not None:
            self._tasks.cancel_below(path)
        if path is None:
            was_present, self._answer = self._answer is not None, None
        else:
            was_present = set_null(self._answer, path)
        if was_present:
            self.core.executor.collected_errors.add(located, core_path(path) if path else None)
