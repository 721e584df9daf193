"""A request's deadline, its meter and what it may ask of the engine, in one context variable.

Guarantee: a request makes at most as many calls, and takes at most as many read units, as its allowance says, whatever
it reads by itself or together with others:

- **Each call is paid for when its turn to be sent has come**: one call and `HELD_UNITS`, of which the answer gives back
  what it did not consume. So the calls under way cannot take more than there is.
- **Work that others may wait for too** (`charged_context`) is paid for when a request adds it: the call it begins with
  and a unit, before anything is done for it. Its further calls are paid by the first of those who wait for it that
  still can; if nobody can, they are refused. It has the latest of their deadlines, and takes turns as each of them.
- **The service's own work** (`shared_context`) is paid by nobody: it reads what a board or a day has, whatever a
  request asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from typing import NamedTuple, Self

from datastore.dynamo.errors import TooCostly
from datastore.dynamo.transport.call_queue import SERVICE, Caller, Callers

HELD_UNITS = 64.0
"""Read units held for a call under way; few calls consume more."""
_ADDED_UNITS = 1.0


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


@dataclass(eq=False, slots=True)
class Allowance:
    """What a request may still ask of the engine. Mutable, like its meter."""

    calls: int
    read_units: float

    def can_pay(self) -> bool:
        return self.calls >= 1 and self.read_units >= HELD_UNITS

    def pay(self) -> Allowance:
        """Pay for a call that is sent now; TooCostly if the request has asked for enough."""
        self._take(HELD_UNITS)
        return self

    def give_back(self, consumed: float) -> None:
        """Give back what a call did not consume."""
        self.read_units += HELD_UNITS - consumed

    def add_work(self) -> None:
        """Pay for the call that shared work begins with."""
        self._take(_ADDED_UNITS)

    def begin_work(self) -> None:
        """Give that back, because the call is about to be paid for like any other."""
        self.calls += 1
        self.read_units += _ADDED_UNITS

    def _take(self, read_units: float) -> None:
        if not self.can_pay():
            raise TooCostly
        self.calls -= 1
        self.read_units -= read_units


class SharedAllowance:
    """What those who wait for the same work may still ask of the engine. One of None may ask for anything."""

    __slots__ = ("_added_by", "payers")

    def __init__(self, first: Allowance | None) -> None:
        self.payers: list[Allowance | None] = [first]
        self._added_by = first
        if first is not None:
            first.add_work()

    def pay(self) -> Allowance | None:
        if self._added_by is not None:
            self._added_by.begin_work()
            self._added_by = None
        for payer in self.payers:
            if payer is None or payer.can_pay():
                return payer and payer.pay()
        raise TooCostly


class Budget(NamedTuple):
    """The deadline by the loop's clock, the meter of calls, and the allowance; None if there is none."""

    ends: float | None
    spent: Spent | None
    payer: Allowance | SharedAllowance | None
    callers: Callers


class _SharedBudget:
    """The budget of work that several requests wait for, who may join while it is done."""

    __slots__ = ("callers", "ends", "payer", "spent")

    def __init__(self, ends: float | None, spent: Spent | None, payer: SharedAllowance, callers: Callers) -> None:
        self.ends = ends
        self.spent = spent
        self.payer = payer
        self.callers = callers

    def join(self, other: Budget | _SharedBudget) -> None:
        if self.ends is not None:
            self.ends = None if other.ends is None else max(self.ends, other.ends)
        self.payer.payers += [payer for payer in _payers(other) if payer not in self.payer.payers]
        for caller in other.callers.all:
            self.callers.add(caller)


def _payers(budget: Budget | _SharedBudget) -> list[Allowance | None]:
    return budget.payer.payers if isinstance(budget.payer, SharedAllowance) else [budget.payer]


_current: ContextVar[Budget | _SharedBudget] = ContextVar("ringside_budget")
_NOBODY = Budget(None, None, None, Callers(SERVICE))


def current() -> Budget | _SharedBudget:
    return _current.get(_NOBODY)


@contextmanager
def deadline(seconds: float) -> Iterator[float]:
    """Set a deadline for the block, or keep an earlier outer one; yield its time by the loop's clock."""
    ends, outer = asyncio.get_running_loop().time() + seconds, current()
    if outer.ends is not None:
        ends = min(ends, outer.ends)
    token = _current.set(Budget(ends, outer.spent, outer.payer, outer.callers))
    try:
        yield ends
    finally:
        _current.reset(token)


@contextmanager
def metered() -> Iterator[Spent]:
    """Meter the block; an outer meter counts it too."""
    outer, spent = current(), Spent()
    token = _current.set(Budget(outer.ends, spent, outer.payer, outer.callers))
    try:
        yield spent
    finally:
        _current.reset(token)
        if outer.spent is not None:
            outer.spent.merge(spent)


@contextmanager
def unlimited() -> Iterator[None]:
    """No allowance within the block: for what a mutation does, which is bounded by its input."""
    outer = current()
    token = _current.set(Budget(outer.ends, outer.spent, None, outer.callers))
    try:
        yield
    finally:
        _current.reset(token)


class RequestBudget:
    """`deadline`, `metered` and an allowance in one, for every request of a client.

    A class costs half as much as generators.
    """

    __slots__ = ("_allowance", "_client", "_outer", "_seconds", "_token", "ends", "spent")

    def __init__(self, seconds: float, calls: int, read_units: float, client: Hashable) -> None:
        self._seconds = seconds
        self._allowance = Allowance(calls, read_units)
        self._client = client
        self.ends = 0.0
        """The deadline by the loop's clock."""
        self.spent = Spent()

    def __enter__(self) -> Self:
        outer = self._outer = current()
        self.ends = asyncio.get_running_loop().time() + self._seconds
        if outer.ends is not None:
            self.ends = min(self.ends, outer.ends)
        callers = Callers(Caller(self._client, self._allowance))
        self._token = _current.set(Budget(self.ends, self.spent, self._allowance, callers))
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
        if self._outer.spent is not None:
            self._outer.spent.merge(self.spent)


def shared_context() -> Context:
    """A context for the service's own work, which requests may wait for: metered for the one that began it."""
    context = copy_context()
    context.run(_current.set, Budget(None, current().spent, None, Callers(SERVICE)))
    return context


def charged_context() -> Context:
    """A context for what this request asked for and others may wait for too; TooCostly if it may ask for no more."""
    context, budget = copy_context(), current()
    if isinstance(budget.payer, SharedAllowance):  # a part of such work: those who join either help with both
        payer, callers = budget.payer, budget.callers
    else:
        payer, callers = SharedAllowance(budget.payer), Callers(budget.callers.all[0])
    context.run(_current.set, _SharedBudget(budget.ends, budget.spent, payer, callers))
    return context


def join_work(context: Context) -> None:
    """This request waits for work in that context too."""
    work = context[_current]
    if isinstance(work, _SharedBudget):
        work.join(current())
