"""One run of a plan: what the generated functions call, and the waiting between them.

Laws
- Generated functions never wait. A field that has to be waited for leaves null in its place and itself in `pending`;
  when they return, `drive` waits for all of `pending` at once and puts each value in its place, and so on inside.
- Of a field whose resolver takes many records (`together`), all that are pending are asked for in one call.
- A single wait needs no task of its own. Several are tasks; no coroutine is ever begun outside the task it ends in,
  since timeouts belong to the task that began them.
- Errors are graphql-core's: its executor, made when first needed, locates and collects them, and completes every value
  that the plan does not know. Null moves up by raising while functions run; after a wait, by finding the nearest place
  that may be null in the answer. What was still being waited for beneath it is cancelled.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from graphql import (
    ExecutionResult,
    GraphQLError,
    get_argument_values,
    get_nullable_type,
    is_non_null_type,
    located_error,
)
from graphql.execution import Executor, VariableValues
from graphql.pyutils import Path, is_awaitable

from server.compiler.leaves import Later
from server.compiler.paths import Chain, is_beneath, parts_of, path_of
from server.compiler.plan import Selection, Step

if TYPE_CHECKING:
    from server.compiler.plans import Plan

Holder: TypeAlias = dict[str, Any] | list[Any]


class Awaited:
    """A value that turned up where none was expected to be waited for: of a field, or of a list's item."""

    __slots__ = ("at", "awaitable", "complete", "holder", "key", "step", "type")

    def __init__(self, step: Step, type_: Any, holder: Holder, key: str | int, at: Chain, later: Later) -> None:
        self.step, self.type, self.holder, self.key, self.at = step, type_, holder, key, at
        self.awaitable, self.complete = later.awaitable, later.complete

    def close(self) -> None:
        """Nobody is going to wait for it any more, if nobody has begun to."""
        if inspect.iscoroutine(self.awaitable) and inspect.getcoroutinestate(self.awaitable) == inspect.CORO_CREATED:
            self.awaitable.close()


Pending: TypeAlias = "tuple[Step, Any, dict[str, Any], Chain] | Awaited"


class Run:
    """One operation being answered."""

    __slots__ = (
        "_arguments", "_below", "_cancelled", "_coerced", "_executor", "_made", "_plan", "_running",
        "ctx", "data", "pending", "root",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan,
        ctx: Any,
        coerced: dict[str, Any],
        arguments: dict[Step, dict[str, Any]],
        executor: Callable[[], Executor[Any]],
    ) -> None:
        self._plan = plan
        self._coerced = coerced
        self._made = executor
        self._executor: Executor[Any] | None = None
        self._arguments = arguments
        self._running: dict[asyncio.Task[None], Chain] = {}
        self._below: dict[Chain, list[asyncio.Task[None]]] | None = None
        self._cancelled: set[asyncio.Task[None]] = set()
        self.ctx = ctx
        self.pending: list[Pending] = []
        self.data: dict[str, Any] | None = None
        self.root: Selection | None = None

    @property
    def executor(self) -> Executor[Any]:
        if self._executor is None:
            self._executor = self._made()
        return self._executor

    async def result(self, value: Any) -> ExecutionResult:
        """The answer to the operation for this root value."""
        whole: dict[str, Any] | None = {}
        for fill, selection in self._plan.roots:
            self.root = selection
            try:
                self.data = fill(self, value, None)
                if self.pending:
                    await self._drive(self._taken())
            except GraphQLError as error:
                self.executor.collected_errors.add(error, None)
                self._discard()
                self.data = None
            if self.data is None:
                whole = None
                break
            whole = {**whole, **self.data} if whole else self.data
        errors = self._executor.collected_errors.errors if self._executor is not None else None
        return ExecutionResult(whole, errors or None)

    # ── called by generated code ──

    def arguments(self, step: Step) -> dict[str, Any]:
        """A resolver's keyword arguments; the same for every record of a list, and for the next run that is alike."""
        known = self._arguments.get(step)
        if known is None:
            known = self._plan.arguments_of(step).read(self._coerced, lambda: self._variables, self.ctx)
            if self._plan.arguments_of(step).lasting:
                self._arguments[step] = known
        return known

    @property
    def _variables(self) -> VariableValues:
        return self.executor.variable_values

    def asked(self, step: Step, record: Any, path: Chain) -> Any:
        """What the schema's own resolver answers."""
        executor, at = self.executor, path_of((path, step.key, step.parent.name))
        info = executor.build_resolve_info(step.definition, step.nodes, step.parent, at)
        definition, node = step.definition, step.details[0].node
        given = get_argument_values(definition, node, executor.variable_values) if definition.args else {}
        found = (definition.resolve or executor.field_resolver)(record, info, **given)
        if is_awaitable(found):
            raise Later(found)
        return found

    def core(self, step: Step, type_: Any, value: Any, at: Chain) -> Any:
        """The value as graphql-core completes it."""
        if isinstance(value, Exception):
            raise value
        if is_awaitable(value):
            raise Later(value)
        return self._by_core(step, type_, value, at)

    def _by_core(self, step: Step, type_: Any, value: Any, at: Chain) -> Any:
        found = self.executor.complete_value(type_, step.details, self._info(step, at), path_of(at), value, None)
        if is_awaitable(found):
            raise Later(found, complete=True)
        return found

    def is_of(self, step: Step, type_: Any, value: Any, at: Chain) -> bool:
        """Whether a value is of an object type whose own check must be asked; if not, graphql-core says so."""
        if isinstance(value, Exception) or is_awaitable(value):
            return False
        return _said(type_.is_type_of(value, self._info(step, at)))

    def runtime(self, step: Step, type_: Any, fills: Mapping[str, Any], value: Any, at: Chain) -> Any:
        """The function for the object type behind an interface or union; None leaves it to graphql-core."""
        if isinstance(value, Exception) or is_awaitable(value):
            return None
        info = self._info(step, at)
        name: Any = (type_.resolve_type or self.executor.type_resolver)(value, info, type_)
        if is_awaitable(name):
            raise Later(_completed(self.executor, step, type_, value, path_of(at), name), complete=True)
        fill = fills.get(name) if isinstance(name, str) else None
        if fill is not None:
            found: Any = self.executor.schema.get_type(name)
            if found.is_type_of is not None and not _said(found.is_type_of(value, info)):
                return None
        return fill

    def _info(self, step: Step, at: Chain) -> Any:
        return self.executor.build_resolve_info(step.definition, step.nodes, step.parent, path_of(at))

    def null(self, step: Step) -> TypeError:
        return TypeError(f"Cannot return null for non-nullable field {step.parent}.{step.name}.")

    def failed(self, step: Step, holder: dict[str, Any], path: Chain, error: Exception) -> None:
        """A field's error: collected, and null in its place; or raised, where null cannot stand."""
        at = (path, step.key, step.parent.name)
        if isinstance(error, Later):
            self.pending.append(Awaited(step, step.type, holder, step.key, at, error))
            return
        self._handled(step, step.type, at, error)

    def failed_item(self, step: Step, type_: Any, holder: list[Any], place: int, path: Chain, error: Exception) -> None:
        at = (path, place, None)
        if isinstance(error, Later):
            self.pending.append(Awaited(step, type_, holder, place, at, error))
            return
        self._handled(step, type_, at, error)

    def _handled(self, step: Step, type_: Any, at: Chain, error: Exception) -> None:
        try:
            self.executor.handle_field_error(error, type_, step.details, path_of(at))
        finally:
            self._discard(at)

    # ── waiting ──

    async def _drive(self, entries: list[Pending]) -> None:
        while entries:
            jobs = _jobs(entries)
            if len(jobs) > 1:
                await self._at_once(jobs)
                return
            entries = await self._done(jobs[0])

    async def _at_once(self, jobs: Sequence[list[Pending]]) -> None:
        tasks = []
        for job in jobs:
            task = asyncio.ensure_future(self._alone(job))
            self._note(task, _place(job))
            tasks.append(task)
        try:
            for ended in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(ended, BaseException) and not isinstance(ended, asyncio.CancelledError):
                    raise ended
            if any(task.cancelled() and task not in self._cancelled for task in tasks):
                raise asyncio.CancelledError
        finally:
            for task, job in zip(tasks, jobs, strict=True):
                self._running.pop(task, None)
                self._cancelled.discard(task)
                if isinstance(job[0], Awaited):
                    job[0].close()

    async def _alone(self, job: list[Pending]) -> None:
        await self._drive(await self._done(job))

    async def _done(self, job: list[Pending]) -> list[Pending]:
        """Waits for the values of a job, puts them in their places, and returns what is pending inside of them."""
        entry = job[0]
        if isinstance(entry, Awaited):
            return await self._unexpected(entry)
        step = entry[0]
        resolution = step.source.resolution
        assert resolution is not None  # noqa: S101 - only resolvers of ours are pending by their records
        if resolution.is_together:
            values = await self._together(step, resolution, job)
        else:
            values = [await self._one(step, resolution, entry[1])]
        if step.settle is not None:
            step.settle(self, job, values)
        else:
            for (_, _, holder, path), value in zip(job, values, strict=True):  # type: ignore[misc]
                self.put(step, holder, path, value)
        return self._taken()

    def _taken(self) -> list[Pending]:
        """What became pending since it was last taken. Nobody waits while there is something to take."""
        taken, self.pending = self.pending, []
        return taken

    async def _one(self, step: Step, resolution: Any, record: Any) -> Any:
        try:
            given = self.arguments(step) if step.definition.args or resolution.parameters.window else {}
            records = (record,) if resolution.of_record else ()
            return await resolution.resolver(self.ctx, *records, **given)
        except Exception as error:  # noqa: BLE001 - it becomes the field's
            return error

    async def _together(self, step: Step, resolution: Any, job: list[Any]) -> Sequence[Any]:
        try:
            given = self.arguments(step) if step.definition.args or resolution.parameters.window else {}
            values: Sequence[Any] = await resolution.resolver(self.ctx, [entry[1] for entry in job], **given)
        except Exception as error:  # noqa: BLE001 - it becomes each field's
            return [error] * len(job)
        if len(values) != len(job):
            name = resolution.resolver.__name__
            return [TypeError(f"{name} gave {len(values)} answers for {len(job)} records.")] * len(job)
        return values

    def put(self, step: Step, holder: dict[str, Any], path: Chain, value: Any) -> None:
        at = (path, step.key, step.parent.name)
        try:
            holder[step.key] = self._finished(step, step.type, value, at)
        except Later as later:
            self.pending.append(Awaited(step, step.type, holder, step.key, at, later))
        except Exception as error:  # noqa: BLE001 - it becomes the field's
            self._bubbled(step, step.type, at, error)

    async def _unexpected(self, entry: Awaited) -> list[Pending]:
        try:
            value = await entry.awaitable
            if not entry.complete:
                value = self._finished(entry.step, entry.type, value, entry.at)
            entry.holder[entry.key] = value  # type: ignore[index]
        except Later as later:
            self.pending.append(Awaited(entry.step, entry.type, entry.holder, entry.key, entry.at, later))
        except Exception as error:  # noqa: BLE001 - it becomes the field's
            self._bubbled(entry.step, entry.type, entry.at, error)
        return self._taken()

    def _finished(self, step: Step, type_: Any, value: Any, at: Chain) -> Any:
        """The completed form of what was waited for. If it can be waited for again, it is a value."""
        if isinstance(value, Exception):
            raise value
        try:
            if type_ is step.type and step.complete is not None:
                return step.complete(self, value, at)
            return self.core(step, type_, value, at)
        except Later as later:
            if later.awaitable is not value:
                raise
        return self._by_core(step, type_, value, at)

    # ── null on its way up ──

    def _bubbled(self, step: Step, type_: Any, at: Chain, error: Exception) -> None:
        """An error after a wait: the nearest place that may be null becomes null."""
        located = located_error(error, step.nodes, path_of(at).as_list())
        place = at if not is_non_null_type(type_) else self._nullable_above(at)
        self._discard(place)
        if place is not at:
            self._cancel(place)
        if self._set_null(place):
            self.executor.collected_errors.add(located, path_of(place) if place else None)

    def _nullable_above(self, at: Chain) -> Chain:
        chain = parts_of(at)
        selection, found, type_, step = self.root, None, None, None
        for part in chain[:-1]:
            if isinstance(part[1], str):
                if step is not None:
                    selection = step.selections[part[2]]
                assert selection is not None  # noqa: S101 - a path begins with a field of the root
                step = selection.steps[part[1]]
                type_ = step.type
            else:
                type_ = get_nullable_type(type_).of_type  # type: ignore[union-attr]
            if not is_non_null_type(type_):
                found = part
        return found

    def _set_null(self, place: Chain) -> bool:
        """Whether the place was still there."""
        if place is None:
            there = self.data is not None
            self.data = None
            return there
        holder: Any = self.data
        for part in parts_of(place)[:-1]:
            if holder is None:
                return False
            holder = holder[part[1]]
        if holder is None:
            return False
        holder[place[1]] = None
        return True

    def _discard(self, place: Chain = None) -> None:
        """Forgets what is pending beneath a place that is null now: what was added last, in the order of places."""
        while self.pending:
            entry = self.pending[-1]
            if not is_beneath(entry.at if isinstance(entry, Awaited) else entry[3], place):
                return
            self.pending.pop()
            if isinstance(entry, Awaited):
                entry.close()

    def _note(self, task: asyncio.Task[None], place: Chain) -> None:
        self._running[task] = place
        if self._below is not None:
            self._note_below(task, place)

    def _note_below(self, task: asyncio.Task[None], place: Chain) -> None:
        assert self._below is not None  # noqa: S101 - its callers saw to it
        while place is not None:
            self._below.setdefault(place, []).append(task)
            place = place[0]

    def _cancel(self, place: Chain) -> None:
        """Ends what is waited for beneath a place. The index of places is made when the first one is needed."""
        if place is None:
            tasks = list(self._running)
        else:
            if self._below is None:
                self._below = {}
                for task, its in self._running.items():
                    self._note_below(task, its)
            tasks = self._below.pop(place, [])
        current = asyncio.current_task()
        for task in tasks:
            if task is not current and not task.done():
                self._cancelled.add(task)
                task.cancel()


async def _completed(executor: Executor[Any], step: Step, type_: Any, value: Any, at: Path, name: Any) -> Any:
    info = executor.build_resolve_info(step.definition, step.nodes, step.parent, at)
    found = executor.ensure_valid_runtime_type(await name, type_, step.details, info, value)
    completed: Any = executor.complete_object_value(found, step.details, info, at, value, None)
    return await completed if is_awaitable(completed) else completed


def _said(answer: Any) -> bool:
    """A check's answer; one that must be waited for is left to graphql-core, which asks again."""
    if is_awaitable(answer):
        if asyncio.iscoroutine(answer):
            answer.close()
        return False
    return bool(answer)


def _jobs(entries: list[Pending]) -> list[list[Pending]]:
    """What can be asked for in one call, together."""
    jobs: list[list[Pending]] = []
    together: dict[Step, list[Pending]] = {}
    for entry in entries:
        if type(entry) is tuple and (job := together.get(entry[0])) is not None:
            job.append(entry)
            continue
        job = [entry]
        jobs.append(job)
        if type(entry) is tuple and entry[0].source.resolution.is_together:  # type: ignore[union-attr]
            together[entry[0]] = job
    return jobs


def _place(job: list[Pending]) -> Chain:
    """Where a job's values stand: beneath which place they all are."""
    first = job[0]
    if isinstance(first, Awaited):
        return first.at
    return (first[3], first[0].key, first[0].parent.name) if len(job) == 1 else None
