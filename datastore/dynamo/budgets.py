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
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, Token, copy_context
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import ceil, inf
from typing import Any, NamedTuple, Self

from datastore.dynamo.errors import TooCostly, TooManyWaiting
from datastore.dynamo.transport.connections import SERVICE, Caller, Callers, CallQueue, QueueFull
from datastore.refusals import RateLimited

# ── budgets ──

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

    def join(self, other: Allowance | SharedAllowance | None) -> None:
        payers = other.payers if isinstance(other, SharedAllowance) else [other]
        self.payers += [payer for payer in payers if payer not in self.payers]

    def pay(self) -> Allowance | None:
        if self._added_by is not None:
            self._added_by.begin_work()
            self._added_by = None
        for payer in self.payers:
            if payer is None or payer.can_pay():
                return payer and payer.pay()
        raise TooCostly


@dataclass(eq=False, slots=True)
class Budget:
    """A deadline by the loop's clock, a meter, who pays, and for whom calls take turns: for all within a `with` block.

    The budget of shared work is mutable, since others join while the work is done.
    """

    ends: float
    spent: Spent
    payer: Allowance | SharedAllowance | None
    callers: Callers
    _token: Token[Budget] = field(init=False)

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
        outer = current().spent
        if outer is not self.spent:
            outer.merge(self.spent)


_current: ContextVar[Budget] = ContextVar("ringside_budget")
NOBODY = Budget(inf, Spent(), None, Callers(SERVICE))


def current() -> Budget:
    return _current.get(NOBODY)


def deadline(seconds: float) -> Budget:
    """Set a deadline for the block, or keep an earlier outer one."""
    return replace(current(), ends=_ending(seconds))


def unlimited() -> Budget:
    """No allowance within the block: for what a mutation does, which is bounded by its input."""
    return replace(current(), payer=None)


@contextmanager
def metered() -> Iterator[Spent]:
    """Meter the block; an outer meter counts it too."""
    with replace(current(), spent=Spent()) as budget:
        yield budget.spent


def request_budget(seconds: float, calls: int, read_units: float, client: Hashable) -> Budget:
    """A deadline, a meter and an allowance, for every request of a client."""
    allowance = Allowance(calls, read_units)
    return Budget(_ending(seconds), Spent(), allowance, Callers(Caller(client, allowance)))


def _ending(seconds: float) -> float:
    return min(asyncio.get_running_loop().time() + seconds, current().ends)


def shared_context() -> Context:
    """A context for the service's own work, which requests may wait for: metered for the one that began it."""
    return _context(Budget(inf, current().spent, None, Callers(SERVICE)))


def built_context() -> Context:
    """The same for what is built for many; but its calls take turns with those of the request that began it."""
    return _context(Budget(inf, current().spent, None, Callers(current().callers.all[0])))


def charged_context() -> Context:
    """A context for what this request asked for and others may wait for too; TooCostly if it may ask for no more."""
    budget = current()
    if isinstance(budget.payer, SharedAllowance):  # a part of such work: those who join either help with both
        return _context(budget)
    return _context(replace(budget, payer=SharedAllowance(budget.payer), callers=Callers(budget.callers.all[0])))


def _context(budget: Budget) -> Context:
    context = copy_context()
    context.run(_current.set, budget)
    return context


def join_work(context: Context) -> None:
    """This request waits for work in a charged context too."""
    work, joining = context[_current], current()
    work.ends = max(work.ends, joining.ends)
    if isinstance(work.payer, SharedAllowance):
        work.payer.join(joining.payer)
    for caller in joining.callers.all:
        work.callers.add(caller)


# ── calls ──
# What each call to the engine goes through: it waits for its turn, is paid for, and is metered.

CALLS_AT_ONCE = 64
CALLS_OF_REQUEST = 16
"""Of one request under way."""
CALLS_WAITING = 8_000
"""A call that waits takes some 5 kB with the task it belongs to."""
CALLS_WAITING_OF_CLIENT = 4_000
"""Twice as many as one query may make."""

_READS = ("get_item", "batch_get_item", "query", "scan")
_WRITES = ("put_item", "update_item", "delete_item", "transact_write_items", "batch_write_item")


class Calls:
    """A low-level client whose data calls are ordered, paid for and metered. Everything else is the client's own."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._queue = CallQueue(
            CALLS_AT_ONCE,
            most_of_request=CALLS_OF_REQUEST,
            most_waiting=CALLS_WAITING,
            most_waiting_of_client=CALLS_WAITING_OF_CLIENT,
        )
        for method in _READS:
            setattr(self, method, partial(self._read, getattr(client, method)))
        for method in _WRITES:
            setattr(self, method, partial(self._write, getattr(client, method)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    async def _take_turn(self, callers: Callers) -> Caller:
        try:
            return await self._queue.take_turn(callers)
        except QueueFull:
            raise TooManyWaiting from None

    async def _read(self, method: Callable[..., Awaitable[Any]], /, **parameters: Any) -> Any:
        budget = current()
        caller = await self._take_turn(budget.callers)
        try:
            payer = None if budget.payer is None else budget.payer.pay()
            units = 0.0
            try:
                answer = await method(**parameters, ReturnConsumedCapacity="TOTAL")
                units = _units(answer)
            finally:
                if payer is not None:
                    payer.give_back(units)
        finally:
            self._queue.end_turn(caller)
        budget.spent.calls += 1
        budget.spent.read_units += units
        return answer

    async def _write(self, method: Callable[..., Awaitable[Any]], /, **parameters: Any) -> Any:
        budget = current()
        caller = await self._take_turn(budget.callers)
        try:
            answer = await method(**parameters, ReturnConsumedCapacity="TOTAL")
        finally:
            self._queue.end_turn(caller)
        budget.spent.calls += 1
        budget.spent.write_units += _units(answer)
        return answer


def _units(answer: Mapping[str, Any]) -> float:
    consumed = answer.get("ConsumedCapacity") or ()
    parts = consumed if isinstance(consumed, list) else [consumed]
    return float(sum(part.get("CapacityUnits", 0.0) for part in parts if part))


# ── rates ──
# How often keys hit within this process.
#
# Invariant: a hit is admitted if, since every earlier moment, the admitted hits are at most the limit and what it
# allows in the time since: limit · (1 + seconds since / period). So a key that was idle for a period may hit as often
# as the limit at once, and then evenly. A key costs one number and a hit constant time: the number is the moment at
# which the key has its whole limit again, and a key past that moment needs none.

OFF = "0"
"""In place of a rate: no limit."""

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_RATE = re.compile(rf"([1-9][0-9]{{0,6}})/({'|'.join(_SECONDS)})")

MAX_KEYS = 50_000
"""Keys per limit, some 10 MB; beyond that, those that have not hit for the longest time are forgotten."""
_TOLERANCE = 1e-6
"""Seconds, for rounding."""


class Rate(NamedTuple):
    """So many hits per period of so many seconds."""

    limit: int
    seconds: int


@cache
def parse_rate(text: str) -> Rate:
    """The rate in a setting such as 60/minute, or ValueError."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a number per second, minute, hour or day")
    return Rate(int(match[1]), _SECONDS[match[2]])


class RateLimit:
    """So many hits of each key per period of so many seconds."""

    def __init__(self, limit: int, seconds: float) -> None:
        self._seconds = seconds
        self._interval = seconds / limit
        self._whole_at: OrderedDict[Hashable, float] = OrderedDict()
        """When each key has its whole limit again, in the order of their latest hits."""

    def wait(self, key: Hashable, now: float) -> float:
        """The seconds until the next hit of a key is admitted; 0 if it is now."""
        wait = max(now, self._whole_at.get(key, now)) + self._interval - now - self._seconds
        return wait if wait > _TOLERANCE else 0.0

    def hit(self, key: Hashable, now: float) -> float:
        """Count a hit if it is admitted and return 0; otherwise return the seconds until the next is admitted."""
        wait = self.wait(key, now)
        if wait:
            return wait
        self._whole_at[key] = max(now, self._whole_at.get(key, now)) + self._interval
        self._whole_at.move_to_end(key)
        self._forget(now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Two keys at a hit, so that idle keys are forgotten faster than new ones come."""
        for _ in range(2):
            oldest, whole_at = next(iter(self._whole_at.items()))
            if whole_at <= now or len(self._whole_at) > MAX_KEYS:
                del self._whole_at[oldest]


class Rates:
    """The limits of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limits: dict[str, RateLimit] = {}

    def hit(self, limit: str, *key: str) -> None:
        """Count a hit of a key; RateLimited, with the time until the next is admitted, if the limit is reached."""
        _refuse_before(self._limit(limit).hit(key, self._clock()))

    def check(self, limit: str, *key: str) -> None:
        """RateLimited if a hit would be, which is not counted here: for what counts only if it fails."""
        _refuse_before(self._limit(limit).wait(key, self._clock()))

    def _limit(self, limit: str) -> RateLimit:
        rate_limit = self._limits.get(limit)
        if rate_limit is None:
            rate_limit = self._limits[limit] = RateLimit(*parse_rate(limit))
        return rate_limit


def _refuse_before(wait: float) -> None:
    if wait > 0.0:
        raise RateLimited(retry_after=ceil(wait * 10) / 10)
