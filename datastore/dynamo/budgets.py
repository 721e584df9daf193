"""How long a request may still take, and what it has cost: one context variable for its deadline and its meter."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from typing import NamedTuple


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


class Budget(NamedTuple):
    """When the time is used up, by the loop's clock, and where calls are counted; None where nobody asked."""

    ends: float | None
    spent: Spent | None


_current: ContextVar[Budget] = ContextVar("ringside_budget", default=Budget(None, None))  # noqa: B039 - it is immutable
current = _current.get


@contextmanager
def deadline(seconds: float) -> Iterator[float]:
    """Ends everything within after so many seconds, or at an earlier deadline around it; gives the time of the end."""
    ends, outer = asyncio.get_running_loop().time() + seconds, current()
    if outer.ends is not None:
        ends = min(ends, outer.ends)
    token = _current.set(Budget(ends, outer.spent))
    try:
        yield ends
    finally:
        _current.reset(token)


@contextmanager
def metered() -> Iterator[Spent]:
    """Counts what everything within costs; an outer meter counts it too."""
    outer, spent = current(), Spent()
    token = _current.set(Budget(outer.ends, spent))
    try:
        yield spent
    finally:
        _current.reset(token)
        if outer.spent is not None:
            outer.spent.merge(spent)


def shared_context() -> Context:
    """A context for work that other requests may wait for too: charged to this request, but without its deadline."""
    context, budget = copy_context(), current()
    if budget.ends is not None:
        context.run(_current.set, Budget(None, budget.spent))
    return context
