"""A request's deadline, its meter and what it may ask of the engine, in one context variable."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from typing import NamedTuple, Self

from datastore.dynamo.errors import TooCostly


@dataclass(slots=True)
class Spent:
    """Units and calls of one request. Mutable: every call of the request adds to it."""

    read_units: float = 0.0
    write_units: float = 0.0
    calls: int = 0

    def merge(self, other: Spent) -> None:
        self.read_units += other.read_units
        self.write_units += other.write_units
        self.calls += other.calls


@dataclass(slots=True)
class Allowance:
    """What a request may still ask of the engine. Mutable, like its meter.

    Calls are counted when they begin, since a request may begin thousands at the same moment.
    """

    calls: int
    read_units: float

    def begin_call(self) -> None:
        """TooCostly if the request has asked for enough."""
        self.calls -= 1
        if self.calls < 0 or self.read_units < 0:
            raise TooCostly


class Budget(NamedTuple):
    """The deadline by the loop's clock, the meter of calls, and the allowance; None if there is none.

    Reads are taken from `charged`, and `allowance` refuses calls. Both are the request's own, but work that others wait
    for too has no `allowance`.
    """

    ends: float | None
    spent: Spent | None
    allowance: Allowance | None = None
    charged: Allowance | None = None


_current: ContextVar[Budget] = ContextVar("ringside_budget", default=Budget(None, None))  # noqa: B039 - it is immutable
current = _current.get


@contextmanager
def deadline(seconds: float) -> Iterator[float]:
    """Set a deadline for the block, or keep an earlier outer one; yield its time by the loop's clock."""
    ends, outer = asyncio.get_running_loop().time() + seconds, current()
    if outer.ends is not None:
        ends = min(ends, outer.ends)
    token = _current.set(outer._replace(ends=ends))
    try:
        yield ends
    finally:
        _current.reset(token)


@contextmanager
def metered() -> Iterator[Spent]:
    """Meter the block; an outer meter counts it too."""
    outer, spent = current(), Spent()
    token = _current.set(outer._replace(spent=spent))
    try:
        yield spent
    finally:
        _current.reset(token)
        if outer.spent is not None:
            outer.spent.merge(spent)


@contextmanager
def unlimited() -> Iterator[None]:
    """No allowance within the block: for what a mutation does, which is bounded by its input."""
    token = _current.set(current()._replace(allowance=None, charged=None))
    try:
        yield
    finally:
        _current.reset(token)


class RequestBudget:
    """`deadline`, `metered` and an allowance in one, for every request: a class costs half as much as generators."""

    __slots__ = ("_allowance", "_outer", "_seconds", "_token", "ends", "spent")

    def __init__(self, seconds: float, calls: int, read_units: float) -> None:
        self._seconds = seconds
        self._allowance = Allowance(calls, read_units)
        self.ends = 0.0
        """The deadline by the loop's clock."""
        self.spent = Spent()

    def __enter__(self) -> Self:
        outer = self._outer = current()
        self.ends = asyncio.get_running_loop().time() + self._seconds
        if outer.ends is not None:
            self.ends = min(self.ends, outer.ends)
        self._token = _current.set(Budget(self.ends, self.spent, self._allowance, self._allowance))
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
        if self._outer.spent is not None:
            self._outer.spent.merge(self.spent)


def shared_context() -> Context:
    """A context for work that other requests may wait for too: metered for this request, without its bounds.

    It is not charged either: it reads what a board or a day has, whatever this request asked for.
    """
    context = copy_context()
    context.run(_current.set, Budget(None, current().spent))
    return context


def charged_context() -> Context:
    """The same for reads of what this request asked for: they are charged to its allowance, and not refused by it."""
    context, budget = copy_context(), current()
    if budget.ends is not None:
        context.run(_current.set, Budget(None, budget.spent, None, budget.charged))
    return context
