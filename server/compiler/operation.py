"""Compiled operations: compiled when they are executed, and kept with the document they belong to.

Invariant: a compiled operation answers what graphql-core would. It has one plan for each choice of the variables in its
@skip and @include, MAX_PLANS of them at most, and nothing of any request. An operation that cannot be compiled is left
to graphql-core, each time for the same reason. Its owner may postpone compiling, and is told the size of each plan.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import structlog
from graphql import (
    DocumentNode,
    ExecutionResult,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    VariableNode,
)
from graphql.execution import Executor, VariableValues

from server.compiler.codegen import compile_plan
from server.compiler.core import CompiledPlan, Core
from server.compiler.plan import NotCompilable, SelectionPlan, VariableReader, plan_operation
from server.compiler.runtime import Execution

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

    def __init__(self, schema: GraphQLSchema, document: DocumentNode, definition: OperationDefinitionNode) -> None:
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
        return _choice_variables(self._document, self._definition)

    @overload
    def prepare(
        self, variables: Mapping[str, Any], *, suggestions: bool
    ) -> PreparedOperation | ExecutionResult | Fallback: ...
    @overload
    def prepare(
        self, variables: Mapping[str, Any], *, suggestions: bool, may_compile: bool
    ) -> PreparedOperation | ExecutionResult | Fallback | None: ...
    def prepare(
        self, variables: Mapping[str, Any], *, suggestions: bool, may_compile: bool = True
    ) -> PreparedOperation | ExecutionResult | Fallback | None:
        """The operation with the variables of one request; a result holds the errors in them.

        None if it has to be compiled for them and may not. Compiling may happen in any thread, but in one at a time.
        """
        if self._fallback is not None:
            return self._fallback
        if self.is_postponed:
            return Fallback("first use")
        coerced = self._variables.read(variables, suggestions=suggestions)
        if isinstance(coerced, list):
            return ExecutionResult(None, coerced)
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
        self, ctx: Any, root_value: Any, variables: Mapping[str, Any], *, suggestions: bool
    ) -> Executor[Any]:
        """graphql-core's executor of this operation."""
        name = self._definition.name
        executor = Executor.build(
            self._schema,
            self._document,
            root_value,
            ctx,
            dict(variables),
            name.value if name else None,
            hide_suggestions=not suggestions,
        )
        if isinstance(executor, list):  # cannot be: the variables were coerced before
            raise executor[0]
        return executor

    def _compile_choice(self, choice: tuple[Any, ...], variables: Mapping[str, Any]) -> CompiledPlan | Fallback:
        if len(self.plans) >= MAX_PLANS:
            return Fallback("too many choices")
        values = self._variables.coerce(variables, suggestions=False)
        return Fallback("variables") if isinstance(values, list) else self._compile(choice, values)

    def _compile(self, choice: tuple[Any, ...], variables: VariableValues) -> CompiledPlan | Fallback:
        try:
            root = plan_operation(self._schema, self._document, self._definition, variables)
            plan = compile_plan(self._schema, self._roots(root))
        except NotCompilable as refusal:
            self._fallback = Fallback(refusal.reason)
            return self._fallback
        except GraphQLError:
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
        if self._definition.operation is not OperationType.MUTATION:
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

    @property
    def source(self) -> str:
        """The generated code."""
        return self.plan.source

    def execute(self, ctx: Any, root_value: Any = None) -> Coroutine[Any, Any, ExecutionResult]:
        """Execute a query or a mutation."""

        def build_executor() -> Executor[Any]:
            return self.operation.build_executor(ctx, root_value, self.variables, suggestions=self.suggestions)

        return Execution(self.plan, self.coerced, ctx, Core(build_executor)).run(root_value)

    def execute_event(self, executor: Executor[Any]) -> Coroutine[Any, Any, ExecutionResult]:
        """Execute a subscription for one of its events, for which graphql-core has built the executor."""
        execution = Execution(self.plan, self.coerced, executor.context_value, Core(lambda: executor))
        return execution.run(executor.root_value)


def _choice_variables(document: DocumentNode, operation: OperationDefinitionNode) -> tuple[str, ...]:
    """The variables in @skip and @include of an operation and of the fragments that it reaches.

    Another operation of the document may have a variable of the same name, and of any type.
    """
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    names: dict[str, None] = {}
    parents: list[Any] = [operation]
    while parents:
        selection_set = getattr(parents.pop(), "selection_set", None)
        for selection in selection_set.selections if selection_set else ():
            is_spread = isinstance(selection, FragmentSpreadNode)
            parents.append(fragments.pop(selection.name.value, None) if is_spread else selection)
            for directive in selection.directives or ():
                names |= {
                    argument.value.name.value: None
                    for argument in directive.arguments or ()
                    if directive.name.value in _CHOICES and isinstance(argument.value, VariableNode)
                }
    return tuple(names)
