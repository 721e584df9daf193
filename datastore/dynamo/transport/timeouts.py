"""Timeouts that share their timers: `with timeout_at(moment): await …`, and `Alarm(loop, moment, call)`.

Law: as `asyncio.timeout_at` and `loop.call_at`, but up to GRAIN later, never earlier. A cancellation from elsewhere
stays one; TimeoutError comes out of the block that was late, not of one around it or within it.

Why: every call to the engine, every request and every connection has a timeout, and next to none is ever needed. A
timer of its own costs 7 µs on uvloop to be set and taken back; to join those of the same twentieth of a second costs 1.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

GRAIN = 0.05


class _Due(Protocol):
    def due(self) -> None:
        """Its moment has come."""


_waiting: dict[tuple[asyncio.AbstractEventLoop, int], set[_Due]] = {}


class Alarm:
    """Calls something at a moment of the loop's clock, or a little later, unless it is cancelled before."""

    __slots__ = ("_together", "due")

    def __init__(self, loop: asyncio.AbstractEventLoop, when: float, call: Callable[[], None]) -> None:
        self.due = call
        self._together = _joined(loop, when, self)

    def cancel(self) -> None:
        self._together.discard(self)


class timeout_at:  # noqa: N801 - used as asyncio's, whose name it has
    """Ends what is inside at a moment of the loop's clock, or a little later."""

    __slots__ = ("_before", "_late", "_task", "_together", "_when")

    def __init__(self, when: float) -> None:
        self._when = when

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            message = "There is no task to time out."
            raise RuntimeError(message)
        self._task, self._before, self._late = task, task.cancelling(), False
        self._together = _joined(loop, self._when, self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._together.discard(self)
        if self._late and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def due(self) -> None:
        self._late = True
        self._task.cancel()


def _joined(loop: asyncio.AbstractEventLoop, when: float, one: _Due) -> set[_Due]:
    place = (loop, int(when / GRAIN) + 1)
    together = _waiting.get(place)
    if together is None:
        for over in [other for other in _waiting if other[0].is_closed()]:
            del _waiting[over]
        together = _waiting[place] = set()
        loop.call_at(place[1] * GRAIN, _come, place)
    together.add(one)
    return together


def _come(place: tuple[asyncio.AbstractEventLoop, int]) -> None:
    together = _waiting.pop(place)
    while together:  # one that is called may cancel another
        together.pop().due()
