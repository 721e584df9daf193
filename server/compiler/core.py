"""graphql-core, for what compiled code leaves to it: unknown values, the schema's own resolvers, and errors.

Before it, what plans and the runtime share: paths, leaves, the answer's objects, and what compiling a plan makes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

import graphql
from graphql.execution import Executor
from graphql.pyutils import Path, is_awaitable
from msgspec import Struct, defstruct, json

if TYPE_CHECKING:
    from server.compiler.plan import ArgumentReader, FieldPlan, Resolution, SelectionPlan

# ── paths ──

ResponsePath: TypeAlias = tuple[Any, str | int, str | None] | None


def ancestry(path: ResponsePath) -> list[Any]:
    """The paths from the root's field down to this one."""
    links = []
    while path is not None:
        links.append(path)
        path = path[0]
    return links[::-1]


def is_within(path: ResponsePath, ancestor: ResponsePath) -> bool:
    """Whether a path is the other one or lies below it."""
    return ancestor is None or ancestor in ancestry(path)


def core_path(path: ResponsePath) -> Path:
    """graphql-core's form of a path."""
    converted: Path | None = None
    for _, key, type_name in ancestry(path):
        converted = Path(converted, key, type_name)
    return converted  # type: ignore[return-value]  # only the answer itself has none


# ── leaves ──
# Leaves: scalars and enums in an answer.
#
# `unchanged_test(type, "value")` is a Python expression, written into generated code: where it is true, the value is
# already what the answer holds. Every other value goes through `leaf_completer`, which completes it, or fails, as
# graphql-core does.

_UNCHANGED_TESTS = {
    graphql.GraphQLString: "type({v}) is str",
    graphql.GraphQLID: "type({v}) is str",
    # Narrower than GraphQL's Int, because Python compares numbers of up to 30 bits fastest.
    graphql.GraphQLInt: "type({v}) is int and -1073741823 <= {v} and {v} <= 1073741823",
    graphql.GraphQLFloat: "type({v}) is float and {v} - {v} == 0.0",  # GraphQL has no infinities and no NaN
    graphql.GraphQLBoolean: "type({v}) is bool",
}

ORDINARY_CLASSES: set[type] = {str, int, float, bool, list, tuple, dict}
"""Classes whose instances are known to be neither exceptions nor awaitable; see `is_ordinary`."""
MAX_ORDINARY_CLASSES = 10_000
"""Classes made at run time must not fill the memory."""


class UnexpectedAwaitable(Exception):
    """A value turned out to be awaitable where code that does not wait wanted to complete it."""

    def __init__(self, awaitable: Awaitable[Any], *, is_completed: bool = False) -> None:
        super().__init__("a value that has to be awaited")
        self.awaitable = awaitable
        self.is_completed = is_completed
        """Whether the awaited value is part of the answer as it is."""


def unchanged_test(type_: graphql.GraphQLNamedType, variable: str) -> str | None:
    """An expression that is true where the variable's value is in the answer as it is."""
    test = _UNCHANGED_TESTS.get(type_)  # type: ignore[call-overload]  # the table has scalars only
    return test.format(v=variable) if test else None


@lru_cache
def enum_names(type_: graphql.GraphQLNamedType) -> tuple[type, dict[Any, str]] | None:
    """The Python enum of a GraphQL enum, and the GraphQL name of each member."""
    python_enum = getattr(type_, "wrapped_cls", None)
    if not isinstance(type_, graphql.GraphQLEnumType) or python_enum is None:
        return None
    return python_enum, {member: type_.coerce_output_value(member) for member in python_enum}


def is_ordinary(value: Any) -> bool:
    """Whether a value is neither an exception nor awaitable nor undefined. Classes are remembered."""
    class_ = type(value)
    if class_ in ORDINARY_CLASSES:
        return True
    if isinstance(value, Exception) or is_awaitable(value) or value is graphql.Undefined:
        return False
    if len(ORDINARY_CLASSES) < MAX_ORDINARY_CLASSES:
        ORDINARY_CLASSES.add(class_)
    return True


@lru_cache
def leaf_completer(type_: Any) -> Callable[[Any], Any]:
    """A function that completes values of this leaf type as graphql-core does; null stays null."""
    coerce = type_.coerce_output_value

    def complete(value: Any) -> Any:
        if value is None or value is graphql.Undefined:
            return None
        if type(value) in ORDINARY_CLASSES or is_ordinary(value):
            coerced = coerce(value)
            if coerced is None or coerced is graphql.Undefined:
                return Executor.complete_leaf_value(type_, value)  # raises, in graphql-core's words
            return coerced
        if isinstance(value, Exception):
            raise value
        raise UnexpectedAwaitable(value)

    return complete


# ── structs ──
# Answer objects: one msgspec struct for each list of response keys.
#
# An instance costs a third of a dictionary, to make and to hold, and is written as JSON faster (of the 45 µs that a
# leaderboard of 100 rows takes from records to JSON, 12 are saved). It stands in for a dictionary: `struct[key]` reads
# and sets a field by its response key, and its JSON is the same.

SLOT = "f"
"""Attributes are called f0, f1 and so on: a response key may be any word, also a keyword of Python."""


class AnswerStruct(Struct, gc=False):  # nothing in an answer refers back to what holds it
    """The base of all answer objects."""

    attributes: ClassVar[dict[str, str]]
    """The attribute of each response key."""

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self.attributes[key])

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, self.attributes[key], value)


@lru_cache(maxsize=1_000)  # a class takes 4 KB and 70 µs to make, and most operations want the same few
def answer_struct(*keys: str) -> type[AnswerStruct]:
    """The class for objects with these response keys, in their order."""
    attributes = {key: f"{SLOT}{index}" for index, key in enumerate(keys)}
    renames = {attribute: key for key, attribute in attributes.items()}
    struct = defstruct("Answer", list(renames), bases=(AnswerStruct,), rename=renames, gc=False)
    struct.attributes = attributes  # type: ignore[attr-defined]  # of this class
    return cast("type[AnswerStruct]", struct)


encode_json = json.Encoder().encode


# ── compiled ──
# Compiled plans: generated functions, and the fields that they and the runtime share.


@dataclass(frozen=True, eq=False, slots=True)
class CompiledField:
    """A field with what was made for it."""

    plan: FieldPlan
    resolution: Resolution | None
    """The resolver, if it is called directly."""
    is_batched: bool
    arguments: ArgumentReader | None
    """None where that resolver takes none."""
    complete: Callable[..., Any] | None
    """`complete(execution, value, path)`: a value, completed; None leaves it to graphql-core."""
    assign: Callable[..., None] | None
    """`assign(execution, entries, values)`: completes the values of an async field by pure code, and stores them."""


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class CompiledPlan:
    """One operation, compiled for one choice of its @skip and @include."""

    roots: list[tuple[Callable[..., Any], SelectionPlan]]
    """Functions `fields(execution, record, path)`, called one after the other: each field of a mutation is one."""
    source: str
    """The generated code."""

    @property
    def size(self) -> int:
        """The bytes that the plan occupies, as measured in docs/decisions/compiled-execution.md."""
        return 5_000 + 5 * len(self.source)


# ── core ──


@dataclass(eq=False, slots=True)
class Core:
    """The graphql-core executor of one execution, built when it is first needed."""

    build_executor: Callable[[], Executor[Any]]
    errors: list[graphql.GraphQLError] | None = None
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
            arguments = graphql.get_argument_values(definition, plan.nodes[0], executor.variable_values)
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
