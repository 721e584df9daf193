"""Compiled plans: generated functions, and the fields that they and the runtime share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from server.compiler.arguments import ArgumentReader
    from server.compiler.fields import Resolution
    from server.compiler.plan import FieldPlan, SelectionPlan


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
