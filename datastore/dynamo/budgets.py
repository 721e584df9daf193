"""What a request may still take and what it has taken: one context variable for its deadline and its meter.

Each is a context of its own (`deadline`, `metered`); what every request needs, `budget` sets in one step,
since to set a variable and to reset it costs a microsecond beside an answer of a hundred.
"""

from __future__ import annotations

import asyncio
from contextvars import Context, ContextVar, Token, copy_context
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


class budget:  # noqa: N801 - a word of the language here, as `open` is
    """A deadline and a meter for everything within; an earlier deadline around it stands, an outer meter counts too."""

    __slots__ = ("_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> tuple[float, Spent]:
        ends, outer, spent = asyncio.get_running_loop().time() + self._seconds, _current.get().ends, Spent()
        if outer is not None and outer < ends:
            ends = outer
        self._token: Token[Budget] = _current.set(Budget(ends, spent))
        return ends, spent

    def __exit__(self, *_: object) -> None:
        spent = _current.get().spent
        _current.reset(self._token)
        outer = _current.get().spent
        if outer is not None and spent is not None:
            outer.merge(spent)


class deadline:  # noqa: N801
    """Everything within must be done in so many seconds; an earlier deadline around it stands."""

    __slots__ = ("_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        ends, outer = asyncio.get_running_loop().time() + self._seconds, _current.get()
        if outer.ends is not None and outer.ends < ends:
            ends = outer.ends
        self._token: Token[Budget] = _current.set(Budget(ends, outer.spent))

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


def shared_context() -> Context:
    """A context for work that other requests may wait for too: charged to this request, but without its deadline."""
    context, budget = copy_context(), _current.get()
    if budget.ends is not None:
        context.run(_current.set, Budget(None, budget.spent))
    return context


class metered:  # noqa: N801
    """Counts what everything within costs; an outer meter counts it too."""

    __slots__ = ("_spent", "_token")

    def __enter__(self) -> Spent:
        self._spent = Spent()
        self._token: Token[Budget] = _current.set(Budget(_current.get().ends, self._spent))
        return self._spent

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
        outer = _current.get().spent
        if outer is not None:
            outer.merge(self._spent)
