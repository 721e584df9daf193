"""Leaves: scalars and enums in an answer.

`unchanged_test(type, "value")` is a Python expression, written into generated code: where it is true, the value is
already what the answer holds. Every other value goes through `leaf_completer`, which completes it, or fails, as
graphql-core does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from graphql import (
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLFloat,
    GraphQLID,
    GraphQLInt,
    GraphQLNamedType,
    GraphQLString,
    Undefined,
)
from graphql.execution import Executor
from graphql.pyutils import is_awaitable

_UNCHANGED_TESTS = {
    GraphQLString: "type({v}) is str",
    GraphQLID: "type({v}) is str",
    # Narrower than GraphQL's Int, because Python compares numbers of up to 30 bits fastest.
    GraphQLInt: "type({v}) is int and -1073741823 <= {v} and {v} <= 1073741823",
    GraphQLFloat: "type({v}) is float and {v} - {v} == 0.0",  # GraphQL has no infinities and no NaN
    GraphQLBoolean: "type({v}) is bool",
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


def unchanged_test(type_: GraphQLNamedType, variable: str) -> str | None:
    """An expression that is true where the variable's value is in the answer as it is."""
    test = _UNCHANGED_TESTS.get(type_)  # type: ignore[call-overload]
    return test.format(v=variable) if test else None


def enum_names(type_: GraphQLNamedType) -> tuple[type, dict[Any, str]] | None:
    """The Python enum of a GraphQL enum, and the GraphQL name of each member."""
    python_enum = getattr(type_, "wrapped_cls", None)
    if not isinstance(type_, GraphQLEnumType) or python_enum is None:
        return None
    return python_enum, {member: type_.coerce_output_value(member) for member in python_enum}


def is_ordinary(value: Any) -> bool:
    """Whether a value is neither an exception nor awaitable nor undefined. Classes are remembered."""
    class_ = type(value)
    if class_ in ORDINARY_CLASSES:
        return True
    if isinstance(value, Exception) or is_awaitable(value) or value is Undefined:
        return False
    if len(ORDINARY_CLASSES) < MAX_ORDINARY_CLASSES:
        ORDINARY_CLASSES.add(class_)
    return True


def leaf_completer(type_: Any) -> Callable[[Any], Any]:
    """A function that completes values of this leaf type as graphql-core does; null stays null."""
    coerce = type_.coerce_output_value

    def complete(value: Any) -> Any:
        if value is None or value is Undefined:
            return None
        if type(value) in ORDINARY_CLASSES or is_ordinary(value):
            coerced = coerce(value)
            if coerced is None or coerced is Undefined:
                return Executor.complete_leaf_value(type_, value)  # raises, in graphql-core's words
            return coerced
        if isinstance(value, Exception):
            raise value
        raise UnexpectedAwaitable(value)

    return complete
