"""Leaves: what a scalar or an enum becomes in an answer, and the test that says it is that already.

`tested(type, v)` is an expression, written into the generated code: where it is true, the value needs no completing.
Everything else goes through `leaf`, which is graphql-core's completion of a leaf and its errors.
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

_TESTED = {
    GraphQLString: "type({v}) is str",
    GraphQLID: "type({v}) is str",
    # Narrower than GraphQL's Int, since Python compares numbers of up to 30 bits fastest; `leaf` sees to the others.
    GraphQLInt: "type({v}) is int and -1073741823 <= {v} and {v} <= 1073741823",
    GraphQLFloat: "type({v}) is float and {v} - {v} == 0.0",  # infinities and NaN are no GraphQL numbers
    GraphQLBoolean: "type({v}) is bool",
}

COMMON: set[type] = {str, int, float, bool, list, tuple, dict}
"""Classes whose instances are known to be no exceptions and not to be waited for; see `plain`."""


class Later(Exception):
    """A value that has to be waited for where none was expected."""

    def __init__(self, awaitable: Awaitable[Any], *, complete: bool = False) -> None:
        super().__init__("a value that has to be waited for")
        self.awaitable = awaitable
        self.complete = complete
        """What comes of it needs no completing any more."""


def tested(type_: GraphQLNamedType, v: str) -> str | None:
    """An expression that is true of a value, the variable `v`, which stands in the answer as it is."""
    test = _TESTED.get(type_)  # type: ignore[call-overload]
    return test.format(v=v) if test else None


def names_of(type_: GraphQLNamedType) -> tuple[type, dict[Any, str]] | None:
    """The Python enum behind a GraphQL enum, and the name of each of its members."""
    kind = getattr(type_, "wrapped_cls", None)
    if not isinstance(type_, GraphQLEnumType) or kind is None:
        return None
    return kind, {member: type_.coerce_output_value(member) for member in kind}


def plain(value: Any) -> bool:
    """Whether this is a value: neither an exception nor to be waited for. Remembered by class."""
    kind = type(value)
    if kind in COMMON:
        return True
    if isinstance(value, Exception) or is_awaitable(value) or value is Undefined:
        return False
    if len(COMMON) < 10_000:  # noqa: PLR2004 - classes made at run time must not fill the memory
        COMMON.add(kind)
    return True


def leaf(type_: Any) -> Callable[[Any], Any]:
    """Completes a leaf of this type as graphql-core does; null stays null."""
    coerce = type_.coerce_output_value

    def completed(value: Any) -> Any:
        if value is None or value is Undefined:
            return None
        if type(value) in COMMON or plain(value):
            found = coerce(value)
            return found if found is not None and found is not Undefined else Executor.complete_leaf_value(type_, value)
        if isinstance(value, Exception):
            raise value
        raise Later(value)

    return completed
