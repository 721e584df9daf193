"""Plans of one operation: compiled when first asked for, kept with the operation, and only there.

Law: a plan answers what graphql-core would. An operation has one plan for each choice of the variables in its @skip and
@include, MOST_CHOICES of them at most. What cannot be planned is told by a reason and left to graphql-core, each time.

Of a common request (requests.py), which has read-only and small variables, the last is kept ready.

Operations come from `Documents`, which keeps a bounded number of documents that passed every check: so are plans.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from types import MappingProxyType
from typing import Any

import structlog
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    VariableNode,
)
from graphql.execution import Executor, VariableValues

from server.compiler.arguments import Arguments, Coerced, Variables
from server.compiler.codegen import Source
from server.compiler.fields import RESOLVER
from server.compiler.plan import Selection, Step, Unplanned, is_serial, planned
from server.compiler.runtime import Run

MOST_CHOICES = 16
_log = structlog.get_logger("ringside.graphql")


class Plan:
    """One compiled operation, for one choice of @skip and @include."""

    def __init__(self, schema: GraphQLSchema, whole: Selection, *, serial: bool) -> None:
        selections = [Selection(whole.type, {key: step}) for key, step in whole.steps.items()] if serial else [whole]
        source = Source(schema, selections)
        functions = source.functions()
        self.roots = [(functions[name], selection) for name, selection in zip(source.roots, selections, strict=True)]
        converter = getattr(schema, "_strawberry_schema", None)
        self._arguments = {
            step: Arguments(step, converter.schema_converter)  # type: ignore[union-attr] # there is one where RESOLVER is
            for step in source.steps
            if step.source.kind == RESOLVER
        }
        self.text = str(source.text)

    def arguments_of(self, step: Any) -> Arguments:
        return self._arguments[step]


class Plans:
    """All that is compiled of one operation."""

    __slots__ = ("_choosing", "_definition", "_document", "_kept", "_last", "_reason", "_schema", "_variables")

    def __init__(self, schema: GraphQLSchema, document: DocumentNode, definition: OperationDefinitionNode) -> None:
        self._schema = schema
        self._document = document
        self._definition = definition
        self._variables: Variables | None = None
        self._choosing: tuple[str, ...] = ()
        self._kept: dict[tuple[Any, ...], Plan] = {}
        self._reason: str | None = None
        self._last: Ready | None = None

    def ready(self, given: Mapping[str, Any], *, suggestions: bool) -> Ready | ExecutionResult | str:
        """The operation with these variables, ready to run; or their errors; or why it is left to graphql-core."""
        last = self._last
        if last is not None and last.given is given and last.suggestions is suggestions:
            return last
        if self._reason is not None:
            return self._reason
        if self._variables is None:
            self._variables = Variables(self._schema, self._definition)
            self._choosing = _choosing(self._document)
        coerced = self._variables.coerced(given, suggestions=suggestions)
        if isinstance(coerced, list):
            return ExecutionResult(None, coerced)
        choice = tuple([coerced.get(name) for name in self._choosing])
        plan = self._kept.get(choice)
        if plan is None:
            found = self._plan(choice, given, suggestions=suggestions)
            if isinstance(found, str):
                return found
            plan = found
        ready = Ready(self, plan, coerced, given, suggestions=suggestions)
        if isinstance(given, MappingProxyType):
            self._last = ready
        return ready

    @property
    def compiled(self) -> int:
        """How many plans there are."""
        return len(self._kept)

    def prepare(self) -> None:
        """Compiles ahead of the first request, where no variable decides what is in the operation."""
        if not _choosing(self._document) and not any(
            definition.default_value is None for definition in self._definition.variable_definitions or ()
        ):
            self.ready({}, suggestions=True)
        elif not _choosing(self._document):
            self._compiled((), VariableValues({}, {}))

    def _plan(self, choice: tuple[Any, ...], given: Mapping[str, Any], *, suggestions: bool) -> Plan | str:
        if len(self._kept) >= MOST_CHOICES:
            return "too many choices"
        assert self._variables is not None  # noqa: S101 - `ready` made them
        values = self._variables.carefully(given, suggestions=suggestions)
        if isinstance(values, list):
            return "variables"
        return self._compiled(choice, values)

    def _compiled(self, choice: tuple[Any, ...], values: VariableValues) -> Plan | str:
        try:
            whole = planned(self._schema, self._document, self._definition, values)
            plan = Plan(self._schema, whole, serial=is_serial(self._definition))
        except Unplanned as unplanned:
            self._reason = unplanned.reason
            return unplanned.reason
        except GraphQLError:
            return "directive"  # its arguments are wrong this time: graphql-core says how
        except (SyntaxError, RecursionError, MemoryError) as error:
            _log.error("an operation could not be compiled", exc_info=error)
            self._reason = "compiler"
            return self._reason
        self._kept[choice] = plan
        return plan

    def executor(self, ctx: Any, root: Any, given: Mapping[str, Any], *, suggestions: bool) -> Executor[Any]:
        """graphql-core's own executor of this operation, for what a plan hands over."""
        name = self._definition.name
        built = Executor.build(
            self._schema,
            self._document,
            root,
            ctx,
            dict(given),
            name.value if name else None,
            hide_suggestions=not suggestions,
        )
        if isinstance(built, list):  # the variables were coerced before, so this cannot be
            raise built[0]
        return built


class Ready:
    """A plan with the variables of one request, or of several that are alike."""

    __slots__ = ("_arguments", "_coerced", "_plan", "_plans", "given", "suggestions")

    def __init__(
        self, plans: Plans, plan: Plan, coerced: Coerced, given: Mapping[str, Any], *, suggestions: bool
    ) -> None:
        self._plans = plans
        self._plan = plan
        self._coerced = coerced
        self._arguments: dict[Step, dict[str, Any]] = {}
        self.given = given
        self.suggestions = suggestions

    @property
    def text(self) -> str:
        """The generated code."""
        return self._plan.text

    def result(self, ctx: Any, root: Any = None) -> Coroutine[Any, Any, ExecutionResult]:
        """Runs it."""

        def executor() -> Executor[Any]:
            return self._plans.executor(ctx, root, self.given, suggestions=self.suggestions)

        return Run(self._plan, ctx, self._coerced, self._arguments, executor).result(root)

    def event(self, executor: Executor[Any]) -> Coroutine[Any, Any, ExecutionResult]:
        """Runs it for one event of a subscription, for which graphql-core has made an executor of its own."""
        run = Run(self._plan, executor.context_value, self._coerced, self._arguments, lambda: executor)
        return run.result(executor.root_value)


def _choosing(document: DocumentNode) -> tuple[str, ...]:
    """The variables in @skip and @include, in any operation of the document."""
    names: dict[str, None] = {}
    waiting: list[Any] = [getattr(one, "selection_set", None) for one in document.definitions]
    while waiting:
        for node in getattr(waiting.pop(), "selections", ()):
            waiting.append(getattr(node, "selection_set", None))
            for directive in node.directives or ():
                for argument in directive.arguments or ():
                    if isinstance(argument.value, VariableNode):
                        names[argument.value.name.value] = None
    return tuple(names)
